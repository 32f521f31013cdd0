"""The counters of an SST file."""

from __future__ import annotations

import pytest

from agent.observe.rocksdb.coding import DamagedError
from agent.observe.rocksdb.properties import parse_properties
from tests.support.rocksdb_writer import varint


def test_all_known():
    """Each known property ends in its field; others are ignored."""
    items = {
        b"rocksdb.num.entries": varint(300),
        b"rocksdb.deleted.keys": varint(50),
        b"rocksdb.num.range-deletions": varint(1),
        b"rocksdb.raw.key.size": varint(4000),
        b"rocksdb.raw.value.size": varint(5000),
        b"rocksdb.num.data.blocks": varint(3),
        b"rocksdb.creation.time": varint(1_795_000_000),
        b"rocksdb.oldest.key.time": varint(1_794_000_000),
        b"rocksdb.file.creation.time": varint(1_795_000_001),
        b"rocksdb.block.based.table.index.type": (2).to_bytes(4, "little"),
        b"rocksdb.index.value.is.delta.encoded": varint(1),
        b"rocksdb.whole.key.filtering": b"1",
        b"user.key": b"\xff",
    }
    found = parse_properties(items.items())
    assert (found.entries, found.deletions, found.range_deletions) == (300, 50, 1)
    assert (found.creation_time_s, found.oldest_key_time_s) == (1_795_000_000, 1_794_000_000)
    assert found.file_creation_time_s == 1_795_000_001
    assert (found.index_type, found.index_delta_encoded) == (2, True)


def test_old_release():
    """What an old RocksDB does not write is unknown, not zero."""
    found = parse_properties([(b"rocksdb.num.entries", varint(1))])
    assert found.creation_time_s is None
    assert (found.deletions, found.index_type, found.index_delta_encoded) == (0, 0, False)


@pytest.mark.parametrize(
    "items",
    [
        [],
        [(b"rocksdb.num.entries", b"\x80")],
        [(b"rocksdb.num.entries", b"")],
        [(b"rocksdb.num.entries", varint(2**48 + 1))],
        [(b"rocksdb.num.entries", varint(1)), (b"rocksdb.deleted.keys", varint(2**63))],
    ],
)
def test_damage(items):
    """Without a readable number of entries, or with numbers that no file can have, there are no counters."""
    with pytest.raises(DamagedError):
        parse_properties(items)
