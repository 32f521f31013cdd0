"""The system clock."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from agent.clock import SystemClock, current_boot


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


def test_the_boot_began_before_now_and_stays_where_it_is() -> None:
    """Between two answers only the wall clock can have been set."""
    first, second = current_boot(), current_boot()
    assert first is not None
    assert second is not None
    assert first.id == second.id
    assert 0 < first.began_us < SystemClock().now_us()


def test_a_kernel_that_names_no_boot_is_not_asked_when_it_began(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without its id two times of a boot may be those of two machines."""

    def refuse(*_: object, **__: object) -> str:
        raise FileNotFoundError

    monkeypatch.setattr(Path, "read_text", refuse)
    assert current_boot() is None
