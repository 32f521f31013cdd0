"""Buckets in an event: nothing is lost, and an event always has room for them."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.contract.buckets import MAX_BUCKETS, Bucket, Database, StoreDigest, StoreKind, StoreState, to_line
from agent.contract.codec import Encoder, decode
from agent.contract.events import Kind, Origin, Record
from agent.contract.packed import MAX_ROWS, body_of, buckets_for, pack
from tests.support.packed import line_of, unpack

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


ROW = Bucket(3, 2, -5, 2**63 - 1, -(2**63))
ONE = Database(None, 9, True, 1_700_000_000_000_000, 2, (ROW,))
DIGEST = StoreDigest(
    None, "shop", "orders-0", "orders", "0_1", "totals", StoreKind.KEY_VALUE, StoreState.CLOSED,
    "orders-totals-changelog", 1, 9, 1_700_000_000_000_001, "0.1.0", 4, (ONE,),
)  # fmt: skip
SEGMENTS = (
    replace(ONE, segment_ms=60_000),
    replace(ONE, segment_ms=120_000, offset=None, buckets=(), entries=0),
)


@pytest.mark.parametrize(
    "digest",
    [
        DIGEST,
        replace(DIGEST, cluster="eu-1", state=StoreState.KILLED, offset=None),
        replace(DIGEST, kind=StoreKind.WINDOW, databases=SEGMENTS),
        replace(DIGEST, kind=StoreKind.WINDOW, databases=()),
    ],
    ids=["plain", "cluster", "segments", "no segment"],
)
def test_the_event_says_what_the_line_says(digest: StoreDigest) -> None:
    """Field by field, through the codec and back."""
    origin = Origin(
        "uid", "boot", digest.pod, digest.namespace, "", digest.agent_version, digest.cluster or ""
    )
    event = decode(Encoder(origin).encode(Record(Kind.DIGEST, digest.made_us, body_of(digest)), 1))
    assert line_of(event) == json.loads(to_line(digest))
