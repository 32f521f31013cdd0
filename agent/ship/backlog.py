"""The sealed segments of a spool that wait to be shipped, and the files that were set aside.

Order of shipping: oldest first. Order of giving up room: files that were set aside (their loss is announced
already), then segments without findings, then those with findings; oldest first each time. The segment that
is on its way to the sink stays.
"""

from __future__ import annotations

import logging
from pathlib import Path

from agent.errors import SpoolFullError
from agent.ship.segments import Segment

_LOG = logging.getLogger(__name__)


class Backlog:
    """The queue of a spool; its owner serialises the calls."""

    def __init__(self, segments: list[Segment], aside: list[tuple[Path, int]]) -> None:
        """Start from what recovery found.

        Args:
            segments: Sealed segments, oldest first.
            aside: Files that were set aside, with their sizes, oldest first.
        """
        self._segments, self._aside = segments, aside
        self._in_flight: Segment | None = None
        self._bytes = sum(segment.size_bytes for segment in segments) + sum(size for _, size in aside)

    @property
    def segments(self) -> tuple[Segment, ...]:
        """Segments that wait, oldest first."""
        return tuple(self._segments)

    @property
    def bytes(self) -> int:
        """Size of everything in it."""
        return self._bytes

    def add(self, segment: Segment) -> None:
        """Queue a segment that was just sealed."""
        self._segments.append(segment)
        self._bytes += segment.size_bytes

    def hold(self, segment: Segment | None) -> None:
        """Say which segment is on its way to the sink; None = none."""
        self._in_flight = segment

    def remove(self, segment: Segment) -> None:
        """Delete a segment.

        Raises:
            OSError: the disk refuses; the segment stays.
        """
        segment.path.unlink(missing_ok=True)
        self._segments.remove(segment)
        self._bytes -= segment.size_bytes

    def set_aside(self, segment: Segment, state: str) -> None:
        """Take a segment out of the queue; its file stays for whoever wants to look, until room is needed."""
        self._segments.remove(segment)
        aside = segment.path.with_suffix(f".{state}")
        try:
            segment.path.replace(aside)
        except OSError as error:
            _LOG.error(
                "spool: cannot rename a segment", extra={"segment": segment.name, "reason": str(error)}
            )
            aside = segment.path
        self._aside.append((aside, segment.size_bytes))

    def give_up_one(self) -> Segment | None:
        """Delete what is missed least.

        Returns:
            The segment whose records are lost now; None = it was a file that had been set aside.

        Raises:
            SpoolFullError: nothing may be deleted.
            OSError: the disk refuses.
        """
        if self._aside:
            path, size_bytes = self._aside[0]
            path.unlink(missing_ok=True)
            del self._aside[0]
            self._bytes -= size_bytes
            return None
        free = [segment for segment in self._segments if segment is not self._in_flight]
        if not free:
            raise SpoolFullError("spool is full and nothing may be dropped; raise its cap")
        victim = next((segment for segment in free if not segment.holds_findings), free[0])
        self.remove(victim)
        return victim
