"""Entries of the `offsets` family: which one is the newest, and what it says."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.observe.rocksdb.coding import DamagedError, UnsupportedError
from agent.observe.rocksdb.offsets import (
    OffsetsFacts,
    OffsetsRecord,
    StoredLong,
    decode_records,
    summarize,
)


def long(value: int) -> bytes:
    return value.to_bytes(8, "big", signed=True)


def record(key: str, value: int | None, sequence: int, file_number: int = 10) -> OffsetsRecord:
    return OffsetsRecord(key.encode(), None if value is None else long(value), sequence, file_number)


CLOSE = (record("in-0", 2999, 3008, 13), OffsetsRecord(b"position", b"\0" + bytes(4), 3009, 13), record("status",
         0, 3010, 13))  # fmt: skip
WRITES = (record("t-0", 5, 7, 10), record("t-0", 9, 30, 12), record("t-0", -4, 2, 8))
NEWEST = {"offsets": (("t-0", StoredLong(9, 30, 12)),)}


@pytest.mark.parametrize(
    ("records", "said"),
    [
        ((), {}),  # a store that was killed before its first flush
        (
            CLOSE,
            {
                "status": StoredLong(0, 3010, 13),
                "offsets": (("in-0", StoredLong(2999, 3008, 13)),),
                "position_sequence": 3009,
            },
        ),
        (WRITES, NEWEST),  # the newest write of a key counts, in whatever order files are read
        (WRITES[::-1], NEWEST),
        # a sequence of 0 is older than any other; among two of them the newer run, given first, counts
        ((record("status", 1, 4, 12), record("status", 0, 0, 10)), {"status": StoredLong(1, 4, 12)}),
        ((record("t-0", 7, 0, 11), record("t-0", 6, 0, 9)), {"offsets": (("t-0", StoredLong(7, 0, 11)),)}),
        # a deletion hides what was written before it, and only that
        ((record("t-0", None, 9), record("t-0", 5, 7)), {}),
        ((record("t-1", 6, 12), record("t-1", None, 9)), {"offsets": (("t-1", StoredLong(6, 12, 10)),)}),
        # the partition is what follows the last dash
        *(
            ((record(f"{x}-3", 1, 1),), {"offsets": ((f"{x}-3", StoredLong(1, 1, 10)),)})
            for x in ("with-dash-1", "käse")
        ),
    ],
)
def test_summary(records, said):
    """By the newest entry of each key."""
    assert summarize(records) == OffsetsFacts(**said)


@pytest.mark.parametrize("value", [b"", b"\0" * 7, b"\0" * 9])
def test_damaged_value(value):
    """An entry of the wrong size is a problem of its own, the others count."""
    facts = summarize([OffsetsRecord(b"status", value, 5, 10), record("t-0", 1, 4)])
    assert facts.status is None
    assert len(facts.offsets) == 1
    assert facts.problems == (f"entry status: {len(value)} bytes instead of 8",)


@given(st.binary(max_size=80))
def test_a_position_counts_by_its_time_alone(content):
    """What it says is nobody's business here, so nothing in it is a problem; the offsets beside it count."""
    facts = summarize([OffsetsRecord(b"position", content, 3, 10), record("t-0", 1, 4)])
    assert facts == OffsetsFacts(offsets=(("t-0", StoredLong(1, 4, 10)),), position_sequence=3)


def test_records():
    """Sequence and type are split off the key."""
    items = [
        (b"status" + (77 << 8 | 1).to_bytes(8, "little"), long(0)),
        (b"t-0" + (78 << 8 | 0).to_bytes(8, "little"), b""),
    ]
    assert list(decode_records(items, 12)) == [record("status", 0, 77, 12), record("t-0", None, 78, 12)]


def test_records_of_other_kinds():
    """Merges and blobs are not guessed at; a key without sequence is damage."""
    with pytest.raises(UnsupportedError, match="type 2"):
        list(decode_records([(b"t-0" + (78 << 8 | 2).to_bytes(8, "little"), b"")], 12))
    with pytest.raises(DamagedError):
        list(decode_records([(b"short", b"")], 12))
