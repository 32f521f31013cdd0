"""Writes SST files for tests: small, uncompressed, with CRC-32C; what RocksDB's reader would accept."""

from __future__ import annotations

from collections.abc import Iterable

from agent.observe.rocksdb.crc32c import masked_crc32c
from tests.support.rocksdb_writer import varint

MAGIC = 0x88E241B785F4CFF7
CRC32C = 1
FORMAT = 2


def sst(
    items: Iterable[tuple[bytes, int, bytes | None]] = (),
    *,
    entries: int | None = None,
    deletions: int = 0,
    oldest_us: int = 0,
) -> bytes:
    """Write a file.

    Args:
        items: (key, sequence, value), value None = a deletion; data families need none, their entries are never read.
        entries: Number of entries that the properties announce; None = that of `items`.
        deletions: Deletions among them.
        oldest_us: Time of the oldest data in it; the properties keep its seconds.
    """
    stored = sorted((key, sequence, value) for key, sequence, value in items)
    out = bytearray()
    data = _block(out, [(_internal(key, sequence, value), value or b"") for key, sequence, value in stored])
    count = len(stored) if entries is None else entries
    properties = _block(out, sorted(_properties(count, deletions, oldest_us).items()))
    metaindex = _block(out, [(b"rocksdb.properties", properties)])
    last = stored[-1][0] + bytes(8) if stored else b""
    index = _block(out, [(last, data)] if stored else [])
    handles = metaindex + index
    out += bytes([CRC32C]) + handles + bytes(40 - len(handles))
    out += FORMAT.to_bytes(4, "little") + MAGIC.to_bytes(8, "little")
    return bytes(out)


def _internal(key: bytes, sequence: int, value: bytes | None) -> bytes:
    return key + (sequence << 8 | (value is not None)).to_bytes(8, "little")


def _properties(entries: int, deletions: int, oldest_us: int) -> dict[bytes, bytes]:
    return {
        b"rocksdb.creation.time": varint(oldest_us // 1_000_000),
        b"rocksdb.deleted.keys": varint(deletions),
        b"rocksdb.num.entries": varint(entries),
        b"rocksdb.raw.key.size": varint(entries * 16),
        b"rocksdb.raw.value.size": varint(entries * 8),
    }


def _block(out: bytearray, items: list[tuple[bytes, bytes]]) -> bytes:
    """Append a block and give its handle."""
    content = b"".join(
        varint(0) + varint(len(key)) + varint(len(value)) + key + value for key, value in items
    )
    content += bytes(4) + (1).to_bytes(4, "little")  # one restart point, at 0
    handle = varint(len(out)) + varint(len(content))
    out += content + b"\x00" + masked_crc32c(content + b"\x00").to_bytes(4, "little")
    return handle
