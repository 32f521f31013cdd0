"""The reader thread: waits for the kernel, and puts what `TreeWatch` makes of it into the mailbox."""

from __future__ import annotations

import logging
import os
import select
import threading
from pathlib import Path

from agent.clock import Clock
from agent.errors import WatchLostError
from agent.inventory.hints import Hint
from agent.watch.inotify import InotifyQueue
from agent.watch.mailbox import Mailbox
from agent.watch.source import Cause, WatchCounters
from agent.watch.tree_watch import TreeWatch

LOGGER = logging.getLogger(__name__)

TICK_MS = 1000
"""Longest wait: so often the root is compared with the directory that is watched."""

AWAITING_MS = 100
"""The same while there is no root: an application that starts makes it and goes on at once."""

LINGER_MS = 5
"""Wait after the first notification: a burst is read in one go instead of one by one."""


class InotifySource:
    """`agent.watch.source.NotificationSource` on inotify: one queue, one thread."""

    def __init__(
        self,
        root: Path,
        mailbox: Mailbox,
        clock: Clock,
        *,
        canary: Path | None = None,
        cause: Cause = Cause.START,
        since_us: int = 0,
    ) -> None:
        """Remember what to watch; nothing is opened yet.

        Args:
            root: The state directory; need not exist yet.
            mailbox: Where hints go.
            clock: Gives the time of every hint.
            canary: The agent's own directory, watched beside it; None = no canary.
            cause: Of the first RESCAN: START, or the loss after which this source follows another one.
            since_us: When that loss began; 0 = none.
        """
        self._root = root
        self._mailbox = mailbox
        self._clock = clock
        self._canary, self._cause, self._since_us = canary, cause, since_us
        self._is_given_up = False
        self._watch: TreeWatch | None = None
        self._thread: threading.Thread | None = None
        self._stop_writer = -1
        self._failure = ""

    def start(self) -> None:
        """Open the queue and start the thread; the first hint is a RESCAN, put when the watches stand.

        Raises:
            WatchLimitError: the user has too many inotify queues already.
            WatchError: the kernel gives no queue for another reason.
        """
        queue = InotifyQueue()
        stop_reader, self._stop_writer = os.pipe()
        self._watch = TreeWatch(
            self._root,
            queue,
            self._clock,
            canary=self._canary,
            cause=self._cause,
            since_us=self._since_us,
        )
        self._thread = threading.Thread(
            target=self._run, args=(self._watch, queue, stop_reader), name="watch", daemon=True
        )
        self._thread.start()

    def stop(self, timeout_s: float | None = None) -> None:
        """End the thread and give the queue back; may be called twice, and without a start.

        Args:
            timeout_s: How long to wait for the thread; one that hangs in the kernel is left to itself, and
                nothing that it still reads is put into the mailbox. None = for ever.
        """
        if self._thread is None or self._stop_writer < 0:
            return
        os.close(self._stop_writer)  # the reader sees the hang-up
        self._stop_writer = -1
        self._is_given_up = True
        self._thread.join(timeout_s)

    def is_alive(self) -> bool:
        """Tell whether notifications still arrive; False before the start and after a failure."""
        return self._thread is not None and self._thread.is_alive()

    def failure(self) -> str:
        """Tell why the thread died; empty if it did not."""
        return self._failure

    def degraded(self) -> dict[str, str]:
        """Tell what is wrong now: cause -> one sentence with what to do."""
        return {} if self._watch is None else self._watch.degraded()

    def is_watched(self, path: str) -> bool:
        """Tell whether a directory has a watch now."""
        return self._watch is not None and self._watch.is_watched(path)

    def hears_canary(self) -> bool:
        """Tell whether moves in the agent's own directory are announced now."""
        return self._watch is not None and self._watch.hears_canary()

    def counters(self) -> WatchCounters:
        """Tell what was done so far; a copy."""
        return WatchCounters() if self._watch is None else self._watch.counters()

    def _run(self, watch: TreeWatch, queue: InotifyQueue, stop_reader: int) -> None:
        try:
            self._read(watch, queue, stop_reader)
        except Exception as error:  # the fence around this thread's loop: a dead watch must be told
            self._failure = str(WatchLostError(f"thread `watch` on {self._root} ended: {error!r}"))
            LOGGER.exception("thread %s died", "watch")
        finally:
            queue.close()
            os.close(stop_reader)

    def _read(self, watch: TreeWatch, queue: InotifyQueue, stop_reader: int) -> None:
        stop = select.poll()
        stop.register(stop_reader, select.POLLIN)
        either = select.poll()
        either.register(stop_reader, select.POLLIN)
        either.register(queue.fileno(), select.POLLIN)
        self._put(watch.tick())
        while True:
            ready = either.poll(AWAITING_MS if watch.awaits_root() else TICK_MS)
            if stop.poll(LINGER_MS if ready else 0):
                return
            hints = watch.handle(queue.read()) if ready else []
            self._put(hints + watch.tick())

    def _put(self, hints: list[Hint]) -> None:
        if not self._is_given_up:
            self._mailbox.put_all(hints)
