"""What can go wrong with a watch, done to a real one: each loss is counted, timed and repaired."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from agent.home.canary import LATE_AFTER_S
from agent.inventory.blind_causes import Missed
from agent.lookout.watch_keeper import Make
from agent.lookout.watch_loop import Mode
from agent.watch.inotify import InotifyQueue
from agent.watch.inotify_source import InotifySource
from agent.watch.limits import read_limits
from agent.watch.mailbox import Mailbox
from agent.watch.tree_watch import TreeWatch
from agent.watch.watches import Cause
from tests.support.lookout_bench import (
    BRISK,
    BRISK_MODE,
    DEADLINE_S,
    LiveLookout,
    SteppingClock,
    make_task,
    remove_tree,
    write_checkpoint,
)

pytestmark = pytest.mark.inotify


class GatedClock:
    """A clock that holds up the reader while the gate is closed."""

    def __init__(self, clock: SteppingClock) -> None:
        self.clock = clock
        self.gate = threading.Event()
        self.gate.set()
        self.is_asked = threading.Event()

    def now_us(self) -> int:
        """Tell the time when the gate is open."""
        self.is_asked.set()
        assert self.gate.wait(DEADLINE_S)
        return self.clock.now_us()

    def monotonic_s(self) -> float:
        """Tell the seconds that passed."""
        return self.clock.monotonic_s()


def test_overflow_of_the_kernels_queue(tmp_path: Path) -> None:
    """A reader that stands still: the loss is dated from the last sound moment, and every final state is seen."""
    room = read_limits().get("max_queued_events", 0)
    assert 0 < room <= 50_000, f"max_queued_events={room}: lower it for this test"
    task = make_task(tmp_path / "state")
    clock = SteppingClock()
    gated = GatedClock(clock)
    with LiveLookout(tmp_path / "state", tmp_path / "home", clock, source_clock=gated) as live:
        gated.gate.clear()
        gated.is_asked.clear()
        (task / "x").touch()
        assert gated.is_asked.wait(DEADLINE_S)
        stopped_us = live.clock.now_us()
        for number in range(room // 2 + 500):
            name = task.parent / f"f{number}"
            name.touch()
            name.unlink()
        write_checkpoint(task, 77)
        make_task(tmp_path / "state", "app/0_9", 5)
        gated.gate.set()
        live.turn_until(lambda: "queue-overflow" in live.causes())
        live.turn_until(lambda: live.offset("app/0_0") == 77 and live.offset("app/0_9") == 5)
        (interval,) = live.pipeline.inventory.blind
        assert interval.started_us <= stopped_us < (interval.ended_us or 0)
        assert live.lookout.keeper.counters().overflows == 1
        live.beat()
        assert any("queue-overflow" in x.summary for x in live.findings())
        write_checkpoint(task, 78)
        live.turn_until(lambda: live.offset("app/0_0") == 78)


def test_a_mailbox_that_is_full(tmp_path: Path, eventually: Callable[..., object]) -> None:
    """A worker that does not come round: hints are dropped, and a rescan stands for all of them."""
    root = tmp_path / "state"
    make_task(root)
    with LiveLookout(root, tmp_path / "home", capacity=20) as live:
        for number in range(1, 60):
            make_task(root, f"app/0_{number}", number)
        eventually(lambda: live.mailbox.counters().dropped)
        live.turn_until(lambda: "mailbox-full" in live.causes())
        live.turn_until(lambda: all(live.offset(f"app/0_{n}") == n for n in range(1, 60)))
        assert live.lookout.mailbox.counters().dropped > 0


def test_a_reader_that_dies(live: LiveLookout) -> None:
    """The thread ends with an error: it is restarted, and what happened meanwhile is found."""
    with live:
        source = live.lookout.keeper._source
        assert isinstance(source, InotifySource)
        source.watch.handle = lambda events: 1 / 0  # type: ignore[assignment, method-assign, return-value]
        write_checkpoint(live.root / "app" / "0_0", 41)
        live.turn_until(lambda: live.offset("app/0_0") == 41)
        live.turn_until(lambda: "watch-lost" in live.causes())
        live.turn_until(lambda: all(x.ended_us for x in live.pipeline.inventory.blind))
        assert live.lookout.keeper.restarts == 1
        write_checkpoint(live.root / "app" / "0_0", 42)
        live.turn_until(lambda: live.offset("app/0_0") == 42)


def test_a_reader_that_hangs(tmp_path: Path) -> None:
    """It lives and hears nothing: the canary stays away, a new reader takes over, the old one is never heard again."""
    root = tmp_path / "state"
    task = make_task(root)
    clock = SteppingClock()
    stuck = GatedClock(clock)
    made: list[InotifySource] = []

    def maker(mailbox: Mailbox) -> Make:
        def make(cause: Cause, since_us: int) -> InotifySource:
            reader = stuck if not made else clock
            canary = tmp_path / "home" / "canary"
            watch = TreeWatch(root, InotifyQueue(), reader, canary=canary, cause=cause, since_us=since_us)
            made.append(InotifySource(watch, mailbox))
            return made[-1]

        return make

    with LiveLookout(root, tmp_path / "home", clock, make=maker) as live:
        live.turn_until(lambda: live.lookout.keeper.passed >= 1)
        stuck.gate.clear()
        write_checkpoint(task, 50)
        clock.passed_s += 6.0
        live.lookout.turn()
        live.lookout.turn()
        clock.passed_s += LATE_AFTER_S + 1.0
        live.turn_until(lambda: live.offset("app/0_0") == 50)
        live.turn_until(lambda: "canary-missed" in live.causes())
        assert live.lookout.keeper.canaries_missed == 1
        stuck.gate.set()
        write_checkpoint(task, 51)
        live.turn_until(lambda: live.offset("app/0_0") == 51)


def test_a_watch_that_was_lost_without_a_word(brisk: LiveLookout) -> None:
    """The kernel's watch is gone and nobody knows: the walk finds the change, counts it and watches again."""
    with brisk as live:
        source = live.lookout.keeper._source
        assert isinstance(source, InotifySource)
        watches = source.watch._watches
        (lost,) = [watch for watch, path in watches._paths.items() if path == "app/0_0"]
        watches._paths.pop(lost)  # first: the kernel's last word about it would do the same
        watches._queue.remove(lost)
        live.turn_until(lambda: not source.watch.is_watched("app/0_0"))
        write_checkpoint(live.root / "app" / "0_0", 60)
        live.turn_until(lambda: live.lookout.missed_changes)
        assert live.lookout.missed_changes == {Missed.UNWATCHED: 1}
        (interval,) = [x for x in live.pipeline.inventory.blind if x.cause == "missed"]
        assert (interval.application, interval.task) == ("app", "0_0")
        live.turn_until(lambda: live.lookout.keeper.is_watched("app/0_0"))
        write_checkpoint(live.root / "app" / "0_0", 61)
        live.turn_until(lambda: live.offset("app/0_0") == 61)


@pytest.fixture
def brisk(tmp_path: Path) -> LiveLookout:
    """Give a lookout whose walk goes as fast as it can."""
    make_task(tmp_path / "state")
    return LiveLookout(tmp_path / "state", tmp_path / "home", mode=BRISK_MODE)


def test_nothing_is_missed_while_the_walk_races_with_notifications(brisk: LiveLookout) -> None:
    """A walk at full speed beside a writer at full speed: whatever it finds first was announced all the same."""
    with brisk as live:
        task, stop = live.root / "app" / "0_0", threading.Event()

        def write() -> None:
            offset = 100
            while not stop.is_set():
                offset += 1
                write_checkpoint(task, offset)
                if offset % 5 == 0:
                    remove_tree(task)
                    make_task(live.root, "app/0_0", offset)

        writer = threading.Thread(target=write)
        writer.start()
        rounds = live.lookout.reconciler.counters.rounds
        live.turn_until(lambda: live.lookout.reconciler.counters.rounds > rounds + 3)
        stop.set()
        writer.join()
        rounds = live.lookout.reconciler.counters.rounds
        live.turn_until(lambda: live.lookout.reconciler.counters.rounds > rounds + 2)
        passed = live.lookout.keeper.fence(live.clock.monotonic_s())
        live.turn_until(lambda: live.lookout.keeper.passed >= (passed or 0))
        assert live.lookout.missed_changes == {}
        assert live.causes() == []


def test_a_canary_directory_that_is_cleared_away(live: LiveLookout) -> None:
    """Somebody tidies up the agent's home: the canary comes back, and the watch with it."""
    with live:
        live.turn_until(lambda: live.lookout.keeper.passed >= 1)
        for path in live.canary.directory.iterdir():
            path.unlink()
        live.canary.directory.rmdir()
        before = live.lookout.keeper.passed
        live.turn_until(lambda: not live.lookout.keeper.has_canary)
        live.turn_until(lambda: live.lookout.keeper.has_canary)
        live.clock.passed_s += 6.0
        live.turn_until(lambda: live.lookout.keeper.passed > before)
        assert "canary-missed" not in live.causes()


def test_polling_finds_the_same(tmp_path: Path) -> None:
    """Without any notification the walk tells of a checkpoint, a deletion and a re-creation."""
    root = tmp_path / "state"
    task = make_task(root)
    with LiveLookout(root, tmp_path / "home", mode=Mode(forced_polling=True, polling=BRISK)) as live:
        assert live.offset("app/0_0") == 1
        write_checkpoint(task, 2)
        live.turn_until(lambda: live.offset("app/0_0") == 2)
        remove_tree(task)
        live.turn_until(lambda: live.task("app/0_0") is None)
        make_task(root, "app/0_0", 3)
        live.turn_until(lambda: live.offset("app/0_0") == 3)
        live.beat()
        (finding,) = live.findings()
        assert "polling" in finding.summary
        assert finding.severity.value == "info"
        assert live.causes() == []
        assert live.lookout.missed_changes == {}
