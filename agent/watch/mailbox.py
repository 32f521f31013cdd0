"""The mailbox between the watch and the pipeline: bounded, coalescing, and never silent about a loss."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from dataclasses import dataclass

from agent.inventory.hints import Hint, HintKind
from agent.layout.paths import PathRole, classify

CAPACITY = 65_536
"""Hints that may wait. About 20 MiB when full."""

MAILBOX_FULL = "mailbox-full"
"""Cause of the RESCAN that represents hints that were dropped."""

# What these say about a file is read from the disk anyway, so the newest one is enough: it is there. That a file
# went (DELETED, MOVED_OUT) is all that is left of a wipe: kept, and nothing is merged across it, so that what is
# announced after it reports its re-creation.
_COALESCED = frozenset({HintKind.CREATED, HintKind.WRITTEN, HintKind.MOVED_IN})
_ADDED = frozenset({PathRole.SST, PathRole.POSITION})  # what a store that runs adds now and then
_CANARY = "canary\0"  # no path has a NUL


@dataclass(frozen=True, slots=True)
class MailboxCounters:
    """What went through the mailbox since the start."""

    coalesced: int = 0  # hints that a newer one on the same path replaced
    dropped: int = 0  # hints lost because the mailbox was full; each loss ends in a RESCAN
    waiting: int = 0  # hints in it now


class Mailbox:
    """Hints in the order of their newest announcement. Any thread may put; one thread takes."""

    def __init__(self, capacity: int = CAPACITY) -> None:
        """Make an empty mailbox for `capacity` waiting hints."""
        self._capacity = capacity
        self._condition = threading.Condition()
        self._waiting: dict[int, Hint] = {}  # by number, in order
        self._latest: dict[str, int] = {}  # key -> number of the hint that the next one of this key replaces
        self._number = 0
        self._is_pressing = False  # whether one of them cannot wait
        self._lost: Hint | None = None
        self._coalesced = self._dropped = 0

    def put(self, hint: Hint) -> None:
        """Add one hint; never blocks."""
        self.put_all((hint,))

    def put_all(self, hints: Iterable[Hint]) -> None:
        """Add hints in order and wake the taker once; never blocks."""
        with self._condition:
            was_empty = not self._waiting
            for hint in hints:
                self._put(hint)
                self._is_pressing = self._is_pressing or not _may_wait(hint)
            if self._waiting and (was_empty or self._is_pressing):
                self._condition.notify()

    def await_pressing(self, timeout_s: float) -> None:
        """Wait for a hint that cannot wait to be followed, `timeout_s` at most."""
        with self._condition:
            self._condition.wait_for(lambda: self._is_pressing, timeout_s)

    def drain(self, timeout_s: float) -> list[Hint]:
        """Take everything that waits, oldest first; empty if nothing comes within `timeout_s`.

        After a loss the last one is a RESCAN of everything with cause `mailbox-full`.
        """
        with self._condition:
            self._condition.wait_for(lambda: self._waiting, timeout_s)
            taken = [*self._waiting.values()]
            if self._lost is not None:
                taken.append(self._lost)
            self._waiting, self._latest, self._lost, self._is_pressing = {}, {}, None, False
            return taken

    def counters(self) -> MailboxCounters:
        """Return what went through so far."""
        with self._condition:
            return MailboxCounters(self._coalesced, self._dropped, len(self._waiting))

    def _put(self, hint: Hint) -> None:
        is_file = hint.kind in _COALESCED and not hint.is_directory
        key = hint.path if is_file else _key(hint)
        replaced = None if key is None else self._latest.get(key)
        if replaced is not None:
            del self._waiting[replaced]
            self._coalesced += 1
        elif len(self._waiting) >= self._capacity and hint.kind is not HintKind.RESCAN:
            self._dropped += 1
            since_us = hint.at_us if self._lost is None else self._lost.since_us
            self._lost = Hint(
                "", HintKind.RESCAN, hint.at_us, is_directory=True, cause=MAILBOX_FULL, since_us=since_us
            )
            return
        self._number += 1
        if key is None:
            # What comes later on this path must not overtake this hint's predecessors.
            self._latest.pop(hint.path, None)
        else:
            self._latest[key] = self._number
        self._waiting[self._number] = hint


def _may_wait(hint: Hint) -> bool:
    """Return whether a hint is of what a store does as it runs: nothing is read at once because of it."""
    role = classify(hint.path).role
    return role is PathRole.TEMPORARY or (role in _ADDED and hint.kind in _COALESCED)


def _key(hint: Hint) -> str | None:
    """Name what a hint can be replaced by; None if it must be kept."""
    if hint.kind is HintKind.RESCAN:
        return f"{hint.path}\0{hint.cause}"  # no path has a NUL
    return _CANARY if hint.kind is HintKind.CANARY else None
