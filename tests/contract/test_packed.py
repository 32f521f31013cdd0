"""Buckets in an event: nothing is lost, and an event always has room for them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.contract import buckets
from agent.contract.buckets import (
    MAX_BUCKETS,
    MAX_ROWS,
    Bucket,
    Database,
    StoreDigest,
    StoreKind,
    StoreState,
    body_of,
    buckets_for,
    pack,
)  # fmt: skip
from agent.contract.codec import Encoder, decode
from agent.contract.events import Kind, Origin, Record
from tests.support.packed import unpack

_PRINT = st.integers(-(2**63), 2**63 - 1)
_COUNT = st.integers(0, 2**32 - 1)


@given(st.lists(st.builds(Bucket, _COUNT, _COUNT, _PRINT, _PRINT, _PRINT)))
def test_packed_buckets_come_back_as_they_were(rows: list[Bucket]) -> None:
    """Numbers, signs and order."""
    packed = pack(rows)
    assert unpack(packed) == list(buckets.unpack(packed)) == rows
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


def test_an_event_says_all_of_a_digest() -> None:
    """Field by field, through the codec and back; what is not known is null or absent."""
    one = Database(60_000, 9, True, 1_700_000_000_000_000, 2, pack([Bucket(3, 2, -5, 1, -(2**63))]), "life-1")
    other = Database(None, None, False, 1_700_000_000_000_001, 0)
    digest = StoreDigest(
        "orders", "0_1", "totals", StoreKind.WINDOW, StoreState.KILLED, "orders-totals-changelog", 1, 9,
        1_700_000_000_000_002, 4, (one, other),
    )  # fmt: skip
    event = decode(Encoder(Origin("uid", "boot", "pod-0")).encode(Record(Kind.DIGEST, 1, body_of(digest)), 1))
    assert (event["application_id"], event["task_id"], event["store"]) == ("orders", "0_1", "totals")
    assert event["digests"] == [{
        "format": 1, "kind": "window", "state": "killed", "topic": "orders-totals-changelog", "partition": 1,
        "offset": 9, "made_us": 1_700_000_000_000_002, "buckets": 4, "databases": [
            {"segment_ms": 60_000, "identity": "life-1", "offset": 9, "is_exact": True,
             "written_us": 1_700_000_000_000_000, "entries": 2, "packed": one.packed},
            {"segment_ms": None, "identity": None, "offset": None, "is_exact": False,
             "written_us": 1_700_000_000_000_001, "entries": 0, "packed": ""},
        ],
    }]  # fmt: skip
