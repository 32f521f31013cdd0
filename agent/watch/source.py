"""What the pipeline needs to know of a source of notifications."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol


class Cause(StrEnum):
    """Why a source asks for a rescan, and what may be wrong with it now."""

    START = "start"  # the watches are in place: read everything once
    QUEUE_OVERFLOW = "queue-overflow"  # the kernel dropped notifications
    WATCH_LIMIT = "watch-limit"  # the kernel refuses more watches: those directories are only polled
    WATCH_REFUSED = "watch-refused"  # a directory cannot be read (permissions), so it cannot be watched
    ROOT_MISSING = "root-missing"
    ROOT_REPLACED = "root-replaced"
    WATCH_LOST = "watch-lost"  # the thread died and was started again
    CANARY_MISSED = "canary-missed"  # the agent's own file was not announced, so the thread was started again


@dataclass(slots=True)
class WatchCounters:
    """What a source did since its start."""

    events: int = 0  # notifications read
    overflows: int = 0  # times the kernel dropped notifications
    watches: int = 0  # directories watched now
    unwatched: int = 0  # directories that should be watched and are not
    walks: int = 0  # times the whole tree was walked to put the watches right

    def plus(self, later: WatchCounters) -> WatchCounters:
        """Add the work of a later source; what is watched now is its business alone."""
        return WatchCounters(
            self.events + later.events,
            self.overflows + later.overflows,
            later.watches,
            later.unwatched,
            self.walks + later.walks,
        )


class WatchedTree(Protocol):
    """What is watched, and how well."""

    def is_watched(self, path: str) -> bool:
        """Return whether a directory has a watch now."""
        ...

    def is_canary_watched(self) -> bool:
        """Return whether moves in the agent's own directory are announced now."""
        ...

    def degraded(self) -> dict[str, str]:
        """Return what is wrong now: cause -> one sentence with what to do."""
        ...

    def counters(self) -> WatchCounters:
        """Return what was done so far; a copy."""
        ...


class NotificationSource(Protocol):
    """Puts hints into a mailbox until it is stopped."""

    @property
    def watch(self) -> WatchedTree:
        """What is watched."""
        ...

    def start(self) -> None:
        """Begin; the first hint is a RESCAN of everything, put when the watches are in place."""
        ...

    def stop(self, timeout_s: float | None = None) -> None:
        """End and give everything back; may be called twice, and without a start. None = wait forever."""
        ...

    def is_alive(self) -> bool:
        """Return whether notifications still arrive; False before the start and after a failure."""
        ...

    def failure(self) -> str:
        """Return why the source died; empty if it did not."""
        ...
