"""The system clock."""

from __future__ import annotations

import time

from agent.clock import SystemClock


def test_wall_clock_counts_microseconds_since_the_epoch() -> None:
    """The wall clock lies between two readings of the system's own."""
    before_ns = time.time_ns()
    now_us = SystemClock().now_us()
    assert before_ns // 1000 <= now_us <= time.time_ns() // 1000


def test_monotonic_clock_counts_seconds() -> None:
    """The monotonic clock lies between two readings of the system's own."""
    before_s = time.monotonic()
    now_s = SystemClock().monotonic_s()
    assert before_s <= now_s <= time.monotonic()
