"""The driver that repeats recorded traces on a real directory: same files, same locks, nothing left behind."""

from __future__ import annotations

import base64
import fcntl
import gzip
import json
import os
import struct
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from agent.inventory.disk import Disk, EntryKind, Unseen
from agent.observe.kernel_disk import KernelDisk
from agent.replay.memory_disk import MemoryDisk
from agent.replay.trace import read_trace as operations_of
from deploy.demo.materialise import (
    MaterialiseError,
    Materialiser,
    Progress,
    Timeline,
    materialise_fleet,
    read_trace,
)

TRACES = Path(__file__).parents[1] / "data" / "traces"
FLOCK = "hhqqi4x"  # struct flock on 64-bit Linux


def lock_owner(path: Path) -> int | None:
    """Ask who holds a write lock on a file."""
    with path.open("rb") as file:
        answer = fcntl.fcntl(file, fcntl.F_GETLK, struct.pack(FLOCK, fcntl.F_RDLCK, os.SEEK_SET, 0, 0, 0))
    kind, _, _, _, pid = struct.unpack(FLOCK, answer)
    return None if kind == fcntl.F_UNLCK else int(pid)


def write_trace(path: Path, *operations: dict[str, Any]) -> Path:
    """Write a trace whose operations are one second apart."""
    with gzip.open(path, "wt", encoding="utf-8") as lines:
        lines.writelines(json.dumps({"t": 1000.0 + at, **op}) + "\n" for at, op in enumerate(operations))
    return path


def op(kind: str, path: str = "", **fields: Any) -> dict[str, Any]:
    return {"op": kind, "path": path, **fields}


def text(data: str) -> str:
    return base64.b64encode(data.encode()).decode()


START = {"op": "start", "pid": 1, "version": "4.1.2", "note": ""}
KILLED = {"op": "exit", "how": "killed", "pid": 1}
CLEAN = {"op": "exit", "how": "clean", "pid": 1}
HELD = [op("create", "LOCK"), op("open_w", "LOCK"), op("lock", "LOCK")]
"""A lock file is made and held."""


def noting(owners: list[int | None], file: Path, *kinds: str) -> Callable[[Progress], None]:
    """Give what notes who holds a lock after each operation of these kinds."""
    return lambda progress: owners.append(lock_owner(file)) if progress.operation["op"] in kinds else None


def run(tmp_path: Path, *operations: dict[str, Any], at: Callable[[Progress], None] | None = None) -> Path:
    """Repeat a hand-made trace as fast as possible; return the directory."""
    trace = write_trace(tmp_path / "trace.jsonl.gz", *operations)
    Materialiser(trace, tmp_path / "state", 1e6, on_progress=at).run()
    return tmp_path / "state"


def tree(disk: Disk, path: str = "") -> dict[str, bytes | None]:
    """Give the content of every file, None for a directory."""
    entries = disk.list(path)
    assert not isinstance(entries, Unseen)
    found: dict[str, bytes | None] = {}
    for entry in entries:
        child = f"{path}/{entry.name}".lstrip("/")
        content = None if entry.kind is EntryKind.DIRECTORY else disk.read_at(child, 0, 1 << 30)
        assert not isinstance(content, Unseen)
        found |= {child: content} | (tree(disk, child) if content is None else {})
    return found


@pytest.mark.parametrize(
    "trace",
    [
        "kafka-8187-stage2-2.0.1/trace-pod-a",
        "torn-clean-3.9.2/trace-pod-a",
        "dirty-close-kill-4.3.1/trace-pod-a",
    ],
)
def test_the_final_tree_equals_a_plain_replay(tmp_path: Path, trace: str) -> None:
    """Paths and contents after the last operation are those that the trace describes."""
    path = TRACES / f"{trace}.jsonl.gz"
    timeline = Timeline(read_trace(path)[0]["t"], speed=1000)
    outcome = Materialiser(path, tmp_path / "state").run(timeline)
    assert outcome.operations == len(read_trace(path))
    plain = MemoryDisk()
    for x in operations_of(path):
        plain.apply(x._replace(path=timeline.shift_path(x.path), to=timeline.shift_path(x.to)))
    assert tree(plain)
    assert tree(KernelDisk(tmp_path / "state")) == tree(plain)


def test_a_lock_belongs_to_a_child_and_goes_when_it_is_killed(tmp_path: Path) -> None:
    """A recorded lock is a real one held by another process; the SIGKILL releases it."""
    owners: list[int | None] = []
    look = noting(owners, tmp_path / "state" / "LOCK", "lock", "open_r", "exit")
    run(tmp_path, START, *HELD, op("open_r", "LOCK"), op("unlock", "LOCK", by="exit"), KILLED, at=look)
    held, after_open, after_kill = owners
    assert held is not None
    assert held != os.getpid()
    assert after_open == held
    assert after_kill is None


def test_an_unlock_releases_before_the_close(tmp_path: Path) -> None:
    """A recorded unlock is done by itself, while the file stays open."""
    owners: list[int | None] = []
    look = noting(owners, tmp_path / "state" / "LOCK", "lock", "unlock")
    run(tmp_path, START, *HELD, op("unlock", "LOCK"), op("close_w", "LOCK"), CLEAN, at=look)
    held, after_unlock = owners
    assert held is not None
    assert after_unlock is None


def test_a_deleted_file_keeps_its_descriptor(tmp_path: Path) -> None:
    """Operations on a file without a name act on it, not on the new file of the same name."""
    state = run(
        tmp_path, START, *HELD, op("unlink", "LOCK"), op("create", "LOCK"), op("open_w", "LOCK"),
        op("write", "LOCK", b64=text("old"), deleted=True), op("write", "LOCK", b64=text("new")),
        op("unlock", "LOCK", deleted=True), op("close_w", "LOCK", deleted=True), op("close_w", "LOCK"), CLEAN,
    )  # fmt: skip
    assert (state / "LOCK").read_text() == "new"


def test_positioned_and_sequential_writes_share_a_file(tmp_path: Path) -> None:
    """A write with an offset leaves the descriptor's position alone; append and truncate do what they say."""
    state = run(
        tmp_path, START, op("create", "f"), op("open_w", "f"),
        op("write", "f", b64=text("abc")), op("write", "f", b64=text("Z"), off=0), op("write", "f", b64=text("de")),
        op("truncate", "f", size=4), op("close_w", "f"),
        op("open_w", "f", append=True), op("write", "f", b64=text("!")), op("utime", "f"), op("close_w", "f"),
        op("create", "empty"), op("open_r", "empty"), CLEAN,
    )  # fmt: skip
    assert (state / "f").read_text() == "Zbcd!"
    assert (state / "empty").read_bytes() == b""


def test_old_log_names_move_to_the_new_clock() -> None:
    """`LOG.old.<us>` says when the rename happens now, at the chosen speed; other names stay."""
    timeline = Timeline(recorded_at=1000.0, speed=2.0, started_at=5000.0)
    assert (
        timeline.shift_path("app/0_0/rocksdb/s/LOG.old.1010000000") == "app/0_0/rocksdb/s/LOG.old.5005000000"
    )
    assert timeline.shift_path("app/0_0/rocksdb/s/LOG") == "app/0_0/rocksdb/s/LOG"
    assert timeline.shift_path("app/LOG.old.12/s") == "app/LOG.old.12/s"


def test_an_operation_that_cannot_be_repeated_is_named(tmp_path: Path) -> None:
    """The error says which operation failed and why, and the child is gone."""
    owners: list[int | None] = []
    look = noting(owners, tmp_path / "state" / "LOCK", "lock")
    with pytest.raises(MaterialiseError, match=r"'path': 'missing'.*FileNotFoundError"):
        run(tmp_path, START, *HELD, op("unlink", "missing"), at=look)
    assert owners[0] is not None
    assert lock_owner(tmp_path / "state" / "LOCK") is None


def test_an_operation_outside_a_run_is_an_error(tmp_path: Path) -> None:
    """Nobody can do an operation while no process runs."""
    with pytest.raises(MaterialiseError, match="mkdir of app outside a process run"):
        run(tmp_path, op("mkdir", "app"))


def test_stopping_early_ends_the_child(tmp_path: Path) -> None:
    """A replay that is stopped does no further operation and leaves no lock behind."""
    stop = threading.Event()
    trace = write_trace(tmp_path / "trace.jsonl.gz", START, *HELD, op("mkdir", "late"))

    def end(progress: Progress) -> None:
        if progress.operation["op"] == "lock":
            stop.set()

    Materialiser(trace, tmp_path / "state", 1e6, on_progress=end, stop=stop).run()
    assert lock_owner(tmp_path / "state" / "LOCK") is None
    assert not (tmp_path / "state" / "late").exists()


def test_a_fleet_shares_one_clock(tmp_path: Path) -> None:
    """The time that each pod reports counts from the first operation of the whole fleet."""
    early = write_trace(tmp_path / "a.jsonl.gz", START, op("mkdir", "app"), CLEAN)
    late = write_trace(tmp_path / "b.jsonl.gz", START, op("mkdir", "app"), CLEAN, START, CLEAN)
    with gzip.open(late, "rt", encoding="utf-8") as lines:
        moved = [json.loads(line) for line in lines]
    with gzip.open(late, "wt", encoding="utf-8") as out:
        out.writelines(json.dumps(operation | {"t": operation["t"] + 100}) + "\n" for operation in moved)
    seen: dict[str, list[float]] = {"a": [], "b": []}
    outcomes = materialise_fleet(
        {"a": (early, tmp_path / "state-a"), "b": (late, tmp_path / "state-b")},
        1e6,
        lambda progress: seen[progress.pod].append(progress.elapsed_s),
    )
    assert seen == {"a": [0, 1, 2], "b": [100, 101, 102, 103, 104]}
    assert {pod: outcome.operations for pod, outcome in outcomes.items()} == {"a": 3, "b": 5}
    assert (tmp_path / "state-b" / "app").is_dir()


def test_one_failing_pod_ends_the_fleet(tmp_path: Path) -> None:
    """An error on one pod stops the others at once, whatever their schedule."""
    bad = write_trace(tmp_path / "bad.jsonl.gz", op("mkdir", "app"))
    long = write_trace(tmp_path / "long.jsonl.gz", START, *[op("mkdir", f"d{n}") for n in range(3000)])
    with pytest.raises(MaterialiseError):
        materialise_fleet({"bad": (bad, tmp_path / "a"), "long": (long, tmp_path / "b")})
    assert not (tmp_path / "b" / "d2999").exists()
