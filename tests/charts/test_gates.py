"""The gates: what their manifests run lets a healthy start pass, and no start into a critical finding.

The scripts and arguments are taken out of the manifests and run here, with other paths and without waiting.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tarfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from agent.cli import main
from tests.agent.cli.commands import plant
from tests.support.charts import ROOT, Manifest, kind_of, objects

pytestmark = [pytest.mark.charts, pytest.mark.timeout(600)]

MANIFESTS = ROOT / "deploy" / "manifests"
WAYS = ("gate-pod-start", "gate-every-start")


def pod_of(name: str) -> Manifest:
    found = objects((MANIFESTS / f"{name}.yaml").read_text("utf-8"))
    return kind_of(found, "StatefulSet")["spec"]["template"]["spec"]


@pytest.fixture
def volume(tmp_path: Path) -> Path:
    """Give what is mounted at /state: a new volume."""
    (tmp_path / "volume" / "lost+found").mkdir(parents=True)
    return tmp_path / "volume"


def scan_arguments(volume: Path) -> list[str]:
    (gate,) = pod_of("gate-pod-start")["initContainers"]
    return [x.replace("/state/", f"{volume}/") for x in gate["args"]]


def healthy(volume: Path) -> Path:
    """A directory that an orderly stop left: its checkpoint is as new as its store."""
    root = plant(volume / "kafka-streams")
    (root / "app" / "0_0" / ".checkpoint").touch()
    return root


# -- at the start of a pod ----------------------------------------------------------------------------


def test_a_new_volume_passes(volume: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(scan_arguments(volume)) == 0
    (volume / "kafka-streams").mkdir()
    assert main(scan_arguments(volume)) == 0
    assert "no application has started here yet" in capsys.readouterr().out


def test_what_is_healthy_passes(volume: Path) -> None:
    healthy(volume)
    assert main(scan_arguments(volume)) == 0


@pytest.mark.parametrize("recorded", ["benign-restart-eos-4.1.2", "eos-4.3.1-crash-unflushed"])
def test_a_recorded_volume_without_damage_passes(volume: Path, recorded: str) -> None:
    """After an orderly stop, and after a kill that left nothing to trust wrongly."""
    with tarfile.open(ROOT / "tests" / "data" / "snapshots" / f"{recorded}.tar.gz") as archive:
        archive.extractall(volume / "kafka-streams", filter="data")
    assert main(scan_arguments(volume)) == 0


@pytest.mark.parametrize(
    ("recorded", "release"),
    [("kafka-20685-4.1.2", "4.1.1"), ("dirty-close-kill-4.3.1", "4.3.1"), ("torn-clean-3.9.2", "3.9.2")],
)
def test_a_recorded_volume_that_a_start_would_damage_does_not(
    volume: Path, capsys: pytest.CaptureFixture[str], recorded: str, release: str
) -> None:
    """A kill left what the next start would trust: the gate says what to do before it."""
    with tarfile.open(ROOT / "tests" / "data" / "snapshots" / f"{recorded}.tar.gz") as archive:
        archive.extractall(volume / "kafka-streams", filter="data")
    told = [x.replace("=4.1.1", f"={release}") for x in scan_arguments(volume)]
    if release == "4.3.1":  # on 4.3 the disk does not tell an active task from a standby
        told = [x.replace("num_standby_replicas=1", "num_standby_replicas=0") for x in told]
    assert main(told) == 1
    assert "BEFORE the next start: keep a copy" in capsys.readouterr().out


def test_a_critical_finding_does_not(volume: Path, capsys: pytest.CaptureFixture[str]) -> None:
    plant(volume / "kafka-streams")
    assert main(scan_arguments(volume)) == 1
    said = capsys.readouterr().out
    assert "CRITICAL" in said
    assert "next: " in said


def test_what_is_not_known_does_not(volume: Path) -> None:
    plant(volume / "kafka-stream")
    assert main(scan_arguments(volume)) == 2


def test_what_is_there_and_not_read_does_not(volume: Path) -> None:
    """A linked application, and a task whose checkpoint is garbage: undecided is shut, too."""
    plant(volume / "larger-disk")
    (volume / "kafka-streams").mkdir()
    (volume / "kafka-streams" / "app").symlink_to(volume / "larger-disk" / "app")
    assert main(scan_arguments(volume)) == 3
    (volume / "kafka-streams" / "app").unlink()
    (healthy(volume) / "app" / "0_0" / ".checkpoint").write_bytes(b"garbage")
    assert main(scan_arguments(volume)) == 3


# -- at every start -----------------------------------------------------------------------------------


class Pod:
    """Both scripts of `gate-every-start.yaml`, on a volume and a gate of ours; nothing waits long."""

    def __init__(self, home: Path, volume: Path) -> None:
        self.gate, self.log, self._home = home / "gate", home / "log", home
        self._programs = home / "programs"
        for directory in (self.gate, self._programs):
            directory.mkdir()
        pod = pod_of("gate-every-start")
        (gate,), (application,) = pod["initContainers"], pod["containers"]
        self._scripts = {
            name: container["args"][0].replace("/state/", f"{volume}/").replace("/gate/", f"{self.gate}/")
            for name, container in (("gate", gate), ("application", application))
        }
        self._scripts["gate"] = re.sub(r"time\.sleep\(\d+\)", "time.sleep(0.05)", self._scripts["gate"])
        self._shells = {"gate": [sys.executable, "-c"], "application": application["command"]}
        assert (gate["command"][0], gate["command"][1:]) == ("/opt/statewarden/bin/python", ["-c"])
        self._program("sleep", "exec /bin/sleep 0.05")
        self._program("java", f"echo started >> {self.log}; exec /bin/sleep 60")
        python = f"PYTHONPATH={ROOT} {sys.executable} -m agent"
        self._program("statewarden", f'{python} "$@"; code=$?; echo scan $code >> {self.log}; exit $code')
        self._running: list[subprocess.Popen[bytes]] = []

    def _program(self, name: str, script: str) -> None:
        path = self._programs / name
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o755)

    def start(self, name: str) -> subprocess.Popen[bytes]:
        path = f"{self._programs}:{os.environ['PATH']}"
        process = subprocess.Popen(
            [*self._shells[name], self._scripts[name]],
            env={**os.environ, "PATH": path},
            stdout=subprocess.DEVNULL,
        )
        self._running.append(process)
        return process

    def lines(self) -> list[str]:
        """What happened, in order."""
        return self.log.read_text().splitlines() if self.log.exists() else []

    def close(self) -> None:
        for process in self._running:
            process.kill()
            process.wait()


@pytest.fixture
def pod(tmp_path: Path, volume: Path) -> Iterator[Pod]:
    """Give a pod of which nothing runs."""
    one = Pod(tmp_path, volume)
    yield one
    one.close()


def test_every_start_is_asked_for(pod: Pod, volume: Path, eventually: Callable[..., object]) -> None:
    """The first start passes; after a crash that left damage the second waits, until the directory is removed."""
    pod.start("gate")
    first = pod.start("application")
    eventually(lambda: pod.lines() == ["scan 0", "started"])
    first.kill()
    first.wait()
    root = plant(volume / "kafka-streams")
    second = pod.start("application")
    eventually(lambda: pod.lines().count("scan 1") >= 2)
    assert "started" not in pod.lines()[2:]
    assert second.poll() is None
    (root / "app" / "0_0" / ".checkpoint").unlink()
    eventually(lambda: pod.lines()[-2:] == ["scan 0", "started"])


def test_both_end_when_asked_to(pod: Pod, volume: Path, eventually: Callable[..., object]) -> None:
    """A pod that is deleted while the gate is shut does not wait for its grace period."""
    plant(volume / "kafka-streams")
    gate, application = pod.start("gate"), pod.start("application")
    eventually(lambda: "scan 1" in pod.lines())
    for process, code in ((application, 143), (gate, 0)):
        process.terminate()
        assert process.wait(120) == code


# -- both -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", WAYS)
def test_it_is_the_demo_with_a_gate(name: str) -> None:
    """Everything else is as in `streams-application.yaml`; the gate is told what the sidecar is told."""
    found = objects((MANIFESTS / "streams-application.yaml").read_text("utf-8"))
    plain = kind_of(found, "StatefulSet")["spec"]["template"]["spec"]
    gated = pod_of(name)
    (gate,), sidecar = gated["initContainers"], plain["initContainers"][0]
    for key in ("image", "imagePullPolicy", "securityContext"):
        assert gate[key] == sidecar[key]
    told = " ".join(gate["args"])
    assert [x for x in sidecar["args"] if x.startswith("--set=") and x not in told] == []
    state = [x for x in sidecar["volumeMounts"] if x["name"] == "state"]
    assert [x for x in gate["volumeMounts"] if x["name"] == "state"] == state
    application, original = gated["containers"][0], plain["containers"][0]
    for key in ("name", "image", "resources", "securityContext"):
        assert application[key] == original[key]
    words = (
        " ".join(application["command"] + application.get("args", [])).replace("'", "").replace("\\\n", "")
    )
    assert " ".join(original["command"]) in " ".join(words.split())
    assert gated["securityContext"] == plain["securityContext"]
