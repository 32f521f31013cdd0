"""Numbers and strings in a bounded buffer."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.observe.rocksdb.coding import Cursor, DamagedError
from tests.support.rocksdb_writer import string, varint


@given(st.lists(st.integers(0, 2**64 - 1)))
def test_varints(numbers):
    """Every 64-bit number is read back, one after the other."""
    cursor = Cursor(b"".join(map(varint, numbers)))
    assert [cursor.varint() for _ in numbers] == numbers
    assert cursor.is_at_end


@pytest.mark.parametrize(("encoded", "value"), [(0, 0), (1, -1), (2, 1), (3, -2), (2**64 - 1, -(2**63))])
def test_signed(encoded, value):
    """Signed numbers are zigzag-encoded."""
    assert Cursor(varint(encoded)).signed_varint() == value


@pytest.mark.parametrize("data", [b"", b"\x80", b"\xff" * 10, b"\x80" * 11 + b"\x01"])
def test_bad_varints(data):
    """A number that does not end, or ends too late, is damage."""
    with pytest.raises(DamagedError):
        Cursor(data).varint()


@given(st.binary(), st.binary(max_size=5))
def test_strings(content, rest):
    """A string is read or passed over by its length."""
    reader, skipper = Cursor(string(content) + rest), Cursor(string(content) + rest)
    assert reader.string() == content
    skipper.skip_string()
    assert reader.position == skipper.position == len(string(content))


@pytest.mark.parametrize("length", [4, 2**63])
def test_length_beyond_the_end(length):
    """A length that runs over the end is damage, however large."""
    with pytest.raises(DamagedError):
        Cursor(varint(length) + b"abc").string()
    with pytest.raises(DamagedError):
        Cursor(b"abcdef", 0, 3).read(length)
