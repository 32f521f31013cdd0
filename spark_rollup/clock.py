"""The wall clock: asked when events are ingested, and to know whose clock is ahead of ours; times as numbers."""

from __future__ import annotations

import time

SKEW_US = 60 * 1_000_000
"""So far (microseconds) a clock may be ahead of ours."""


def now_us() -> int:
    """Return the time, microseconds since the epoch."""
    return time.time_ns() // 1000
