"""A short history with a bound."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from agent.inventory.recent import Recent, recent, share_numbers
from agent.inventory.stores import CheckpointClaim


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


def test_equal_numbers_are_one_object_and_stay_what_they_are() -> None:
    """Only numbers: a truth is equal to one and is none, and nothing else is touched."""
    large = 10**15
    marks = [
        CheckpointClaim(large, int(str(large)), 1, unsure=True),
        CheckpointClaim(int(str(large)), 7, int(str(large))),
    ]
    before = [CheckpointClaim(x.at_us, x.offset, x.puts, x.unsure) for x in marks]
    share_numbers(marks)
    assert marks == before
    assert marks[0].unsure is True
    assert len({id(x) for x in (marks[0].at_us, marks[0].offset, marks[1].at_us, marks[1].puts)}) == 1
