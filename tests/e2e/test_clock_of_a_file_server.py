"""Recorded runs on a file server whose clock differs: the same verdicts, and load moves nothing."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from itertools import repeat
from pathlib import Path

import pytest

from agent.contract.events import Record
from agent.engine.pipeline import Pipeline
from agent.inventory.disk import FileStat, Unseen
from agent.inventory.hints import Hint, HintKind
from agent.inventory.model import Inventory
from agent.inventory.settings import Setting, SettingsBook
from agent.replay.memory_disk import MemoryDisk
from agent.replay.run import first_time_us, replay

DATA = Path(__file__).resolve().parents[1] / "data" / "traces"
LOST = "kafka-20685-4.1.2"
QUIET_US = 120_000_000


class ServedDisk(MemoryDisk):
    """Every file has the time of the file server's clock."""

    def __init__(self, ahead_s: float) -> None:
        """Be ahead by some seconds, or behind."""
        super().__init__()
        self._ahead_us = round(ahead_s * 1_000_000)

    def stat(self, path: str) -> FileStat | Unseen:
        """Stat one entry."""
        found = super().stat(path)
        return (
            found if isinstance(found, Unseen) else found._replace(mtime_us=found.mtime_us + self._ahead_us)
        )


class WholeSecondsDisk(MemoryDisk):
    """Every file has a time of whole seconds."""

    def stat(self, path: str) -> FileStat | Unseen:
        """Stat one entry."""
        found = super().stat(path)
        return (
            found if isinstance(found, Unseen) else found._replace(mtime_us=found.mtime_us // 10**6 * 10**6)
        )


def watched(
    name: str,
    ahead_s: float,
    *,
    volume: str = "network",
    delays: Iterator[int] | None = None,
    disk: MemoryDisk | None = None,
) -> Pipeline:
    """Replay a recording on such a volume."""
    folder = DATA / name
    settings = json.loads((folder / "scenario.json").read_text("utf-8"))["settings"]
    trace = min(folder.glob("trace-*.jsonl.gz"))
    disk, records = disk or ServedDisk(ahead_s), list[Record]()
    book = SettingsBook({key: Setting(str(value), "flag") for key, value in settings.items()})
    pipeline = Pipeline(disk, book, first_time_us(trace), records.append)
    pipeline.inventory.volume = volume
    replay(trace, pipeline, disk, QUIET_US, delays=delays)
    return pipeline


def severe(pipeline: Pipeline) -> list[tuple[str, str | None, str, str]]:
    """What was found of warning and above."""
    return sorted(
        (x.detector, x.task_id, x.severity.value, x.confidence.value)
        for x in pipeline.ledger.findings()
        if x.severity.rank >= 1
    )


@pytest.mark.parametrize("ahead_s", [-5, -3, -1, -0.5, -0.3, 0.3, 0.5, 1, 2, 3, 5, 120])
def test_loss_is_as_severe(ahead_s: float) -> None:
    """The example of the README, by a clock that is off by up to two minutes."""
    one = watched(LOST, ahead_s)
    assert one.inventory.ahead_us == pytest.approx(ahead_s * 1_000_000, abs=100_000)
    assert severe(one) == severe(watched(LOST, 0))
    assert ("skipped-eos-wipe", "0_0", "critical", "suspected") in severe(one)


@pytest.mark.parametrize("ahead_s", [-3, 3])
@pytest.mark.parametrize("name", ["benign-restart-eos-4.1.2", "control-crash-in-restore-4.1.2"])
def test_benign_run_stays_quiet(name: str, ahead_s: float) -> None:
    """A difference of clocks is no loss."""
    assert severe(watched(name, ahead_s)) == severe(watched(name, 0))


@pytest.mark.parametrize(
    "name",
    [
        LOST,
        "benign-upgrade-2.3.1-to-2.5.1-to-2.8.2",
        "kafka-16017-3.6.1",
        "kafka-8187-stage2-2.0.1",
        "revived-table-4.3.1",
    ],
)
def test_whole_seconds_change_nothing(name: str) -> None:
    """A small ext4 volume keeps no parts of a second: what is announced has the time at which it was heard of."""
    whole = watched(name, 0, volume="local", disk=WholeSecondsDisk())
    assert severe(whole) == severe(watched(name, 0, volume="local"))


@pytest.mark.parametrize("delay_us", [300_000, 3_000_000])
def test_load_moves_nothing_on_a_local_volume(delay_us: int) -> None:
    """There the clock is the node's own, however late an announcement is followed; and no verdict is another one."""
    busy = watched(LOST, 0, volume="local", delays=repeat(delay_us))
    assert busy.inventory.ahead_us is None
    assert busy.looker.observer.ahead_us == 0
    as_served = watched(
        LOST, 0, delays=repeat(delay_us)
    )  # announcements bear the time at which they were read
    assert severe(busy) == severe(as_served)
    assert as_served.inventory.ahead_us == 0


def test_difference_outlives_the_agent() -> None:
    """What an earlier agent dated by it is compared with files that are dated by it."""
    known = watched(LOST, 3).inventory
    later = Pipeline(ServedDisk(3), SettingsBook({}), 0, list[Record]().append)
    later.resume(replace(Inventory(), ahead_us=known.ahead_us), [], 0, "it was stopped")
    assert later.looker.observer.ahead_us == known.ahead_us == later.inventory.ahead_us


def test_file_that_is_gone_or_written_on_shows_nothing() -> None:
    """Only a file that is written once still has the time of its announcement."""
    pipeline = watched(LOST, 0)
    pipeline.inventory.ahead_us = None
    pipeline.file_clock.note(Hint("app/0_0/rocksdb/s/000009.sst", HintKind.WRITTEN, 5))
    pipeline.file_clock.note(Hint("app/0_0/.checkpoint", HintKind.MOVED_IN, 5))
    pipeline.file_clock.note(Hint("app/0_0/rocksdb/s/000009.sst", HintKind.CREATED, 5))
    assert pipeline.inventory.ahead_us is None
