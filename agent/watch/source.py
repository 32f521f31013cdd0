"""What the pipeline needs to know of a source of notifications."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


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
