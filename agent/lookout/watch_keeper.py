"""Keeps a watch alive: one source at a time, restarted when it dies or its canary stays away, or polling instead."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from pathlib import Path

from agent.clock import Clock
from agent.errors import WatchError
from agent.home.canary import Canary
from agent.inventory.blind_causes import BY_SLUG
from agent.inventory.hints import Hint, HintKind
from agent.watch.inotify import InotifyQueue
from agent.watch.inotify_source import InotifySource
from agent.watch.limits import enough_instances, instance_limit
from agent.watch.mailbox import Mailbox
from agent.watch.tree_watch import TreeWatch
from agent.watch.watches import Cause, WatchCounters

LOG = logging.getLogger(__name__)

RESTART_S = 1.0
"""Rest before the first new start; doubled with every one that fails, up to `RESTART_MOST_S`."""
RESTART_MOST_S = 60.0
STEADY_S = 300.0
"""A source that lived so long resets the pauses."""
STOP_WAIT_S = 2.0

Make = Callable[[Cause, int], InotifySource]
"""Makes a source from the cause of its first rescan and the time at which that loss began (0 = none).

Raises:
    WatchError: the kernel gives no queue.
"""


def inotify_maker(root: Path, mailbox: Mailbox, clock: Clock, canary: Path | None) -> Make:
    """Make sources on inotify."""

    def make(cause: Cause, since_us: int) -> InotifySource:
        queue = InotifyQueue()
        return InotifySource(
            TreeWatch(root, queue, clock, canary=canary, cause=cause, since_us=since_us), mailbox
        )

    return make


class WatchKeeper:
    """The worker's view of the watch. Used by the worker's thread only, which gives it the time."""

    def __init__(self, make: Make | None, canary: Canary | None) -> None:
        """Keep what `make` makes; None = poll only."""
        self._make = make
        self._polling = ""  # why the volume has to be polled
        self._source: InotifySource | None = None
        self.canary = canary if make is not None else None  # what proves that notifications come through
        self._before = WatchCounters()
        self._refusal = ""
        self._starts = 0
        self._started_s = self._retry_s = 0.0
        self._heard_us = 0
        self._lost: tuple[Cause, int] | None = None
        self.restarts = 0

    # -- life -------------------------------------------------------------------------------------------

    def start(self, now_us: int, now_s: float) -> bool:
        """Start watching; False if the kernel refuses or nothing is to be watched: then only polling is left."""
        return self._start(Cause.START, 0, now_us, now_s)

    def stop(self) -> None:
        """End the watch."""
        if self._source is not None:
            self._source.stop(STOP_WAIT_S)

    def _start(self, cause: Cause, since_us: int, now_us: int, now_s: float) -> bool:
        if self._make is None:
            return False
        self._starts += 1
        self._retry_s = now_s + min(RESTART_S * 2 ** (self._starts - 1), RESTART_MOST_S)
        try:
            source = self._make(cause, since_us)
            source.start()
        except WatchError as error:
            self._refusal = str(error)
            self._retry_s = now_s + RESTART_MOST_S
            LOG.error("cannot watch, polling instead: %s", error)
            return False
        self._refusal = ""
        self._source, self._started_s, self._heard_us = source, now_s, now_us
        return True

    def check(self, now_us: int, now_s: float) -> None:
        """Check the source: send the canary, and start a new source where the old one died or delivers nothing."""
        if self._make is None:
            return
        if self._source is not None:
            self._check_source(self._source, now_us, now_s)
        if self._source is None and now_s >= self._retry_s:
            cause, since_us = self._lost or (Cause.START, 0)
            if self._start(cause, since_us, now_us, now_s):
                self.restarts += self._lost is not None
                self._lost = None

    def _check_source(self, source: InotifySource, now_us: int, now_s: float) -> None:
        if now_s - self._started_s > STEADY_S:
            self._starts = 1
        if not source.is_alive():
            LOG.error("the watch died; restarting it: %s", source.failure())
            self._drop(source, Cause.WATCH_LOST, self._heard_us)
        elif self.canary is not None:
            late_since_s = self.canary.late_since(now_s)
            if late_since_s is not None:
                LOG.error("inotify did not report the canary; restarting the watch")
                self.canary.give_up(now_s)
                self._drop(source, Cause.CANARY_MISSED, now_us - round((now_s - late_since_s) * 1_000_000))
            elif source.watch.is_canary_watched():
                self.canary.check(now_s)
            else:
                self.canary.restore()

    def rewatch(self, since_us: int) -> None:
        """Give the source up and restart: it has lost a directory without a word."""
        if self._source is not None:
            self._drop(self._source, Cause.WATCH_LOST, since_us)

    def set_polling(self, why: str) -> None:
        """Poll the volume at the faster pace, or no longer (empty)."""
        self._polling = why

    def _drop(self, source: InotifySource, cause: Cause, since_us: int) -> None:
        self._lost = self._lost or (cause, since_us)
        self._before = self._before.plus(source.watch.counters())
        self._before.watches = self._before.unwatched = 0
        source.stop(STOP_WAIT_S)
        self._source = None

    # -- what it says -----------------------------------------------------------------------------------

    def receive(self, hints: Iterable[Hint], now_us: int) -> list[Hint]:
        """Take the canaries out of what came."""
        others = []
        for hint in hints:
            if hint.kind is HintKind.CANARY:
                if self.canary is not None and self.canary.receive(hint.path):
                    self._heard_us = now_us
            else:
                others.append(hint)
                self._heard_us = now_us
        return others

    def fence(self, now_s: float) -> int | None:
        """Send a canary now; see `Canary.fence`. None = there is none to send."""
        return self.canary.fence(now_s) if self.canary is not None and self._is_canary_watched else None

    @property
    def passed(self) -> int:
        """Highest canary that came back."""
        return self.canary.seen if self.canary is not None else 0

    @property
    def canaries_missed(self) -> int:
        """Canaries that did not come back in time."""
        return self.canary.missed if self.canary is not None else 0

    @property
    def has_canary(self) -> bool:
        """Whether a canary proves that notifications come through."""
        return self.canary is not None and not self.canary.is_stuck and self._is_canary_watched

    @property
    def _is_canary_watched(self) -> bool:
        return self._source is not None and self._source.watch.is_canary_watched()

    @property
    def polls(self) -> bool:
        """Whether the volume is polled at the faster pace."""
        return bool(self._polling) or self._source is None or self._source.watch.is_partial

    @property
    def counts_missed(self) -> bool:
        """Whether an unannounced change is a loss: not where the volume is known to keep quiet."""
        return not self._polling and self._source is not None

    def is_watched(self, path: str) -> bool:
        """Return whether a directory has a watch now."""
        return self._source is not None and self._source.watch.is_watched(path)

    def blind(self) -> dict[str, str]:
        """Return what hides changes now: cause -> sentence."""
        found = {} if self._source is None else self._source.watch.degraded()
        hiding = {cause: text for cause, text in found.items() if BY_SLUG[cause].hides}
        if self._lost is not None:
            hiding[str(self._lost[0])] = "the watch is restarted"
        return hiding

    def slow(self) -> dict[str, str]:
        """Return what makes the agent see changes later: cause -> sentence."""
        found = {} if self._source is None else self._source.watch.degraded()
        slow = {cause: text for cause, text in found.items() if not BY_SLUG[cause].hides}
        if self._polling:
            slow["polling"] = self._polling
        if self._refusal:
            limit = instance_limit()
            slow["watch-limit"] = (
                f"{self._refusal}; until then everything is polled: set {limit.name}={enough_instances(limit)}"
            )
        return slow

    def counters(self) -> WatchCounters:
        """Return what all sources did."""
        return self._before if self._source is None else self._before.plus(self._source.watch.counters())
