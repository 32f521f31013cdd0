"""The keeper of the watch: a dead source and a deaf one are restarted; without any there is polling."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import pytest

from agent.errors import WatchLimitError
from agent.home.canary import LATE_AFTER_S, Canary
from agent.inventory.hints import Hint, HintKind
from agent.lookout.watch_keeper import RESTART_MOST_S, RESTART_S, WatchKeeper
from agent.watch.watches import Cause, WatchCounters


@dataclass
class ScriptedSource:
    """A source that does what the test says."""

    cause: Cause
    since_us: int
    refuses: bool = False
    alive: bool = True
    wrong: dict[str, str] = field(default_factory=dict)
    stopped: int = 0
    count: WatchCounters = field(default_factory=lambda: WatchCounters(events=10, watches=3))

    @property
    def watch(self):
        return self

    def start(self) -> None:
        if self.refuses:
            raise WatchLimitError("cannot open an inotify queue (fs.inotify.max_user_instances=128)")

    def stop(self, timeout_s: float | None = None) -> None:
        self.stopped += 1

    def is_alive(self) -> bool:
        return self.alive

    def failure(self) -> str:
        return "" if self.alive else "it broke"

    def is_watched(self, path: str) -> bool:
        return path != "unwatched"

    def is_canary_watched(self) -> bool:
        return True

    def degraded(self) -> dict[str, str]:
        return self.wrong

    def counters(self) -> WatchCounters:
        return self.count

    @property
    def is_partial(self) -> bool:
        return self.count.unwatched > 0


@dataclass
class Bench:
    """A keeper, the sources it made, and a clock."""

    directory: Path
    made: list[ScriptedSource] = field(default_factory=list)
    refuses: bool = False
    now_s: float = 0.0

    def __post_init__(self) -> None:
        self.canary = Canary(self.directory / "canary")
        self.keeper = WatchKeeper(self._make, self.canary)

    def _make(self, cause, since_us):
        self.made.append(ScriptedSource(cause, since_us, self.refuses))
        return self.made[-1]

    @property
    def now_us(self) -> int:
        return 1_700_000_000_000_000 + round(self.now_s * 1e6)

    def start(self) -> bool:
        return self.keeper.start(self.now_us, self.now_s)

    def later(self, seconds: float, *, canary_comes: bool = True) -> None:
        """Let time pass second by second, with canaries coming back or not."""
        for _ in range(int(seconds)):
            self.now_s += 1.0
            if canary_comes:
                names = [path.name for path in self.canary.directory.iterdir()]
                self.keeper.receive([Hint(name, HintKind.CANARY, self.now_us) for name in names], self.now_us)
            self.keeper.check(self.now_us, self.now_s)


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    """Give a keeper that has not started."""
    return Bench(tmp_path)


def test_a_healthy_source_is_left_alone(bench: Bench) -> None:
    """Canaries come back: nothing is restarted, nothing is blind."""
    assert bench.start()
    bench.later(600)
    assert len(bench.made) == 1
    assert bench.keeper.has_canary
    assert bench.keeper.passed > 100
    assert (bench.keeper.blind(), bench.keeper.slow(), bench.keeper.polls) == ({}, {}, False)


def test_a_dead_source_is_restarted_with_the_loss_dated(bench: Bench) -> None:
    """The next source begins with a rescan that says since when nothing was heard."""
    bench.start()
    bench.later(20)
    heard_us = bench.now_us
    bench.made[0].alive = False
    bench.later(2, canary_comes=False)
    assert [(x.cause, x.since_us) for x in bench.made[1:]] == [(Cause.WATCH_LOST, heard_us)]
    assert bench.made[0].stopped == 1
    assert bench.keeper.restarts == 1
    assert bench.keeper.counters().events == 20
    assert bench.keeper.counters().watches == 3


def test_a_source_without_notifications_is_restarted(bench: Bench) -> None:
    """A canary that stays away: the loss began when it was sent."""
    bench.start()
    bench.later(10)
    sent_us = bench.now_us
    bench.later(LATE_AFTER_S + 10, canary_comes=False)
    assert [x.cause for x in bench.made] == [Cause.START, Cause.CANARY_MISSED]
    assert abs(bench.made[1].since_us - sent_us) <= 6_000_000
    assert bench.keeper.canaries_missed == 1


def test_a_source_that_keeps_dying_is_started_ever_more_seldom(bench: Bench) -> None:
    """It is never given up, and never busy."""
    bench.start()
    for _ in range(3600):
        for source in bench.made:
            source.alive = False
        bench.later(1)
    assert 3600 / RESTART_MOST_S <= len(bench.made) <= 3600 / RESTART_MOST_S + 8
    assert RESTART_S < RESTART_MOST_S


def test_no_queue_means_polling_with_the_limit_named(bench: Bench) -> None:
    """The finding can say which sysctl to set, and to what; it is tried again. Meanwhile a loss goes on."""
    (bench.directory / "other").mkdir()
    dead = Bench(bench.directory / "other")
    dead.start()
    dead.made[0].alive, dead.refuses = False, True
    dead.later(3)
    assert "watch-lost" in dead.keeper.blind()
    assert (dead.keeper.polls, dead.keeper.counts_missed) == (True, False)
    bench.refuses = True
    assert not bench.start()
    assert "fs.inotify.max_user_instances=" in bench.keeper.slow()["watch-limit"]
    assert bench.keeper.polls
    bench.refuses = False
    bench.later(RESTART_MOST_S + 1)
    assert bench.made[-1].cause is Cause.START
    assert bench.keeper.slow() == {}


def test_what_is_wrong_is_sorted_by_what_it_hides(bench: Bench) -> None:
    """A refused directory is blind, a watch that is not given is only slow."""
    bench.start()
    bench.made[0].wrong = {"watch-refused": "a", "watch-limit": "b"}
    assert bench.keeper.blind() == {"watch-refused": "a"}
    assert bench.keeper.slow() == {"watch-limit": "b"}
    assert not bench.keeper.polls
    bench.made[0].count.unwatched = 1
    assert bench.keeper.polls


@pytest.mark.parametrize("make", [None, lambda cause, since_us: ScriptedSource(cause, since_us)])
def test_a_volume_that_keeps_quiet_is_polled(make):
    """Beside a watch or without one; what nobody announced there is no loss."""
    keeper = WatchKeeper(make, None)
    keeper.start(0, 0.0)
    keeper.set_polling("it is nfs4")
    assert keeper.slow()["polling"] == "it is nfs4"
    assert keeper.polls
    assert not keeper.counts_missed
    assert keeper.fence(0.0) is None
    keeper.check(0, 0.0)
    keeper.stop()
