"""Writes SST files of any content, sensible or not: format version 5, no compression, no checksums."""

from __future__ import annotations

from collections.abc import Iterable

from tests.support.rocksdb_writer import varint

_MAGIC = 0x88E241B785F4CFF7
_FORMAT = 5
_HANDLES_BYTES = 40


def entry(shared: int, key: bytes, value: bytes) -> bytes:
    """Encode one entry; `shared` bytes of the key before it come first."""
    return varint(shared) + varint(len(key)) + varint(len(value)) + key + value


class TableWriter:
    """Collects blocks, then ends the file."""

    def __init__(self) -> None:
        """Begin an empty file."""
        self._out = bytearray()

    def add(self, entries: bytes) -> bytes:
        """Append a block and give its handle."""
        content = entries + bytes(4) + (1).to_bytes(4, "little")  # one restart point, at 0
        handle = varint(len(self._out)) + varint(len(content))
        self._out += content + bytes(5)  # not compressed, no checksum
        return handle

    def add_index(self, handles: Iterable[bytes]) -> bytes:
        """Append an index of blocks and give its handle."""
        return self.add(b"".join(entry(0, b"k", handle) for handle in handles))

    def finish(self, *, index: Iterable[bytes] = (), index_type: int = 0, extra: bytes = b"") -> bytes:
        """Write properties, metaindex, index and footer.

        Args:
            index: Handles of the blocks that the index names.
            index_type: Kind of index that the properties announce.
            extra: Further entries of the metaindex.
        """
        kind = index_type.to_bytes(4, "little")
        properties = entry(0, b"rocksdb.block.based.table.index.type", kind) + entry(
            0, b"rocksdb.num.entries", varint(1)
        )
        handles = self.add(extra + entry(0, b"rocksdb.properties", self.add(properties)))
        handles += self.add_index(index)
        footer = b"\0" + handles + bytes(_HANDLES_BYTES - len(handles))
        return bytes(self._out) + footer + _FORMAT.to_bytes(4, "little") + _MAGIC.to_bytes(8, "little")
