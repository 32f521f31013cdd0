"""The walk that never ends: what it finds, what it spends, and whom it visits first."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import pytest

from agent.contract.events import Source
from agent.inventory.disk import Unseen
from agent.lookout.walk import DEEP_EVERY, HOT_US, POLLING, SLICE_S, WATCHING, Pace, Reconciler
from tests.agent.engine.playing import (
    Run,
    application,
    checkpoint,
    deletion,
    kill,
    opening,
    second,
)

FAST = Pace(10.0, 1.0, 1e9)
COST_S = 0.0001


class CostlyDisk:
    """A disk on which every question takes a tenth of a millisecond of the clock."""

    def __init__(self, disk: Any) -> None:
        self.disk = disk
        self.now_s = 0.0
        self.asked: list[str] = []

    def stamps(self, directories: Iterable[str]) -> tuple[int, ...] | Unseen:
        asked = [*directories]
        self.now_s += COST_S * len(asked)
        self.asked += asked
        return self.disk.stamps(asked)

    def list(self, path: str) -> Any:
        self.now_s += COST_S
        return self.disk.list(path)


@dataclass
class Walk:
    """A reconciler on a run, turned by hand."""

    run: Run
    pace: Pace = FAST
    found: list[tuple[list[str], int]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.disk = CostlyDisk(self.run.disk)
        disk: Any = self.disk
        self.walk = Reconciler(self.run.pipeline, disk, self.pace, lambda: self.disk.now_s, self._on_found)
        self.walk.step(self.run.now_us)

    def _on_found(self, changes: list[Any], since_us: int) -> None:
        assert {change.source for change in changes} == {Source.RESCAN}
        self.found.append(([f"{x.change.value} {x.task}" for x in changes], since_us))

    def step(self) -> None:
        """Wait until a step is due, and make it."""
        self.disk.now_s = max(self.disk.now_s, self.walk.next_s(self.disk.now_s))
        self.walk.step(self.run.now_us + round(self.disk.now_s * 1e6))

    def rounds(self, count: int = 1) -> None:
        """Walk until so many rounds are over."""
        until = self.walk.counters.rounds + count
        while self.walk.counters.rounds < until:
            self.step()

    def changes(self) -> list[str]:
        return [change for changes, _ in self.found for change in changes]


def quiet_run(tasks: int = 3) -> Run:
    """Give a pipeline that knows some tasks; nobody rescans by the clock."""
    run = Run()
    run.pipeline.rescan_us = 0
    run.pipeline._timers.drop("rescan")
    run.play(*application(1))
    for number in range(tasks):
        run.play(*opening(2 + number / 1000, task=f"app/0_{number}", identity=f"id-{number}"))
    run.rest(60_000_000)
    return run


def test_an_unchanged_tree_costs_a_few_stats_and_no_reading() -> None:
    """Four directories of a task are asked for their times, and nothing else is done."""
    walk = Walk(quiet_run())
    walk.rounds(2)
    looks = walk.run.pipeline.looker.outcomes.total()
    asked = len(walk.disk.asked)
    walk.rounds()
    assert walk.run.pipeline.looker.outcomes.total() == looks + 1  # the application's own lock
    assert len(walk.disk.asked) - asked == 3 * 3
    assert walk.found == []


def test_what_no_one_announced_is_found() -> None:
    """A checkpoint, a task that came, one that went, an application that came and went."""
    walk = Walk(quiet_run())
    walk.rounds(2)
    run = walk.run
    run.unseen(*checkpoint(100, 5, task="app/0_0"))
    run.unseen(*opening(100, task="app/0_7", identity="id-7"))
    run.unseen(*kill(100, "app/0_1/rocksdb/s/LOCK"))
    run.unseen(*deletion(100, task="app/0_1"))
    run.unseen(*application(100, "other"))
    run.now_us = second(200)
    walk.rounds()
    found = walk.changes()
    assert {"checkpoint-written 0_0", "task-created 0_7", "store-created 0_7", "task-deleted 0_1"} <= set(
        found
    )
    assert "application-seen None" in found
    known = run.pipeline.inventory.applications
    assert known["other"].exists
    assert not known["app"].tasks["0_1"].exists


def test_a_time_that_was_set_back_is_found_in_the_end() -> None:
    """Every so many rounds nothing is taken for unchanged."""
    walk = Walk(quiet_run(1))
    walk.rounds(2)
    looks = walk.run.pipeline.looker.outcomes.total()
    walk.rounds(DEEP_EVERY)
    assert walk.run.pipeline.looker.outcomes.total() - looks > DEEP_EVERY


def test_a_change_right_before_the_visit_is_read_twice() -> None:
    """Within the same tick of the file system's clock another change may follow."""
    walk = Walk(quiet_run(1))
    walk.rounds(2)
    run = walk.run
    at_s = (run.now_us - second(0)) / 1e6 + walk.disk.now_s
    run.unseen(*checkpoint(at_s + FAST.round_s - 0.5, 5))
    looks = run.pipeline.looker.outcomes.total()
    walk.rounds(2)
    first = run.pipeline.looker.outcomes.total() - looks
    walk.rounds()
    assert first > run.pipeline.looker.outcomes.total() - looks - first
    assert walk.changes() == ["checkpoint-written 0_0"]


@pytest.mark.parametrize("pace", [WATCHING, POLLING, WATCHING.slower(4), Pace(1.0, 0.5, 100.0)])
def test_cost_stays_below_the_ceiling(pace: Pace) -> None:
    """Over any number of steps: share of the clock and entries per second."""
    walk = Walk(quiet_run(60), pace)
    began_s, busy_s, entries = walk.disk.now_s, 0.0, walk.walk.counters.entries
    for _ in range(100):
        before_s = max(walk.disk.now_s, walk.walk.next_s(walk.disk.now_s))
        walk.step()
        took_s = walk.disk.now_s - before_s
        assert took_s <= SLICE_S + 20 * COST_S
        busy_s += took_s
    elapsed_s = max(walk.disk.now_s, walk.walk.next_s(walk.disk.now_s)) - began_s
    assert busy_s <= elapsed_s * pace.share * 1.001
    assert walk.walk.counters.entries - entries <= elapsed_s * pace.entries_per_s * 1.001


def test_tasks_with_recent_changes_come_first() -> None:
    """The order of a round is that of the last changes."""
    walk = Walk(quiet_run(20))
    walk.rounds(2)
    for seconds, number in enumerate((3, 5, 11)):
        walk.run.play(*checkpoint(300 + seconds, 7, task=f"app/0_{number}"))
    walk.disk.asked.clear()
    walk.run.now_us = second(400)
    walk.rounds()
    tasks = [path for path in walk.disk.asked if path.count("/") == 1]
    assert tasks[:3] == ["app/0_11", "app/0_5", "app/0_3"]


def test_hot_tasks_are_visited_while_a_long_round_goes_on() -> None:
    """A round of many tasks takes long; one that changed lately is seen several times in it, and nobody starves."""
    walk = Walk(quiet_run(60), Pace(2.0, 0.002, 1e9))
    walk.run.play(*checkpoint(300, 7, task="app/0_59"))
    walk.run.now_us += 3_000_000
    visits = 0
    while not walk.walk.counters.rounds:
        before = len(walk.disk.asked)
        walk.step()
        visits += walk.disk.asked[before:].count("app/0_59")
    assert visits >= 3
    assert {path for path in walk.disk.asked if path.count("/") == 1} == {f"app/0_{n}" for n in range(60)}
    assert HOT_US > 0


def test_a_round_ends_where_every_task_is_busy() -> None:
    """More hot tasks than can be visited between two fillings: the round is over when everybody had a visit."""
    walk = Walk(quiet_run(60), Pace(2.0, 0.002, 1e9))
    for number in range(60):
        walk.run.play(*checkpoint(300 + number / 1000, 7, task=f"app/0_{number}"))
    walk.run.now_us += 3_000_000
    walk.disk.asked.clear()
    for _ in range(100):
        walk.step()
        if walk.walk.counters.rounds:
            break
    assert walk.walk.counters.rounds == 1
    assert {path for path in walk.disk.asked if path.count("/") == 1} == {f"app/0_{n}" for n in range(60)}


def test_a_clock_that_is_set_back_spares_no_directory_a_visit() -> None:
    """Marks of visits then lie in the future: they do not count for the round."""
    walk = Walk(quiet_run(20))
    walk.rounds(2)
    walk.run.now_us -= 3_600_000_000
    walk.disk.asked.clear()
    walk.rounds()
    assert {path for path in walk.disk.asked if path.count("/") == 1} == {f"app/0_{n}" for n in range(20)}


def test_a_root_that_is_not_there_is_no_trouble() -> None:
    """Nothing is found below it, and the walk goes on."""
    run = Run()
    walk = Walk(run)
    walk.rounds(3)
    assert walk.found == []
