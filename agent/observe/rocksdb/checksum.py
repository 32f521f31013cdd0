"""Checksums of SST blocks and footers: which kinds there are and which are verified here."""

from __future__ import annotations

from agent.observe.rocksdb.crc32c import masked_crc32c
from agent.observe.rocksdb.xxh3 import xxh3_64

NONE, CRC32C, XXHASH, XXHASH64, XXH3 = range(5)  # ChecksumType in RocksDB's table.h
KINDS = {NONE: "none", CRC32C: "crc32c", XXHASH: "xxhash", XXHASH64: "xxhash64", XXH3: "xxh3"}
VERIFIED_KINDS = frozenset({CRC32C, XXH3})
"""The kinds that Kafka Streams' RocksDB releases write. The two others need an explicit setting by the user;
their blocks are read without verification."""

_LAST_BYTE_PRIME = 0x6B9083D9  # format.cc ModifyChecksumForLastByte


def compute(kind: int, data: bytes) -> int | None:
    """Compute the 32-bit checksum of a block with its compression byte, or of a footer; None = not verified."""
    if kind == CRC32C:
        return masked_crc32c(data)
    if kind == XXH3:
        return (xxh3_64(data[:-1]) ^ data[-1] * _LAST_BYTE_PRIME) & 0xFFFFFFFF if data else 0
    return None


def context_modifier(base: int, offset: int) -> int:
    """Compute what format version 6 adds to a checksum for the place at which the block is."""
    return base ^ ((offset + (offset >> 32)) & 0xFFFFFFFF) if base else 0
