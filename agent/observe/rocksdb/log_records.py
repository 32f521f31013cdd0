"""Framing of RocksDB's log files (the MANIFEST is one): blocks, fragments, checksums -> records."""

from __future__ import annotations

from dataclasses import dataclass, field

from agent.observe.rocksdb.crc32c import masked_crc32c

_BLOCK_BYTES = 32768  # log_format.h kBlockSize
_HEADER_BYTES = 7  # checksum 4, length 2, type 1
_ZERO, _FULL, _FIRST, _MIDDLE, _LAST = range(5)
_MAX_RECORDS = 200_000  # twice what 8 MiB of real version edits hold; empty ones would be a million
_IGNORABLE = 0x80  # kRecordTypeSafeIgnoreMask: types of later releases that may be passed over


@dataclass(frozen=True, slots=True)
class LogContent:
    """The records of a log file.

    Args of the dataclass:
        records: Complete records with a good checksum, in file order.
        torn: Whether something after the last of them is incomplete or damaged.
        end: Offset behind the last of them, where the next one begins.
    """

    records: tuple[bytes, ...]
    torn: bool
    end: int = field(default=0, compare=False)


def read_records(data: bytes, start: int = 0) -> LogContent:
    """Take a log file apart; total.

    Reading stops at the first fragment that is cut off or damaged, and after `_MAX_RECORDS`. A header of zeros is
    the preallocated rest of the file and ends the log cleanly if nothing but zeros follows.

    Args:
        data: The file from its first byte.
        start: `end` of an earlier call on the same content: only what follows is taken apart.

    Source:
        RocksDB db/log_format.h, 5.7 to 10.1.
    """
    records: list[bytes] = []
    parts: list[bytes] = []
    position = complete = start
    while True:
        left_in_block = _BLOCK_BYTES - position % _BLOCK_BYTES
        if left_in_block < _HEADER_BYTES:
            position += left_in_block
        body = position + _HEADER_BYTES
        if body > len(data):
            return LogContent(tuple(records), torn=bool(parts) or any(data[position:]), end=complete)
        length = data[position + 4] | data[position + 5] << 8
        kind = data[position + 6]
        if kind == _ZERO and length == 0:
            return LogContent(tuple(records), torn=bool(parts) or _has_content(data, position), end=complete)
        end = body + length
        if not _is_whole(data, position, end) or not _is_in_order(kind, bool(parts)):
            return LogContent(tuple(records), torn=True, end=complete)
        position = end
        if kind >= _IGNORABLE:
            continue
        if len(records) + len(parts) >= _MAX_RECORDS:
            return LogContent(tuple(records), torn=True)
        parts.append(data[body:end])
        if kind in (_FULL, _LAST):
            records.append(parts[0] if len(parts) == 1 else b"".join(parts))
            parts, complete = [], position


def _is_whole(data: bytes, start: int, end: int) -> bool:
    if end > len(data) or start // _BLOCK_BYTES != (end - 1) // _BLOCK_BYTES:
        return False
    stored = int.from_bytes(data[start : start + 4], "little")
    return stored == masked_crc32c(memoryview(data)[start + 6 : end])


def _is_in_order(kind: int, is_inside: bool) -> bool:
    if kind >= _IGNORABLE:
        return True
    return kind in ((_MIDDLE, _LAST) if is_inside else (_FULL, _FIRST))


def _has_content(data: bytes, start: int) -> bool:
    return data.count(0, start) != len(data) - start
