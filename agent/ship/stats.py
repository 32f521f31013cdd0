"""The spool in numbers. Values only."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class SpoolStats:
    """State of the spool in numbers; see `agent.publish.snapshot.SpoolMetrics` for each."""

    records: int = 0
    bytes: int = 0
    segments: int = 0
    oldest_at_us: int | None = None
    dropped: Mapping[str, int] = field(default_factory=dict)
    torn_tails: int = 0
    corrupt_segments: int = 0
    write_failures: int = 0
    aside: int = 0
