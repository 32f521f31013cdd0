"""The spool in numbers. Values only."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from agent.ship.backlog import Backlog
from agent.ship.segments import OpenSegment


@dataclass(frozen=True, slots=True)
class SpoolStats:
    """State of the spool in numbers.

    Args of the dataclass:
        records: Records that wait to be shipped, the open segment included.
        bytes: Bytes on disk, files that were set aside included.
        segments: Segments that wait, the open one included.
        oldest_at_us: When the oldest waiting record was observed; None = nothing waits.
        dropped: Record kind (or `unknown`) -> records given up since the agent started.
        corrupt_segments: Segments set aside because they could not be read.
        write_failures: Appends that the disk refused.
        aside: What is kept for a look: unreadable segments, and those that the sink rejected.
    """

    records: int = 0
    bytes: int = 0
    segments: int = 0
    oldest_at_us: int | None = None
    dropped: Mapping[str, int] = field(default_factory=dict)
    torn_tails: int = 0
    corrupt_segments: int = 0
    write_failures: int = 0
    aside: int = 0


@dataclass(slots=True)
class Counters:
    """What the spool counts since its start; `dropped`: record kind -> records given up."""

    torn_tails: int = 0
    corrupt_segments: int = 0
    write_failures: int = 0
    dropped: dict[str, int] = field(default_factory=dict)


def stats_of(counters: Counters, backlog: Backlog, opened: OpenSegment | None) -> SpoolStats:
    """Count what is there now, the open segment included if it has records."""
    records = sum(segment.records for segment in backlog.segments)
    oldest = [segment.oldest_at_us for segment in backlog.segments]
    if opened is not None and opened.records:
        records += opened.records
        oldest.append(opened.oldest_at_us)
    return SpoolStats(
        records=records,
        bytes=backlog.bytes + (opened.size_bytes if opened is not None else 0),
        segments=len(oldest),
        oldest_at_us=min(oldest, default=None),
        dropped=dict(counters.dropped),
        torn_tails=counters.torn_tails,
        corrupt_segments=counters.corrupt_segments,
        write_failures=counters.write_failures,
        aside=backlog.aside,
    )
