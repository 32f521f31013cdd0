"""The wall clock: asked when events are ingested, and to know whose clock is ahead of ours; times as numbers."""

from __future__ import annotations

import time
from datetime import UTC, datetime

SKEW_US = 60 * 1_000_000
"""So far (microseconds) a clock may be ahead of ours."""


def now_us() -> int:
    """Return the time, microseconds since the epoch."""
    return time.time_ns() // 1000


def parse_us(text: object) -> int | None:
    """Read RFC 3339 as microseconds since the epoch; None if it is no time: an agent's clock may be broken.

    Spark writes years after 9999, too, and agents' evidence is free text.
    """
    try:
        when = datetime.fromisoformat(str(text))
    except ValueError:
        return None
    return epoch_us(when) if when.tzinfo else None


def epoch_us(when: datetime) -> int:
    """Write a time as microseconds since the epoch."""
    elapsed = when - datetime(1970, 1, 1, tzinfo=UTC)
    return (elapsed.days * 86_400 + elapsed.seconds) * 1_000_000 + elapsed.microseconds
