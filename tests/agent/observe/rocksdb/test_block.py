"""Blocks of an SST file: hostile lengths and counts."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.observe.rocksdb.block import Handle, entries, index_handles
from agent.observe.rocksdb.coding import DamagedError, UnsupportedError
from tests.support.rocksdb_writer import varint


def block(*items: tuple[int, bytes, bytes], restarts: int = 1, flags: int = 0, extra: bytes = b"") -> bytes:
    body = b"".join(varint(s) + varint(len(k)) + varint(len(v)) + k + v for s, k, v in items)
    return body + bytes(4 * restarts) + extra + (restarts | flags).to_bytes(4, "little")


def test_prefix_compression():
    """A key is put together from its predecessor's beginning and its own rest."""
    content = block((0, b"topic-0", b"a"), (6, b"1", b"b"), (0, b"u", b""))
    assert list(entries(content, 10)) == [(b"topic-0", b"a"), (b"topic-1", b"b"), (b"u", b"")]


def test_hash_index_is_passed_over():
    """The hash index behind the entries is not taken for entries."""
    content = block((0, b"k", b"v"), flags=1 << 31, extra=b"\xff\x00\xfe" + (3).to_bytes(2, "little"))
    assert list(entries(content, 10)) == [(b"k", b"v")]


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\0\0\0",
        block((1, b"k", b"v")),
        block((0, b"k", b"v"), restarts=1)[:-4] + (100).to_bytes(4, "little"),
        block((0, b"k", b"v"), flags=1 << 31),
        varint(0) + varint(2**60) + varint(1) + b"k" + bytes(4) + (1).to_bytes(4, "little"),
        varint(0) + varint(1) + varint(2**60) + b"k" + bytes(4) + (1).to_bytes(4, "little"),
        block(*[(0, b"k", b"v")] * 11),
        block((0, b"k" * 320, b""), (320, b"k", b"")),
    ],
)
def test_damage(content):
    """Lengths that do not fit, sharing with nothing, and too many entries are damage."""
    with pytest.raises(DamagedError):
        list(entries(content, 10))


def test_later_features():
    """Flags of a later RocksDB are not guessed at."""
    with pytest.raises(UnsupportedError):
        list(entries(block((0, b"k", b"v"), flags=1 << 28), 10))


def index_entry(shared: int, key: bytes, value: bytes, *, sized: bool) -> bytes:
    return varint(shared) + varint(len(key)) + (varint(len(value)) if sized else b"") + key + value


def test_plain_index():
    """Index values hold a handle each."""
    body = b"".join(
        index_entry(0, b"k", varint(offset) + varint(100), sized=True) for offset in (0, 105, 210)
    )
    content = body + bytes(4) + (1).to_bytes(4, "little")
    found = index_handles(content, delta_encoded=False, first_keys=False, limit=10)
    assert found == [Handle(0, 100), Handle(105, 100), Handle(210, 100)]


def test_delta_encoded_index():
    """A value after a shared key holds only how much its block's size differs from the one before."""
    first_key = varint(3) + b"abc"
    body = index_entry(0, b"key", varint(0) + varint(100) + first_key, sized=False)
    body += index_entry(2, b"z", varint(9) + first_key, sized=False)  # zigzag: -5
    content = body + bytes(4) + (1).to_bytes(4, "little")
    found = index_handles(content, delta_encoded=True, first_keys=True, limit=10)
    assert found == [Handle(0, 100), Handle(105, 95)]


def test_hostile_index():
    """A difference without predecessor, a negative size and an endless index are damage."""
    alone = index_entry(1, b"z", varint(9), sized=False) + bytes(4) + (1).to_bytes(4, "little")
    with pytest.raises(DamagedError):
        index_handles(alone, delta_encoded=True, first_keys=False, limit=10)
    shrunk = index_entry(0, b"k", varint(0) + varint(10), sized=False)
    shrunk += (
        index_entry(1, b"", varint(25), sized=False) + bytes(4) + (1).to_bytes(4, "little")
    )  # zigzag: -13
    with pytest.raises(DamagedError):
        index_handles(shrunk, delta_encoded=True, first_keys=False, limit=10)
    many = index_entry(0, b"", varint(0) + varint(0), sized=False) * 11 + bytes(4) + (1).to_bytes(4, "little")
    with pytest.raises(DamagedError):
        index_handles(many, delta_encoded=True, first_keys=False, limit=10)


@given(st.binary(max_size=100), st.booleans(), st.booleans())
def test_garbage(content, delta_encoded, first_keys):
    """Arbitrary bytes give entries or a declared error, and never more than the limit."""
    with contextlib.suppress(DamagedError, UnsupportedError):
        assert len(list(entries(content, 5))) <= 5
    with contextlib.suppress(DamagedError, UnsupportedError):
        found = index_handles(content, delta_encoded=delta_encoded, first_keys=first_keys, limit=5)
        assert len(found) <= 5
