"""Log framing: fragments, blocks, and what a damaged end does."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.observe.rocksdb import log_records
from agent.observe.rocksdb.checksum import masked_crc32c
from agent.observe.rocksdb.log_records import End, read_records
from tests.support.rocksdb_writer import BLOCK_BYTES, frame

RECORDS = st.lists(st.one_of(st.binary(max_size=50), st.integers(32_700, 70_000).map(bytes)), max_size=4)


def fragment(kind: int, part: bytes) -> bytes:
    body = bytes([kind]) + part
    return masked_crc32c(body).to_bytes(4, "little") + len(part).to_bytes(2, "little") + body


@given(RECORDS)
def test_round_trip(records):
    """Records of any size come back, also across blocks."""
    content = read_records(frame(records))
    assert list(content.records) == records
    assert not content.torn


@pytest.mark.parametrize("size", range(BLOCK_BYTES - 16, BLOCK_BYTES + 2))
def test_block_borders(size):
    """A record may end anywhere before the end of a block."""
    records = [bytes(size), b"next"]
    assert read_records(frame(records)).records == tuple(records)


@given(st.lists(st.binary(min_size=1, max_size=20), min_size=1, max_size=5), st.data())
def test_cut(records, data):
    """A cut log gives the records that are whole, and tells if it was cut inside one."""
    whole = frame(records)
    borders = [len(frame(records[:count])) for count in range(len(records) + 1)]
    cut = data.draw(st.integers(0, len(whole)))
    content = read_records(whole[:cut])
    assert list(content.records) == records[: sum(1 for border in borders if border <= cut) - 1]
    # a checksum may begin with zero bytes, which alone cannot be told from an unused rest
    if cut in borders:
        assert not content.torn
    elif cut - max(border for border in borders if border <= cut) >= 7:
        assert content.torn


@given(st.data())
def test_flipped_bit(data):
    """A flipped bit ends the log before its record, and is told."""
    records = [b"first record", b"second record", b"third record"]
    whole = bytearray(frame(records))
    bit = data.draw(st.integers(0, len(whole) * 8 - 1))
    whole[bit // 8] ^= 1 << bit % 8
    content = read_records(bytes(whole))
    assert list(content.records) == records[: len(content.records)]
    assert len(content.records) <= bit // 8 // len(frame(records[:1]))
    assert content.torn


def test_ignorable_kind():
    """A record of a later release that may be ignored is passed over."""
    content = read_records(fragment(1, b"a") + fragment(0x85, b"later") + fragment(1, b"b"))
    assert content.records == (b"a", b"b")
    assert not content.torn


def test_number_of_records_is_bounded(monkeypatch):
    """Endless tiny records, or fragments of one, end the reading and are told."""
    monkeypatch.setattr(log_records, "_MAX_RECORDS", 3)
    assert read_records(frame([b"a"] * 3)) == log_records.LogContent((b"a",) * 3, torn=False)
    assert read_records(frame([b"a"] * 4)) == log_records.LogContent((b"a",) * 3, torn=True)
    parts = fragment(2, b"a") + fragment(3, b"") * 9 + fragment(4, b"z")
    assert read_records(parts) == log_records.LogContent((), torn=True)


@given(st.binary(max_size=300))
def test_garbage(data):
    """No content makes it raise."""
    read_records(data)


@pytest.mark.parametrize(
    ("data", "ending"),
    [
        (fragment(1, b"a"), End.WHOLE),
        *((fragment(1, b"a") + bytes(rest), End.WHOLE) for rest in (1, 6, 7, 100, 2 * BLOCK_BYTES)),
        (fragment(1, b"a")[:-1], End.CUT),
        (fragment(2, b"first without last"), End.CUT),
        (fragment(2, b"first") + bytes(100), End.CUT),
        (fragment(3, b"middle first"), End.CORRUPT),
        (fragment(4, b"last first"), End.CORRUPT),
        (fragment(2, b"first") + fragment(1, b"full inside"), End.CORRUPT),
        (bytes(100) + b"x", End.CORRUPT),
        *((fragment(kind, b"of a later release"), End.UNSUPPORTED) for kind in (5, 9, 10)),
        (frame([bytes(40_000)])[:BLOCK_BYTES] + b"\0" * 9, End.CUT),
        (b"\1\2\3\4\xff\xff\1" + bytes(40_000), End.CORRUPT),
        (b"\1\2\3\4\xff\xff\1" + bytes(100), End.CUT),
    ],
)
def test_endings(data, ending):
    """A record that the file ends in is told apart from one that is wrong, and that from one that is new."""
    content = read_records(data)
    assert (content.ending, content.torn) == (ending, ending is not End.WHOLE)
    assert content.torn or content.records == (b"a",)


@given(RECORDS, st.data())
def test_continued(records, data):
    """A piece of a file, from where a record ends, gives what follows, at the same offsets."""
    whole = frame(records)
    ends = (0, *read_records(whole).ends)
    count = data.draw(st.integers(0, len(records)))
    rest = read_records(whole[ends[count] :], base=ends[count])
    assert list(rest.records) == records[count:]
    assert (rest.ending, rest.ends) == (End.WHOLE, ends[count + 1 :])
