"""The reader thread: waits for the kernel, and puts what `TreeWatch` makes of it into the mailbox."""

from __future__ import annotations

import logging
import os
import select
import threading

from agent.errors import WatchLostError
from agent.inventory.hints import Hint
from agent.watch.limits import queue_room
from agent.watch.mailbox import Mailbox
from agent.watch.tree_watch import TreeWatch

LOGGER = logging.getLogger(__name__)

TICK_MS = 1000
"""Longest wait: so often the root is compared with the directory that is watched."""

AWAITING_MS = 100
"""The same while there is no root: an application that starts makes it and goes on at once."""

LINGER_MS = 5
"""Wait after the first notification: a burst is read in one go instead of one by one."""

LONGEST_LINGER_MS = 20
"""The same where notifications come in masses: each waking costs as much as reading dozens of them."""

MANY = 32
"""Notifications of one read from which on the next wait is twice as long."""

FASTEST_PER_MS = 800
"""Notifications that may come during a wait without filling the queue; `rm -rf` makes about a hundred (measured)."""


class InotifySource:
    """One queue, one thread: puts hints into a mailbox until it is stopped."""

    def __init__(self, watch: TreeWatch, mailbox: Mailbox) -> None:
        """Own a watch and its queue until `stop`; nothing is read yet."""
        self.watch = watch
        self._mailbox = mailbox
        self._room = queue_room()
        self._is_given_up = False
        self._thread: threading.Thread | None = None
        self._stop_writer = -1
        self._failure = ""

    def start(self) -> None:
        """Start the thread; the first hint is a RESCAN, put when the watches are in place."""
        stop_reader, self._stop_writer = os.pipe()
        self._thread = threading.Thread(target=self._run, args=(stop_reader,), name="watch", daemon=True)
        self._thread.start()

    def stop(self, timeout_s: float | None = None) -> None:
        """End the thread and give the queue back; may be called twice, and without a start.

        A thread that hangs in the kernel for longer than `timeout_s` (None = forever) is left to itself, and nothing
        that it still reads is put into the mailbox.
        """
        if self._is_given_up:
            return
        self._is_given_up = True
        if self._thread is None:
            self.watch.queue.close()
            return
        os.close(self._stop_writer)  # the reader sees the hang-up
        self._thread.join(timeout_s)

    def is_alive(self) -> bool:
        """Return whether notifications still arrive; False before the start and after a failure."""
        return self._thread is not None and self._thread.is_alive()

    def failure(self) -> str:
        """Return why the thread died; empty if it did not."""
        return self._failure

    def _run(self, stop_reader: int) -> None:
        try:
            self._read(stop_reader)
        except Exception as error:  # the fence around this thread's loop: a dead watch must be reported
            self._failure = str(WatchLostError(f"thread `watch` on {self.watch.root} ended: {error!r}"))
            LOGGER.exception("thread %s died", "watch")
        finally:
            self.watch.queue.close()
            os.close(stop_reader)

    def _read(self, stop_reader: int) -> None:
        watch, queue = self.watch, self.watch.queue
        stop = select.poll()
        stop.register(stop_reader, select.POLLIN)
        either = select.poll()
        either.register(stop_reader, select.POLLIN)
        either.register(queue.fileno(), select.POLLIN)
        self._put(watch.tick())
        linger_ms = LINGER_MS
        while True:
            is_busy = linger_ms != LINGER_MS
            ready = is_busy or either.poll(AWAITING_MS if watch.awaits_root() else TICK_MS)
            if stop.poll(linger_ms if ready else 0):
                return
            before = queue.notifications
            hints = watch.handle(queue.read()) if ready else []
            read = queue.notifications - before
            linger_ms = next_linger_ms(linger_ms, read, self._room, is_drained=queue.is_drained)
            self._put(hints + watch.tick())

    def _put(self, hints: list[Hint]) -> None:
        if not self._is_given_up:
            self._mailbox.put_all(hints)


def next_linger_ms(linger_ms: int, read: int, room: int, *, is_drained: bool) -> int:
    """Return how long to wait before the next read, after one that gave `read` of the `room` notifications of a queue.

    What comes after a quiet moment is passed on as soon as ever, and a queue that fills is read without a wait.
    """
    if not is_drained:
        return 0
    if not MANY <= read <= room // 16:
        return LINGER_MS
    longest_ms = max(LINGER_MS, min(LONGEST_LINGER_MS, room // FASTEST_PER_MS))
    return min(2 * max(linger_ms, LINGER_MS), longest_ms)
