"""What a kubelet would start of pods that a control plane admitted.

Commands, environment and mounts are those of the pod. A container is the program of its image from this checkout, as a
process that sees a mount at its directory; the agent listens on a port of the loopback.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path

from deploy.demo.agents import free_port
from tests.conftest import wait_until
from tests.support.charts import ROOT, Manifest
from tests.support.control_plane import Cluster
from tests.support.exposed import answered

PROGRAMS = {"statewarden-agent": "agent", "statewarden-rollup": "spark_rollup"}
"""Name of an image -> the package whose command line is its entry point."""
READY_S = 120.0


class Kubelet:
    """Starts containers of pods; nothing that it started outlives it."""

    def __init__(self, cluster: Cluster, home: Path, beside: Mapping[str, Mapping[str, str]]) -> None:
        """Start nothing yet; `beside`: name of an image -> variables that the cloud adds to its containers."""
        self._cluster, self._home, self._beside = cluster, home, beside
        self._running: list[subprocess.Popen[bytes]] = []

    def volume(self, pod: Manifest, name: str) -> Path:
        """Give the directory of a volume, filled if it is a ConfigMap's."""
        (found,) = (x for x in pod["spec"]["volumes"] if x["name"] == name)
        about = pod["metadata"]
        if "persistentVolumeClaim" in found:
            place = self._home / "claims" / about["namespace"] / found["persistentVolumeClaim"]["claimName"]
        else:
            place = self._home / "pods" / about["name"] / name
        if not place.is_dir():
            place.mkdir(parents=True)
            if os.geteuid() == 0:  # what `fsGroup` does to a volume
                os.chown(place, 0, pod["spec"]["securityContext"]["fsGroup"])
                place.chmod(0o2775)
        if "configMap" in found:
            (filled,) = self._cluster.get(
                "configmap", found["configMap"]["name"], "--namespace", about["namespace"]
            )
            items = found["configMap"].get("items") or [{"key": x, "path": x} for x in filled["data"]]
            for item in items:
                (place / item["path"]).write_text(filled["data"][item["key"]])
        return place

    def start_agent(self, pod: Manifest, port: int | None = None) -> None:
        """Start the sidecar and wait for its start-up probe."""
        (container,) = (x for x in pod["spec"]["initContainers"] if x["name"] == "statewarden")
        port = port or free_port()
        command = self._command(pod, container)
        environment = {**self._environment(pod, container), "STATEWARDEN_LISTEN": f"127.0.0.1:{port}"}
        log = self._home / f"{pod['metadata']['name']}-statewarden.log"
        with log.open("wb") as out:
            agent = subprocess.Popen(command, env=environment, stdout=out, stderr=subprocess.STDOUT)
        self._running.append(agent)

        path = container["startupProbe"]["httpGet"]["path"]
        probe = f"http://127.0.0.1:{port}{path}"

        def is_ready() -> bool:
            assert agent.poll() is None, log.read_text(errors="replace")[-3000:]
            return answered(probe) is not None

        wait_until(is_ready, READY_S)

    def run_to_end(self, pod: Manifest, logs: Mapping[str, Path], *arguments: str) -> dict[str, int]:
        """Run all containers of a Job's pod in their order, until one fails; give their exit codes.

        `logs`: container -> file that gets what it prints, as a container runtime writes it.
        """
        codes: dict[str, int] = {}
        for container in (*pod["spec"]["initContainers"], *pod["spec"]["containers"]):
            name = container["name"]
            with (
                logs.get(name, self._home / f"{name}.log").open("w") as log,
                subprocess.Popen(
                    [*self._command(pod, container), *arguments], env=self._environment(pod, container),
                    stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                ) as process,
            ):  # fmt: skip
                assert process.stdout is not None
                for line in process.stdout:
                    log.write(f"{_now()} stdout F {line}")
                    log.flush()
            codes[name] = process.returncode
            if process.returncode:
                break
        return codes

    def close(self) -> None:
        for process in self._running:
            process.terminate()
        for process in self._running:
            process.wait(READY_S)

    def _command(self, pod: Manifest, container: Manifest) -> list[str]:
        package = PROGRAMS[_image(container)]
        return [sys.executable, "-m", package, *(self._mapped(pod, container, x) for x in container["args"])]

    def _environment(self, pod: Manifest, container: Manifest) -> dict[str, str]:
        given = {x: value for x, value in os.environ.items() if not x.startswith(("AWS_", "STATEWARDEN_"))}
        own = {key: self._mapped(pod, container, x) for key, x in _variables(pod, container).items()}
        return {**given, "PYTHONPATH": str(ROOT), **self._beside[_image(container)], **own}

    def _mapped(self, pod: Manifest, container: Manifest, text: str) -> str:
        """Put the test's directory in the place of a mount, also behind `--option=`."""
        option, equals, path = text.rpartition("=")
        for mount in sorted(container["volumeMounts"], key=lambda x: -len(x["mountPath"])):
            if f"{path}/".startswith(f"{mount['mountPath']}/"):
                place = self.volume(pod, mount["name"])
                return f"{option}{equals}{place}{path.removeprefix(mount['mountPath'])}"
        return text


def _variables(pod: Manifest, container: Manifest) -> dict[str, str]:
    """Give the container's variables, with the fields of the pod that they name."""
    given = {}
    for variable in container.get("env", ()):
        if "valueFrom" in variable:
            place, _, key = variable["valueFrom"]["fieldRef"]["fieldPath"].partition(".")
            given[variable["name"]] = str(pod[place][key])
        else:
            given[variable["name"]] = variable.get("value", "")
    return given


def _image(container: Manifest) -> str:
    name: str = container["image"].rpartition("/")[2].partition(":")[0]
    return name


def _now() -> str:
    return f"{time.strftime('%Y-%m-%dT%H:%M:%S', time.gmtime())}.000000000Z"
