"""Durations for people."""

from __future__ import annotations

import pytest

from agent.judging.base import seconds


@pytest.mark.parametrize(
    ("microseconds", "text"),
    [(0, "0.0 s"), (400_000, "0.4 s"), (9_400_000, "9.4 s"), (10_000_000, "10 s"), (10_400_000, "10 s")],
)
def test_seconds(microseconds, text):
    """A tenth is told up to ten seconds, whole seconds from there on."""
    assert seconds(microseconds) == text
