"""Writes SST files of any content, sensible or not; no compression."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from agent.observe.rocksdb.checksum import masked_crc32c
from tests.support.rocksdb_writer import varint

_MAGIC = 0x88E241B785F4CFF7
_HANDLES_BYTES = 40
_CRC32C = 1


def entry(shared: int, key: bytes, value: bytes) -> bytes:
    """Encode one entry; `shared` bytes of the key before it come first."""
    return varint(shared) + varint(len(key)) + varint(len(value)) + key + value


class TableWriter:
    """Collects blocks, with checksums or without, then ends the file."""

    def __init__(self, *, checked: bool = False) -> None:
        self._out, self._checked = bytearray(), checked

    def add(self, entries: bytes) -> bytes:
        """Append a block and give its handle."""
        content = entries + bytes(4) + (1).to_bytes(4, "little")  # one restart point, at 0
        handle = varint(len(self._out)) + varint(len(content))
        checksum = masked_crc32c(content + b"\0") if self._checked else 0
        self._out += content + b"\0" + checksum.to_bytes(4, "little")
        return handle

    def add_index(self, handles: Iterable[bytes]) -> bytes:
        """Append an index of blocks and give its handle."""
        return self.add(b"".join(entry(0, b"k", handle) for handle in handles))

    def finish(self, *, index: Iterable[bytes] = (), index_type: int = 0, extra: bytes = b"") -> bytes:
        """Write properties, metaindex, index and footer.

        `index`: handles of the blocks; `extra`: further entries of the metaindex.
        """
        kind = index_type.to_bytes(4, "little")
        about = {b"rocksdb.block.based.table.index.type": kind, b"rocksdb.num.entries": varint(1)}
        handles = self.add(extra + entry(0, b"rocksdb.properties", self.add_all(about)))
        return self.end(handles + self.add_index(index), 5)

    def add_all(self, items: Mapping[bytes, bytes]) -> bytes:
        """Append a block of entries, by their keys."""
        return self.add(b"".join(entry(0, key, items[key]) for key in sorted(items)))

    def end(self, handles: bytes, version: int) -> bytes:
        """Write a footer of a format's version."""
        footer = bytes([_CRC32C * self._checked]) + handles + bytes(_HANDLES_BYTES - len(handles))
        return bytes(self._out) + footer + version.to_bytes(4, "little") + _MAGIC.to_bytes(8, "little")


def sst(
    items: Iterable[tuple[bytes, int, bytes | None]] = (),
    *,
    entries: int | None = None,
    deletions: int = 0,
    oldest_us: int = 0,
    is_flushed: bool = False,
) -> bytes:
    """Write a small file that RocksDB's reader would accept; value None = a deletion.

    Data families need no items, their entries are never read. `entries`: what the properties announce, by default the
    number of `items`; `oldest_us`: time of the oldest data, of which they keep the seconds. `is_flushed`: so old is
    the first key of a memtable.
    """
    stored = sorted((key, sequence, value) for key, sequence, value in items)
    count = len(stored) if entries is None else entries
    out = TableWriter(checked=True)
    data = out.add(b"".join(entry(0, _internal(*item), item[2] or b"") for item in stored))
    properties = out.add_all({
        b"rocksdb.creation.time": varint(oldest_us // 1_000_000),
        b"rocksdb.deleted.keys": varint(deletions),
        b"rocksdb.num.entries": varint(count),
        b"rocksdb.oldest.key.time": varint(oldest_us // 1_000_000 * is_flushed),
        b"rocksdb.raw.key.size": varint(count * 16),
        b"rocksdb.raw.value.size": varint(count * 8),
    })  # fmt: skip
    metaindex = out.add_all({b"rocksdb.properties": properties})
    index = out.add_all({stored[-1][0] + bytes(8): data} if stored else {})
    return out.end(metaindex + index, 2)


def _internal(key: bytes, sequence: int, value: bytes | None) -> bytes:
    return key + (sequence << 8 | (value is not None)).to_bytes(8, "little")
