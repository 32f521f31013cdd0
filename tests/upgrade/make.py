"""Make the kept data of an older commit again: its own code writes it, in an environment of its own locks.

    python -m tests.upgrade.make 19b03ad

It writes `tests/data/upgrade/COMMIT`; that folder's README says what is in it. Needs the network for what that commit's
locks name (Spark included), a Java and about a minute. Ids of boots and times differ from run to run.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import tarfile
import tempfile
import threading
from collections.abc import Callable, Mapping
from pathlib import Path

from tests.bench.versions import ROOT, Version, older
from tests.upgrade import inside

DATA = ROOT / "tests" / "data" / "upgrade"
STATE = "kafka-20685-4.1.2.tar.gz"
"""A stopped state directory, which the agent watches."""

NOT_KEPT = ("lock", "reserve", "canary", "report.html", ".crc")
READY_S = 60


def main(commit: str) -> None:
    """Make everything.

    Args:
        commit: Name of the older commit.
    """
    old = older(commit)
    work = Path(tempfile.gettempdir()) / "statewarden-upgrade"
    target = work / "kept"
    shutil.rmtree(work, ignore_errors=True)
    target.mkdir(parents=True)
    python = _rollup_python(old.root)
    surface = json.loads(_run(old, python, "-c", inside.SURFACE))
    _write_json(target / "surface.json", surface)
    (target / "all.toml").write_text(_settings_file(surface), encoding="ascii")
    for chart in ("statewarden", "statewarden-sidecar"):
        shutil.copy(old.root / "helm" / chart / "values.yaml", target / f"{chart}.values.yaml")
    traces = old.root / "tests" / "data" / "traces"
    for name, trace in inside.REMEMBERED.items():
        home = work / "baselines" / name
        home.mkdir(parents=True)
        facts = [f"{key}={value}" for key, value in inside.FACTS.items()]
        _run(old, old.python, "-c", inside.BASELINE, str(traces / trace), str(home), *facts)
    _make_spool(old, work)
    findings = []
    for pod, trace in inside.FLEET.items():
        words = ("replay", str(traces / trace), "--pod", pod, "--json", "--events", str(work / "events"))
        findings += _agent(old, *words, *_sets()).splitlines()
    (target / "findings.jsonl").write_text("".join(f"{line}\n" for line in findings), encoding="ascii")
    _make_bronze(old, python, work)
    for name in ("spool", "baselines", "events", "bronze", "audit"):
        _pack(work / name, target / f"{name}.tar.gz")
    shutil.rmtree(DATA / commit, ignore_errors=True)
    shutil.move(target, DATA / commit)


def _rollup_python(root: Path) -> str:
    """Give an interpreter that has what that commit's locks name for the rollup, Java included."""
    python = root / ".venv-rollup" / "bin" / "python"
    if not python.exists():
        base = str(getattr(sys, "_base_executable", sys.executable))
        subprocess.run((base, "-m", "venv", str(python.parents[1])), check=True)
        locks = [word for name in ("rollup", "java") for word in ("-r", f"deploy/locks/{name}.txt")]
        install = (
            str(python),
            "-m",
            "pip",
            "install",
            "--quiet",
            "--disable-pip-version-check",
            "--require-hashes",
        )
        subprocess.run((*install, *locks), cwd=root, check=True)
    return str(python)


def _run(old: Version, python: str, *words: str, accepted: tuple[int, ...] = (0,)) -> str:
    """Run something of that commit and give what it prints."""
    done = subprocess.run((python, *words), cwd=old.root, capture_output=True, text=True, check=False)
    if done.returncode not in accepted:
        raise SystemExit(f"{' '.join(words[:3])} ended with {done.returncode}:\n{done.stderr[-2000:]}")
    return done.stdout


def _agent(old: Version, *words: str) -> str:
    return _run(old, old.python, "-m", "agent", *words, accepted=(0, 1))


def _sets() -> list[str]:
    return [word for key, value in inside.FACTS.items() for word in ("--set", f"{key}={value}")]


def _settings_file(surface: Mapping[str, Mapping[str, object]]) -> str:
    """Write every setting with its default, and a value for every fact."""
    lines = []
    for group, settings in surface["settings"].items():
        assert isinstance(settings, dict)
        lines += [f"[{group}]", *(f"{name} = {json.dumps(value)}" for name, value in settings.items()), ""]
    lines += ["[application]", *(f'{name} = "{inside.SAMPLE.get(name, "1")}"' for name in surface["facts"])]
    return "\n".join(lines) + "\n"


def _make_spool(old: Version, work: Path) -> None:
    """Let agents leave a spool: four boots, a segment that was rejected, one damaged, the last boot killed."""
    spool, state = work / "spool", work / "state"
    with tarfile.open(old.root / "tests" / "data" / "snapshots" / STATE) as archive:
        archive.extractall(state, filter="data")
    (work / "small.toml").write_text("[ship]\nseal_kib = 16\n", encoding="ascii")

    def boot(number: int, number_signal: signal.Signals) -> None:
        words = (
            "run",
            str(state),
            "--spool",
            str(spool),
            "--listen",
            "",
            "--config",
            str(work / "small.toml"),
        )
        who = ("--pod", "pod-a", "--namespace", "shop", "--pod-uid", "uid-a", *_sets())
        log = work / f"boot-{number}.log"
        with log.open("wb") as output:
            agent = subprocess.Popen((old.python, "-m", "agent", *words, *who), cwd=old.root, stdout=output)
            try:
                _wait_until(lambda: b'"preflight: ' in log.read_bytes())
                agent.send_signal(number_signal)
                agent.wait(READY_S)
            finally:
                agent.kill()

    for number in range(3):
        boot(number, signal.SIGTERM)
    _run(old, old.python, "-c", inside.SET_ASIDE, str(spool))
    boot(3, signal.SIGKILL)


def _wait_until(is_true: Callable[[], bool]) -> None:
    pause = threading.Event()
    for _ in range(READY_S * 20):
        if is_true():
            return
        pause.wait(0.05)
    raise SystemExit(f"not true after {READY_S} s")


def _make_bronze(old: Version, python: str, work: Path) -> None:
    """Let the rollup ingest, sum up and audit; one line is no event."""
    (work / "events" / "bad.jsonl").write_text("{broken\n", encoding="ascii")
    bronze = str(work / "bronze")
    for words in (
        ("ingest", "--input", str(work / "events"), "--bronze", bronze),
        ("compact", "--snapshots", "--bronze", bronze),
        ("audit", "--input", bronze, "--output", str(work / "audit")),
    ):
        _run(old, python, "-m", "spark_rollup", *words, accepted=(0, 1))


def _pack(source: Path, target: Path) -> None:
    """Pack a folder's files with their times, without what says nothing."""

    def kept(entry: tarfile.TarInfo) -> tarfile.TarInfo | None:
        entry.uid = entry.gid = 0
        entry.uname = entry.gname = ""
        parts = Path(entry.name).parts
        return None if any(part.endswith(NOT_KEPT) for part in parts) else entry

    with tarfile.open(target, "w:gz", compresslevel=9) as archive:
        archive.add(source, arcname=".", filter=kept)


def _write_json(path: Path, value: object) -> None:
    path.write_text(json.dumps(value, indent=1, sort_keys=True) + "\n", encoding="ascii")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        prog="tests.upgrade.make", description=__doc__.partition("\n")[0] if __doc__ else ""
    )
    parser.add_argument("commit", help="the older commit")
    chosen = parser.parse_args()
    os.chdir(ROOT)
    main(chosen.commit)
