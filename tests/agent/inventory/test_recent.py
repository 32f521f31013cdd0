"""A short history with a bound."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from agent.inventory.recent import Recent, recent


@given(st.lists(st.integers()), st.integers(1, 5))
def test_keeps_the_newest(entries: list[int], room: int) -> None:
    """Whatever is appended, the newest entries are there, oldest first."""
    kept: Recent[int] = Recent(room)
    for entry in entries:
        kept.append(entry)
    assert kept == entries[-room:]


@given(st.lists(st.integers()), st.integers(1, 5))
def test_a_history_keeps_the_newest(entries: list[int], room: int) -> None:
    """The same for a history that is a tuple."""
    known: tuple[int, ...] = ()
    for entry in entries:
        known = recent(known, entry, room)
    assert known == tuple(entries[-room:])
