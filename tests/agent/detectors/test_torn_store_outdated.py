"""Detector `torn-store`: a backup was put over a newer directory, and the checkpoint stayed (up to 4.2)."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from agent.cli import main
from agent.inventory.disk import LockState, Unseen
from agent.inventory.observations import LaterFile, StoreOffsets
from agent.judging.base import TaskCase
from agent.layout import names
from agent.layout.checkpoint import OffsetEntry
from agent.layout.paths import PathRole, classify
from agent.observe.rocksdb.later import later_file
from agent.observe.rocksdb.manifest import ManifestCache, read_manifest
from agent.observe.rocksdb.replay import ManifestView
from agent.replay.memory_disk import MemoryDisk
from agent.replay.trace import read_trace
from tests.support.every import every
from tests.support.scenario_case import at, case, checkpoint, database, judge, store, task
from tests.support.scenario_looks import FREE, HELD, Reducing, checkpoint_look, database_look, task_look
from tests.support.tables import LIKELY, QUIET, SUSPECTED, said, table

ID = "torn-store"
TRACES = Path(__file__).parents[2] / "data" / "traces"
IN_STORE = "the offset is in the store (4.3 and later), and as old as its manifest"
KILLED = "a kill left it: it is no older than the checkpoint"


def dossier(
    written: float = 49.9,
    offset: int | None = 9999,
    *,
    found: float = 100,
    release: str | None = "4.1.2",
    guarantee: str = "exactly_once_v2",
    held: bool | None = False,
    offsets: StoreOffsets | None = None,
    **fields: Any,
) -> TaskCase:
    """A flush of `written` that the manifest does not know, found beside a checkpoint of 50; judged at 1000."""
    later = LaterFile("000009.sst", at(written), at(found))
    put_over = database(puts=5000, flushed=[(5000, 10)], later=later, offsets=offsets, **fields)
    one = task(store([put_over]), checkpoints=[checkpoint(50, offset)], held=held)
    return case(one, now=1000, release=release, guarantee=guarantee)


@table(ID, "one, expected", {
    **{f"{x}, {y}": (dossier(release=x, guarantee=y), LIKELY)
       for x in ("2.0.1", "2.8.2", "3.6.2", "3.9.2", "4.1.2", "4.2.1", "4.3.1", "4.4.0", None)
       for y in ("exactly_once_v2", "at_least_once")},
    "4.3 wrote it": (dossier(release="4.3.1", offsets=StoreOffsets()), IN_STORE),
    "4.3 wrote it, and 4.2 is told": (dossier(release="4.2.1", offsets=StoreOffsets()), IN_STORE),
    "killed in a flush": (dossier(50.1), KILLED),
    "killed in a flush, in the same moment": (dossier(50), KILLED),
    "the store has no changelog": (dossier(offset=None), "no offset of the store is trusted"),
    "nothing is claimed": (dossier(offset=-4), "no offset of the store is trusted"),
    "it kept no file times": (dossier(born=55, oldest_data_us=at(5)), "file times are those of a copy"),
    "held": (dossier(held=True), "a process may have it open"),
    "held by whom nobody can say": (dossier(lock=LockState.UNKNOWN), "a process may have it open"),
    "a copy that may go on": (dossier(found=998), "a deletion may go on"),
    "found a moment ago": (dossier(found=950), SUSPECTED),
})  # fmt: skip
def test_limits(one, expected):
    assert said(ID, one) == expected


def test_a_global_store():
    """Its checkpoint names topics; one that has none claims nothing."""
    one = dossier(offset=None)
    one.task.id = names.GLOBAL_DIRECTORY
    one.task.checkpoints[-1].foreign = (OffsetEntry("prices", 0, 77),)
    (verdict,) = judge(ID, one)
    assert "(offset 77)" in verdict.summary


def test_it_ends_with_the_next_open():
    """Then RocksDB has deleted the file: it was the last moment."""
    one, later = Reducing(), LaterFile("000009.sst", at(2), at(10))
    one.see(task_look(0.5), checkpoint_look(3, {"s": 9999}))
    for seconds, lock, seen in (
        (10, FREE, later),
        (90, FREE, LaterFile("000009.sst", at(2), at(90))),
        (95, HELD, None),
    ):
        look = database_look(seconds, born=1, lock=lock)
        one.see(having_later(look, seen))
        judged = case(one.task, application=one.application, now=seconds + 10)
        expected = {10: SUSPECTED, 90: LIKELY, 95: QUIET}[seconds]
        assert [(x.severity, x.confidence) for x in judge(ID, judged)] == expected, seconds


def having_later(look: Any, later: LaterFile | None) -> Any:
    """The same look, with a later file."""
    object.__setattr__(look, "later", later)
    return look


@pytest.mark.slow
@every("trace", sorted(TRACES.glob("*/trace-*")), ids=lambda x: f"{x.parent.name}/{x.name}")
def test_no_kill_of_a_recorded_run_looks_like_it(trace):
    """When a checkpoint is there, RocksDB has named all that it finished before: whatever follows is younger."""
    disk, cache, databases = MemoryDisk(), ManifestCache(), set()
    for operation in read_trace(trace):
        disk.apply(operation)
        place = classify(operation.to or operation.path)
        if place.database:
            databases.add(place.database)
        if place.role is not PathRole.CHECKPOINT:
            continue
        written = disk.stat(place.path)
        for path in [x for x in databases if x.startswith(f"{place.task_path}/")]:
            listed, view = disk.list(path), read_manifest(disk, path, cache)
            if (
                isinstance(written, Unseen)
                or isinstance(listed, Unseen)
                or not isinstance(view, ManifestView)
            ):
                continue
            later, _ = later_file(disk, path, [x.name for x in listed], view, 0)
            assert later is None or later[0] >= written.mtime_us, (path, operation.at_us)


@pytest.fixture
def put_over(tmp_path: Path) -> Path:
    """A state directory over which a backup of its running store was put, without removing it first."""
    rocksdict = pytest.importorskip("rocksdict", reason="the extra `verify` is not installed")
    state, backup = tmp_path / "state", tmp_path / "backup"
    task_path = state / "orders" / "0_0"
    place = task_path / "rocksdb" / "s"
    place.parent.mkdir(parents=True)
    (state / "orders" / ".lock").touch()
    store = rocksdict.Rdict(str(place))
    for life in ("backup", "later"):
        for number in range(100):
            store[f"{life}{number}"] = "value"
        store.flush()
        if life == "backup":
            shutil.copytree(place, backup)
    store.close()
    (task_path / ".checkpoint").write_text("0\n1\norders-s-changelog 0 199\n", "utf-8")
    for back, path in enumerate([task_path / ".checkpoint", *sorted(place.glob("*.sst"), reverse=True)]):
        age(path, 20 + back)
    for path in backup.iterdir():
        age(path, 60)
        shutil.copy2(path, place)
    return state


def age(path: Path, seconds: float) -> None:
    """Set a file's time back."""
    os.utime(path, (path.stat().st_mtime - seconds,) * 2)


@pytest.mark.parametrize("guarantee", ["exactly_once_v2", "at_least_once"])
@pytest.mark.parametrize("release", ["2.8.2", "3.9.2", "4.1.2", "4.3.1", None])
def test_a_scan_finds_it(put_over, release, guarantee, capsys):
    """RocksDB would open half of it, and the start would trust the offset of the whole, or move it into the store."""
    told = [f"processing_guarantee={guarantee}", *([f"kafka_streams_version={release}"] if release else [])]
    code = main(["scan", str(put_over), "--json", *(x for one in told for x in ("--set", one))])
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    found = [x for x in rows if x["line"] == "finding" and x["detector"] == ID]
    assert [(x["severity"], x["confidence"], x["store"]) for x in found] == [("critical", "suspected", "s")]
    assert code == 1
