"""Writes MANIFEST files for tests: records in RocksDB's framing, version edits in its encoding."""

from __future__ import annotations

from collections.abc import Iterable

from agent.observe.rocksdb.checksum import masked_crc32c

BLOCK_BYTES = 32768
SNAPSHOT_KEY, OTHER_KEY = b"private-key-a", b"private-key-z"


def varint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*out, value])


def string(content: bytes) -> bytes:
    return varint(len(content)) + content


def frame(records: Iterable[bytes]) -> bytes:
    """Put records into log blocks."""
    out = bytearray()
    for record in records:
        left, first = record, True
        while True:
            room = BLOCK_BYTES - len(out) % BLOCK_BYTES
            if room < 7:
                out += bytes(room)
                room = BLOCK_BYTES
            part, left = left[: room - 7], left[room - 7 :]
            kind = (1 if not left else 2) if first else (4 if not left else 3)
            body = bytes([kind]) + part
            out += masked_crc32c(body).to_bytes(4, "little") + len(part).to_bytes(2, "little") + body
            if not left:
                break
            first = False
    return bytes(out)


def added(
    number: int, sequence: int, *, size: int = 100, level: int = 0, low: int = 1, custom: bytes = b""
) -> bytes:
    """A kNewFile4 part."""
    head = varint(103) + varint(level) + varint(number) + varint(size)
    return (
        head + string(SNAPSHOT_KEY) + string(OTHER_KEY) + varint(low) + varint(sequence) + custom + varint(1)
    )


def deleted(number: int, level: int = 0) -> bytes:
    return varint(6) + varint(level) + varint(number)


def family(family_id: int) -> bytes:
    return varint(200) + varint(family_id)


def family_add(family_id: int, name: str) -> bytes:
    return (
        varint(1)
        + string(b"leveldb.BytewiseComparator")
        + family(family_id)
        + varint(201)
        + string(name.encode())
    )


def counters(next_file: int, last_sequence: int = 0) -> bytes:
    """What every edit carries that is not part of the snapshot."""
    return varint(3) + varint(next_file) + varint(4) + varint(last_sequence)


def in_group(left: int) -> bytes:
    return varint(300) + varint(left)
