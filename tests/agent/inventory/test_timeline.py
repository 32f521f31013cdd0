"""Histories with a bound: a timeline behaves as the tuple of pairs that it stands for."""

from __future__ import annotations

import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.errors import BaselineError
from agent.inventory.portable import from_plain, to_plain
from agent.inventory.recent import Recent, recent, share_numbers
from agent.inventory.stores import FLUSHES_KEPT, CheckpointClaim, Database
from agent.inventory.timeline import NOTHING_FLUSHED, Timeline

PAIRS = ((100, 10), (300, 20), (300, 1_700_000_000_000_000))


def test_an_empty_one_is_false_and_equal_to_every_empty_one() -> None:
    """A database that was never flushed."""
    assert not Timeline()
    assert Timeline() == NOTHING_FLUSHED
    assert hash(Timeline()) == hash(NOTHING_FLUSHED)
    assert Database("a", None).flushed is NOTHING_FLUSHED


def test_a_number_that_no_file_can_hold_is_cut() -> None:
    """A damaged manifest must not end the agent."""
    assert [*Timeline([(1 << 70, -(1 << 70)), (1, 2)])] == [((1 << 63) - 1, 1 - (1 << 63)), (1, 2)]


def test_a_baseline_has_it_as_pairs() -> None:
    """In the form that it always had there; its bound holds, whatever was written."""
    database = Database("a", None, flushed=Timeline(PAIRS))
    plain = to_plain(database)
    assert plain["flushed"] == [[*pair] for pair in PAIRS]
    assert from_plain(Database, plain) == database
    plain["flushed"] = [[n, n] for n in range(2 * FLUSHES_KEPT)]
    assert len(from_plain(Database, plain).flushed) == FLUSHES_KEPT
    for wrong in ([[1]], [[1, "2"]], [1], 5):
        with pytest.raises(BaselineError):
            from_plain(Database, {**plain, "flushed": wrong})


def test_a_full_one_is_small() -> None:
    """Well below what 48 pairs take."""
    numbers = Timeline((n, n) for n in range(FLUSHES_KEPT))
    assert sys.getsizeof(numbers) + sys.getsizeof(numbers._numbers) < 1_000


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
