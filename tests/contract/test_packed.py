"""Buckets in an event: nothing is lost, and an event always has room for them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.contract.buckets import MAX_BUCKETS, Bucket
from agent.contract.packed import MAX_ROWS, buckets_for, pack
from tests.support.packed import unpack

_PRINT = st.integers(-(2**63), 2**63 - 1)
_COUNT = st.integers(0, 2**32 - 1)


@given(st.lists(st.builds(Bucket, _COUNT, _COUNT, _PRINT, _PRINT, _PRINT)))
def test_packed_buckets_come_back_as_they_were(rows: list[Bucket]) -> None:
    """Numbers, signs and order."""
    packed = pack(rows)
    assert unpack(packed) == rows
    assert packed.isascii()
    assert "\n" not in packed


def test_the_bytes_are_those_that_the_contract_says() -> None:
    """32 bytes, big-endian: what another reader cuts out by position."""
    packed = pack([Bucket(1, 2, 3, -1, 5)])
    assert packed == "AAAAAQAAAAIAAAAAAAAAA///////////AAAAAAAAAAU="


def test_a_bucket_with_too_many_entries_is_an_error() -> None:
    """It is never cut off to a number that fits."""
    with pytest.raises(OverflowError, match="too many entries"):
        pack([Bucket(0, 2**32, 0, 0, 0)])


@given(st.integers(0, 20).map(lambda x: 1 << x), st.integers(0, MAX_ROWS))
def test_an_event_has_room_for_all_databases(wanted: int, databases: int) -> None:
    """A power of two, never more than asked for, no fewer than fit."""
    number = buckets_for(wanted, databases)
    assert number & (number - 1) == 0
    assert 1 <= number <= wanted <= MAX_BUCKETS
    assert number * max(1, databases) <= MAX_ROWS
    assert number == wanted or 2 * number * max(1, databases) > MAX_ROWS
