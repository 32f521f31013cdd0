"""A small world for commands: a recorded state directory, its events, an audit's output, a held directory."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Iterator, Mapping, Sequence
from io import StringIO
from pathlib import Path
from time import time
from typing import Any

from agent.cli import main as agent
from spark_rollup import __version__
from spark_rollup.registry import NAMING
from spark_rollup.report import last_audit
from spark_rollup.report.restart_answer import Known
from spark_rollup.spark.outputs import MARKER
from tests.agent.ship.ship_support import HandClock, finding, open_spool
from tests.docs.pages import ROOT

RECORDED, UNPROVEN = "kafka-20685-4.1.2", "exposure-20685-crash-committed-4.1.2"
APPLICATION, TASK, STORE, POD = "kafka-20685-4-1-2-014328", "0_0", "s", "pod-7"
SETTINGS = ("--set", "processing_guarantee=exactly_once_v2", "--set", "kafka_streams_version=4.1.2")
WRITTEN = "2026-11-23T07:21:00.000000Z"
HOLDER = """
import fcntl, pathlib, sys
held = [path.open("r+") for path in pathlib.Path(sys.argv[1]).rglob("*") if path.name in (".lock", "LOCK")]
for file in held:
    fcntl.lockf(file, fcntl.LOCK_EX)
print("held", flush=True)
sys.stdin.read()
"""


World = Mapping[str, str]
"""Paths and ids, by the names that `table.toml` uses."""


@contextlib.contextmanager
def world(place: Path) -> Iterator[World]:
    """Make it below a directory, and let go of the held one at the end."""
    state, live = place / "state", place / "live"
    unpacked(state)
    shutil.copytree(state, live, copy_function=shutil.copy2)
    findings = _replayed(recorded(RECORDED), place / "events")
    (damage,) = (row for row in findings if row["detector"] == "skipped-eos-wipe")
    (place / "statewarden.toml").write_text(
        '[application."orders"]\nprocessing_guarantee = "exactly_once_v2"\n'
    )
    with open_spool(place / "spool", HandClock()) as spool:
        spool.append(finding())
        spool.seal()
    audits = {name: str(audited(place / name, name)) for name in AUDITS}
    values = {
        "state": str(state), "live": str(live), "events": str(place / "events"), "place": str(place),
        "unproven": str(recorded(UNPROVEN)),
        "incident": str(damage["incident_id"]), "finding": str(damage["id"]),
        "application": APPLICATION, "task": TASK, "store": STORE, "pod": POD, **audits,
    }  # fmt: skip
    with _held(live):
        yield values


def recorded(scenario: str) -> Path:
    """Give the trace of a recorded run."""
    return ROOT / "tests" / "data" / "traces" / scenario / "trace-pod-a.jsonl.gz"


def unpacked(state: Path) -> None:
    """Unpack the directory of a killed pod, and give it a second task in the same condition."""
    with tarfile.open(ROOT / "tests" / "data" / "snapshots" / f"{RECORDED}.tar.gz") as archive:
        archive.extractall(state, filter="data")
    first, second = state / APPLICATION / TASK, state / APPLICATION / "0_3"
    shutil.copytree(first, second, copy_function=shutil.copy2)
    for name, old, new in (
        (".checkpoint", "changelog 0", "changelog 3"),
        (f"rocksdb/{STORE}/IDENTITY", "e66c", "e66d"),
    ):
        path = second / name
        path.write_text(path.read_text().replace(old, new))
        times = (first / name).stat()
        os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
    (state / APPLICATION / "kafka-streams-process-metadata").write_text(
        '{"processId":"b94ea365-6889-4fc5-9011-3b93f5624cca"}'
    )


def _replayed(trace: Path, events: Path) -> list[dict[str, Any]]:
    said = StringIO()
    with contextlib.redirect_stdout(said):
        agent(["replay", str(trace), "--pod", POD, "--events", str(events), "--json", *SETTINGS])
    rows = [json.loads(line) for line in said.getvalue().splitlines()]
    return [row for row in rows if row["line"] == "finding"]


@contextlib.contextmanager
def _held(directory: Path) -> Iterator[None]:
    """Hold all locks of a directory, as the application does."""
    with subprocess.Popen(
        [sys.executable, "-SE", "-c", HOLDER, str(directory)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"held\n"
        yield
        holder.communicate()


# -- what audits leave, as far as it is read without Spark ----------------------------------------------

CLEAN = {
    "namespace": "shop", "application_id": "orders", "pod": POD, "answer": "clean-stop-only",
    "kinds": ["clean-stop-only", "restore"], "follow": [], "first_action": None, "healthy_elsewhere": [],
    "ill_elsewhere": ["pod-6 (not held)"], "restore_bytes": 167936, "doubt": None,
    "unclean_stop": "uncommitted records may stay in the store and are trusted (KAFKA-20685)",
}  # fmt: skip
ILL = CLEAN | {
    "answer": "damaged", "kinds": ["damaged", "clean-stop-only", "restore"], "follow": ["stale-eos-state"],
    "first_action": "Do this for tasks 0_1, 0_3 in one stop: copy all directories, remove all, and only then start."
    f" For each task: Leave the volume of {POD} where it is. There, for task 0_1: Check it first, beside the running"
    " application or on a stopped one",
}  # fmt: skip
IDLE = CLEAN | {"pod": "pod-6", "answer": "not-running", "kinds": ["not-running"], "ill_elsewhere": []}

AUDITS: Mapping[str, tuple[int, Sequence[Mapping[str, object]]]] = {
    "out": (7, [CLEAN | {"task_id": "0_0"}, CLEAN | {"task_id": "0_2"}]),
    "out_damaged": (6, [ILL | {"task_id": "0_1"}, ILL | {"task_id": "0_3"}]),
    "out_old": (
        16,
        [
            *(CLEAN | {"task_id": task, "kinds": ["clean-stop-only"]} for task in ("0_0", "0_2")),
            *(CLEAN | {"task_id": task, "kinds": ["restore"]} for task in ("0_1", "0_3")),
            *(IDLE | {"task_id": task, "kinds": ["restore"]} for task in ("1_0", "1_1")),
            *(IDLE | {"task_id": task} for task in ("0_0", "0_2")),
        ],
    ),
}
"""Name -> age in minutes, and rows of the table `restarts`, as the application of docs/journeys.md had them."""


def audited(place: Path, name: str) -> Path:
    """Leave what an audit leaves."""
    age_min, rows = AUDITS[name]
    place.mkdir()
    pods = [{"namespace": "shop", "pod": pod, "doubt": None, "gone": False} for pod in ("pod-6", POD)]
    as_of_us = int(time() * 1e6) - age_min * 60_000_000
    last_audit.write(Known(rows, pods, [], as_of_us, verified=False), WRITTEN, place)
    (place / MARKER).write_text(json.dumps({"written": WRITTEN, "version": __version__}))
    for name, rows in (
        ("findings", [{"detector": meta.id} for meta in NAMING]),
        ("verdicts", [{"task_id": TASK}]),
    ):
        lines = [
            json.dumps(row, separators=(",", ":")) for row in rows
        ]  # as report/write.py and verify/run.py do
        (place / f"{name}.jsonl").write_text("".join(f"{line}\n" for line in lines))
    return place
