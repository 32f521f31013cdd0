"""A short history with a bound."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from agent.inventory.recent import Recent


@given(st.lists(st.integers()), st.integers(1, 5))
def test_keeps_the_newest(entries: list[int], room: int) -> None:
    """Whatever is appended, the newest entries are there, oldest first."""
    recent: Recent[int] = Recent(room)
    for entry in entries:
        recent.append(entry)
    assert recent == entries[-room:]
