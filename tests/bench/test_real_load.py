"""The realistic load does on a disk what was recorded."""

from __future__ import annotations

import itertools
from pathlib import Path

from agent.inventory.disk import EntryKind, Unseen
from agent.replay.memory_disk import MemoryDisk
from tests.bench.bench_real import drive
from tests.bench.real_load import Recorded, load_recording, prepare, schedule
from tests.bench.tree_maker import APPLICATION
from tests.bench.versions import AFTER
from tests.bench.virtual import RECORDING

TASKS = 8
SECONDS = 40.0


def test_recording_is_long_enough_for_a_minute() -> None:
    """And it has a commit every 30 s, so that every task writes a checkpoint in any minute."""
    recorded = load_recording(RECORDING)
    assert recorded.end_us - recorded.begin_us > 60e6
    written = [
        x.at_us
        for x in recorded.operations
        if x.op == "rename" and x.to.endswith(f"{recorded.tasks[0]}/.checkpoint")
    ]
    inside = [at_us for at_us in written if recorded.begin_us < at_us < recorded.end_us]
    assert all(after - before < 31e6 for before, after in itertools.pairwise(inside))


def test_tasks_end_as_in_the_recording(tmp_path: Path) -> None:
    """Groups begin at different moments; each task then has the files, of the sizes, that its recorded one has."""
    recorded = load_recording(RECORDING)
    players = prepare(tmp_path, recorded, TASKS, SECONDS)
    assert len({begin_us for begin_us, _ in players}) == TASKS // len(recorded.tasks)
    for _, number, operation in schedule(recorded, players, SECONDS):
        players[number][1].play(operation)
    for begin_us, player in players:
        assert _sizes(tmp_path / APPLICATION / f"0_{player.number}") == _recorded_sizes(
            recorded, player.source, begin_us + SECONDS * 1e6
        )
        assert player.checkpoints
        assert player.notifications


def test_the_agent_follows_in_virtual_time() -> None:
    """Every last checkpoint is known, and the agent's own CPU was counted."""
    told = drive(AFTER, "4", "25")
    assert told["last_offsets"] == told["written_offsets"] > 0
    assert told["notifications"] > 0
    assert 0 < told["share_percent"] < 100


def _sizes(task: Path) -> dict[str, int]:
    return {
        str(x.relative_to(task)): x.stat().st_size
        for x in task.rglob("*")
        if x.is_file() and x.name != ".checkpoint"  # names another topic there
    }


def _recorded_sizes(recorded: Recorded, source: str, until_us: float) -> dict[str, int]:
    disk = MemoryDisk()
    for operation in recorded.operations:
        if operation.at_us < until_us:
            disk.apply(operation)
    found: dict[str, int] = {}
    todo = [source.rstrip("/")]
    while todo:
        path = todo.pop()
        entries = disk.list(path)
        for entry in () if isinstance(entries, Unseen) else entries:
            inner = f"{path}/{entry.name}"
            stat = disk.stat(inner)
            if entry.kind is EntryKind.DIRECTORY:
                todo.append(inner)
            elif entry.name != ".checkpoint" and not isinstance(stat, Unseen):
                found[inner[len(source) :]] = stat.size_bytes
    return found
