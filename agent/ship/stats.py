"""The spool in numbers. Values only."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from agent.ship.batches import Batch


@dataclass(frozen=True, slots=True)
class SpoolStats:
    """State of the spool in numbers."""

    records: int = 0  # records that wait to be shipped, the open segment included
    bytes: int = 0  # bytes in use, a damaged database that was set aside included
    segments: int = 0  # segments that wait, the open one included
    oldest_at_us: int | None = None  # when the oldest waiting record was observed; None = nothing waits
    dropped: Mapping[str, int] = field(default_factory=dict)
    """Record kind (or `unknown`) -> records given up since the agent started."""
    corrupt_segments: int = 0  # how often damage was found
    write_failures: int = 0  # appends that the disk refused
    aside: int = 0  # what is kept for inspection: a damaged database, and segments that the sink rejected


@dataclass(slots=True)
class Counters:
    """What the spool counts since its start; `dropped`: record kind -> records given up."""

    corrupt_segments: int = 0
    write_failures: int = 0
    dropped: dict[str, int] = field(default_factory=dict)


def stats_of(counters: Counters, batches: Sequence[Batch], size_bytes: int, aside_files: int) -> SpoolStats:
    """Count what is there now, the open batch included."""
    waiting = [batch for batch in batches if batch.records and not batch.is_rejected]
    return SpoolStats(
        records=sum(batch.records for batch in waiting),
        bytes=size_bytes,
        segments=len(waiting),
        oldest_at_us=min((batch.oldest_at_us for batch in waiting), default=None),
        dropped=dict(counters.dropped),
        corrupt_segments=counters.corrupt_segments,
        write_failures=counters.write_failures,
        aside=aside_files + sum(batch.is_rejected for batch in batches),
    )
