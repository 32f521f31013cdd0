"""What the worker does in one turn of its loop: takes hints, reads, walks, and checks that it sees what there is."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path

from agent.clock import Clock
from agent.contract.events import Change
from agent.engine.pipeline import Pipeline
from agent.inventory.blind_causes import CLOCK_DIFFERS, Missed, Step
from agent.inventory.blindness import begin_blind, end_blind, note_blind
from agent.inventory.disk import ListableDisk, Unseen
from agent.inventory.file_times import clock_sentence
from agent.inventory.hints import Hint, HintKind
from agent.inventory.transitions import Transition
from agent.lookout.missed import MissedChanges, Suspect
from agent.lookout.self_limits import ClockWatch, Gap, SelfLimits
from agent.lookout.walk import BUSY_SHARE, POLLING, WATCHING, Pace, Reconciler
from agent.lookout.watch_keeper import WatchKeeper
from agent.observe.process import resident_bytes
from agent.observe.volume import find_mount, volume_kind
from agent.watch.limits import read_limits
from agent.watch.mailbox import Mailbox

LOG = logging.getLogger(__name__)

LONGEST_WAIT_S = 1.0
LONG_BATCH_S = 0.25
GATHER_S = 0.05
"""So soon after a turn only a hint that cannot wait begins the next one: a turn costs as much as following several."""

BUSY_HINTS, BUSY_TURNS = 10, 50
"""So many notifications in each of so many turns in a row are a lasting load, under which all of them wait. An opening,
a close or a deletion is over sooner, and is followed as it comes."""

HINTS_PER_TURN = 2_000
"""A fraction of a second of work. A longer batch is followed over several turns: clocks, locks and the walk must not
wait for all of it, nor may a reading of its end bear the time of its beginning."""


def why_polling(root: Path) -> str:
    """Return why the volume of a state directory has to be polled; empty if every change is announced there."""
    mount = find_mount(root)
    if isinstance(mount, Unseen) or mount.supports_inotify:
        return ""
    return f"{mount.mount_point} is {mount.filesystem}, which does not announce what other machines change"


@dataclass(frozen=True, slots=True)
class Mode:
    """How to watch."""

    forced_polling: bool = False  # the operator wants polling; the volume is not asked
    is_free: bool = True  # the operator leaves it to the agent, which asks the volume
    watching: Pace = WATCHING  # pace of the walk beside a watch
    polling: Pace = POLLING  # pace of the walk where there is none, or none that can be relied on


@dataclass(slots=True)
class WatchLoop:
    """Owns the order of one turn. Everything in it is used by the worker's thread only."""

    root: Path
    pipeline: Pipeline
    disk: ListableDisk
    mailbox: Mailbox
    clock: Clock
    keeper: WatchKeeper
    limits: SelfLimits
    mode: Mode = field(default_factory=Mode)
    pause: Callable[[float], object] = time.sleep
    missed_changes: dict[str, int] = field(default_factory=dict)
    is_ready: bool = False
    delay_s: float = 0.0
    clocks: ClockWatch = field(default_factory=ClockWatch)
    reconciler: Reconciler = field(init=False)
    missed: MissedChanges = field(init=False)
    _cpu_s: float = 0.0
    _to_follow: list[Hint] = field(default_factory=list)
    _forgot_us: int = 0
    # sysctl -> value, as of the last walk over everything
    inotify_limits: dict[str, int] = field(default_factory=dict)
    _busy_turns: int = 0
    _turned_s: float = 0.0

    def __post_init__(self) -> None:
        """Wire the walk to what counts missed changes."""
        self.missed = MissedChanges(self._written_us)
        self.reconciler = Reconciler(
            self.pipeline, self.disk, self._pace(), self.clock.monotonic_s, self._on_found
        )

    def start(self) -> None:
        """Begin to watch; without a watch everything is read once, right now."""
        now_us = self.clock.now_us()
        self._know_volume()
        if not self.keeper.start(now_us, self.clock.monotonic_s()):
            self.pipeline.scan(now_us)
            self.is_ready = True
        self._report_state(now_us)

    @property
    def waiting(self) -> int:
        """Number of notifications that were taken out of the mailbox and wait to be followed."""
        return len(self._to_follow)

    def stop(self) -> None:
        """End the watch; what was heard is followed first."""
        hints, self._to_follow = self._to_follow, []
        if hints:
            self._follow(hints, self.clock.now_us())
        self.keeper.stop()

    def turn(self, may_rest: Callable[[], bool] = lambda: False) -> None:
        """Wait for something to do, and do it.

        `may_rest` is asked four times a second while nothing happens: does nothing wait for the end of the turn? Then
        locks that are as they were do not end its wait. It is over after `LONGEST_WAIT_S` all the same.
        """
        if self.limits.step >= Step.LONGER_BATCHES:
            self.pause(LONG_BATCH_S)  # what comes meanwhile is coalesced
        elif self._busy_turns >= BUSY_TURNS:
            self.pause(GATHER_S)
        elif not self._to_follow and (rest_s := self._rest_s()) > 0:
            self.mailbox.await_pressing(rest_s)
        is_up_to_date = not self._to_follow
        hints = self._hear(may_rest) if is_up_to_date else []
        self._busy_turns = self._busy_turns + 1 if len(hints) >= BUSY_HINTS else 0
        now_us, now_s = self.clock.now_us(), self.clock.monotonic_s()
        self._turned_s = now_s
        self._check_clock(now_us, now_s)
        if hints:
            hints = self.keeper.receive(hints, now_us)
            self.missed.receive(hints)
            self._to_follow = hints
        if self._to_follow:
            hints, self._to_follow = self._to_follow[:HINTS_PER_TURN], self._to_follow[HINTS_PER_TURN:]
            self._follow(hints, now_us)
        if self.is_ready or not self.pipeline.looker.is_resuming:
            if self.pipeline.next_us() <= now_us:
                self.pipeline.tick(now_us)
            if self.is_ready and self.reconciler.next_s(now_s) <= now_s:
                self.reconciler.step(now_us)
        self._settle_missed(now_us)
        if is_up_to_date:
            self.keeper.check(
                now_us, now_s
            )  # else a canary may be in the mailbox: nothing has been taken out since
        self._report_state(now_us)
        self._check_limits(now_s)

    # -- parts of a turn --------------------------------------------------------------------------------

    def _rest_s(self) -> float:
        """How long to gather what may wait; locks are asked for in time."""
        locks_s = (self.pipeline.looker.polls.next_us - self.clock.now_us()) / 1_000_000
        return min(self._turned_s + GATHER_S - self.clock.monotonic_s(), locks_s)

    def _hear(self, may_rest: Callable[[], bool]) -> list[Hint]:
        """Wait for notifications until something is due."""
        until_s = self.clock.monotonic_s() + LONGEST_WAIT_S
        while True:
            hints = self.mailbox.drain(self._wait_s())
            now_us, now_s = self.clock.now_us(), self.clock.monotonic_s()
            if hints or now_s >= until_s or not self.is_ready or not may_rest():
                return hints
            if self.reconciler.next_s(now_s) <= now_s:
                return hints
            self._check_clock(now_us, now_s)
            if not self.pipeline.rest(now_us):
                return hints

    def _wait_s(self) -> float:
        due_s = (self.pipeline.next_us() - self.clock.now_us()) / 1_000_000
        if self.is_ready:
            now_s = self.clock.monotonic_s()
            due_s = min(due_s, self.reconciler.next_s(now_s) - now_s)
        elif self.pipeline.looker.is_resuming:
            due_s = LONGEST_WAIT_S  # nothing is judged before the first walk after a restart
        return min(max(due_s, 0.0), LONGEST_WAIT_S)

    def _follow(self, hints: list[Hint], now_us: int) -> None:
        everything = [x for x in hints if x.kind is HintKind.RESCAN and not x.path]
        if everything:
            self._know_volume()
            self.missed.clear()  # whatever a walk found before is part of a loss that is known
        self.pipeline.handle(hints, now_us)
        if everything and not self.is_ready:
            self.is_ready = True
            # however long the first scan took, it was no standstill
            self.clocks.turn(self.clock.now_us(), self.clock.monotonic_s())
        self.delay_s = max(0.0, (self.clock.now_us() - hints[-1].at_us) / 1_000_000)

    def _know_volume(self) -> None:
        """The volume may have been mounted, or mounted over, since it was last asked."""
        self.inotify_limits = read_limits()
        self.pipeline.inventory.volume = volume_kind(self.root)
        if self.mode.forced_polling:
            self.keeper.set_polling("the settings say so (watch_mode=poll)")
        elif self.mode.is_free:
            self.keeper.set_polling(why_polling(self.root))

    def _check_clock(self, now_us: int, now_s: float) -> None:
        cpu_s = time.process_time()
        gap = self.clocks.turn(now_us, now_s, cpu_s - self._cpu_s)
        self._cpu_s = cpu_s
        if gap is not None:
            self._record_gap(gap)

    def _record_gap(self, gap: Gap) -> None:
        inventory = self.pipeline.inventory
        if gap.step_us:
            LOG.warning("the wall clock jumped", extra={"step_s": gap.step_us / 1_000_000})
            self.pipeline.shift(gap.step_us)
            for interval in inventory.blind:
                if interval.ended_us is None:
                    interval.started_us = min(interval.started_us, gap.to_us)
            first_us = gap.to_us - max(gap.step_us, 0)
            note_blind(
                inventory,
                first_us,
                first_us + abs(gap.step_us),
                "clock-step",
                detail=f"the clock was set by {gap.step_us / 1_000_000:+.1f} s",
            )
        if gap.is_stall:
            LOG.warning("the worker thread stalled", extra={"from_us": gap.from_us, "to_us": gap.to_us})
            from_us = min(gap.from_us + gap.step_us, gap.to_us)
            note_blind(inventory, from_us, gap.to_us, "agent-stalled")

    def _on_found(self, changes: list[Transition], since_us: int) -> None:
        if not self.keeper.counts_missed:
            return
        suspects = self.missed.suspect(changes, since_us, self.clock.now_us())
        if suspects:
            self.missed.wait(suspects, self.keeper.fence(self.clock.monotonic_s()))

    def _settle_missed(self, now_us: int) -> None:
        if self.reconciler.settled_us != self._forgot_us:
            self._forgot_us = self.reconciler.settled_us
            self.missed.forget(self._forgot_us)
        for one in self.missed.decide(self.keeper.passed, now_us):
            is_watched = self.keeper.is_watched(one.directory)
            if is_watched or not ({"watch-limit"} & self.keeper.slow().keys() or self.keeper.blind()):
                self._count_missed(one, Missed.UNANNOUNCED if is_watched else Missed.UNWATCHED)

    def _count_missed(self, one: Suspect, cause: Missed) -> None:
        self.missed_changes[cause.value] = self.missed_changes.get(cause.value, 0) + 1
        change = one.change
        detail = f"{change.change.value} of {one.thing!r} was {cause}"
        LOG.warning("a change was missed", extra={"detail": detail})
        inventory = self.pipeline.inventory
        note_blind(inventory, one.since_us, one.found_us, "missed", change.application, change.task, detail)
        if cause is Missed.UNWATCHED:
            self.keeper.rewatch(one.since_us)

    def _written_us(self, change: Transition) -> int | None:
        """Return when the newest file behind a change was written: an SST, or the checkpoint."""
        application = self.pipeline.inventory.applications.get(change.application)
        task = application.tasks.get(change.task or "") if application is not None else None
        store = task.stores.get(change.store or "") if task is not None else None
        database = store.databases.get(change.segment or "") if store is not None else None
        if change.change is Change.STORE_FLUSHED and database is not None and database.flushed:
            return database.flushed[-1][1]
        return None

    def _report_state(self, now_us: int) -> None:
        """Begin and end what lasts, as the watch says."""
        inventory = self.pipeline.inventory
        blind, known = self.keeper.blind(), {x.cause for x in inventory.blind if x.ended_us is None}
        for cause, text in blind.items():
            begin_blind(inventory, now_us, cause, detail=text)
        if self.is_ready and not blind.keys() <= known:
            self.pipeline.judges.judge_agent(now_us)  # before the next heartbeat nothing else may be open
        lasting = [x.cause for x in inventory.blind if x.ended_us is None]
        for cause in lasting:
            if cause in _FROM_WATCH and cause not in blind:
                end_blind(inventory, now_us, cause)
        slow = self.keeper.slow()
        if differs := clock_sentence(inventory):
            slow[CLOCK_DIFFERS] = differs
        if self.limits.step:
            slow["self-limit"] = self.limits.sentence()
        if slow or inventory.slowed:
            inventory.slowed = {
                cause: (inventory.slowed.get(cause, (now_us, ""))[0], text) for cause, text in slow.items()
            }
        self.reconciler.pace = self._pace()
        self.reconciler.trusts_times = self.keeper.counts_missed

    def _pace(self) -> Pace:
        pace = self.mode.polling if self.keeper.polls else self.mode.watching
        return _paced(pace, self.limits.cpu_share, self.limits.step)

    def _check_limits(self, now_s: float) -> None:
        if not self.limits.is_due(now_s):
            return
        before = self.limits.step
        if self.limits.measure(now_s, time.process_time(), resident_bytes()):
            LOG.warning("the agent changed its own limits", extra={"step": self.limits.step.slug})
            detail = Step.LESS_STORE_DETAIL
            if (before >= detail) != (self.limits.step >= detail):
                self.pipeline.looker.observer.set_detail(with_counters=self.limits.step < detail)


@lru_cache(maxsize=4)  # asked in every turn
def _paced(pace: Pace, cpu_share: float, step: Step) -> Pace:
    pace = pace.at_least(BUSY_SHARE * cpu_share)
    if step >= Step.SLOWEST_RESCAN:
        return pace.slower(16)
    return pace.slower(4) if step >= Step.SLOWER_RESCAN else pace


_FROM_WATCH = frozenset({"watch-refused", "root-missing", "watch-lost", "canary-missed"})
"""Causes that last until the watch no longer names them."""
