"""Framing of RocksDB's log files (the MANIFEST is one): blocks, fragments, checksums -> records."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from agent.observe.rocksdb.checksum import masked_crc32c

_BLOCK_BYTES = 32768  # log_format.h kBlockSize
_HEADER_BYTES = 7  # checksum 4, length 2, type 1
_ZERO, _FULL, _FIRST, _MIDDLE, _LAST = range(5)
_MAX_RECORDS = 200_000  # twice what 8 MiB of real version edits hold; empty ones would be a million
_IGNORABLE = 0x80  # kRecordTypeSafeIgnoreMask: types of later releases that may be passed over


class End(StrEnum):
    """How a log, or a piece of one, ends."""

    WHOLE = "whole"  # with a record, or with a rest of zeros
    CUT = "cut"  # inside a record; RocksDB passes over it: a writer may have died there
    CORRUPT = "corrupt"  # at bytes that RocksDB refuses
    UNSUPPORTED = "unsupported"  # with a record that is sound and not understood


@dataclass(frozen=True, slots=True)
class LogContent:
    """The records of a log file."""

    records: tuple[bytes, ...]  # complete records with a good checksum, in file order
    torn: bool  # whether something after the last of them is incomplete or damaged
    end: int = field(default=0, compare=False)  # offset behind the last of them, where the next one begins
    ending: End = field(default=End.WHOLE, compare=False)  # how it ends
    has_rest: bool = field(default=False, compare=False)  # nothing but zeros follows, at least one
    ends: tuple[int, ...] = field(default=(), compare=False)  # offset behind each of the records


def read_records(data: bytes, base: int = 0) -> LogContent:
    """Take a log file, or a piece of it that begins at `base`, apart; total. Offsets count from the file's first byte.

    Reading stops at the first fragment that is cut off or damaged, and after `_MAX_RECORDS`. A header of zeros is
    the preallocated rest of the file and ends the log cleanly if nothing but zeros follows.

    Source:
        RocksDB db/log_format.h and db/log_reader.cc, 5.7 to 10.1: what a reader of a manifest passes over and what it
        refuses was tried with 10.1 (a cut record is passed over, a wrong checksum is refused wherever it is).
    """
    records: list[bytes] = []
    behind: list[int] = []
    parts: list[bytes] = []
    limit = base + len(data)
    position = complete = base

    def ends(ending: End, *, has_rest: bool = False) -> LogContent:
        return LogContent(tuple(records), ending is not End.WHOLE, complete, ending, has_rest, tuple(behind))

    while True:
        left_in_block = _BLOCK_BYTES - position % _BLOCK_BYTES
        if left_in_block < _HEADER_BYTES:
            position += left_in_block
        at, body = position - base, position + _HEADER_BYTES
        if body > limit:
            is_clean = not parts and not any(data[at:])
            return ends(End.WHOLE if is_clean else End.CUT, has_rest=is_clean and position < limit)
        length = data[at + 4] | data[at + 5] << 8
        kind = data[at + 6]
        if kind == _ZERO and length == 0:
            if data.count(0, at) != len(data) - at:
                return ends(End.CORRUPT)
            return ends(End.CUT if parts else End.WHOLE, has_rest=True)
        end = body + length
        block_end = position - position % _BLOCK_BYTES + _BLOCK_BYTES
        if end > min(limit, block_end):
            return ends(End.CUT if block_end > limit else End.CORRUPT)
        stored = int.from_bytes(data[at : at + 4], "little")
        is_sound = stored == masked_crc32c(memoryview(data)[at + 6 : end - base])
        if not is_sound or not _is_in_order(kind, bool(parts)):
            return ends(End.CORRUPT)
        position = end
        if kind >= _IGNORABLE:
            continue
        if len(records) + len(parts) >= _MAX_RECORDS or kind > _LAST:
            return ends(End.UNSUPPORTED)
        parts.append(data[at + _HEADER_BYTES : end - base])
        if kind in (_FULL, _LAST):
            records.append(parts[0] if len(parts) == 1 else b"".join(parts))
            behind.append(position)
            parts, complete = [], position


def _is_in_order(kind: int, is_inside: bool) -> bool:
    if kind > _LAST:
        return True  # of a later release
    return kind in ((_MIDDLE, _LAST) if is_inside else (_FULL, _FIRST))
