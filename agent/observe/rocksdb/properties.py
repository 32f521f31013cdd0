"""The properties block of an SST file: what RocksDB itself counted while it wrote the file."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from agent.observe.rocksdb.coding import Cursor, DamagedError

_MAX_COUNT = 1 << 48
"""Larger counters are damage: sums over all files of a store stay below 2**63, which readers of events rely on."""


@dataclass(frozen=True, slots=True)
class Properties:
    """Counters of one SST file; None = this RocksDB does not write it."""

    entries: int  # entries, deletions and merges included
    deletions: int  # deletions among them
    range_deletions: int  # deletions of whole key ranges
    # time of the oldest data in it (flush: of the memtable), seconds since the epoch; 0 or None = unknown
    creation_time_s: int | None = None
    oldest_key_time_s: int | None = None  # as RocksDB knows it; 0 or None = unknown
    file_creation_time_s: int | None = None  # when the file was written; 0 or None = unknown
    index_type: int = 0  # 0 binary, 1 hash, 2 two levels, 3 binary with first keys
    index_delta_encoded: bool = False  # index values are delta-encoded
    session: int | None = None  # session of RocksDB that wrote the file, as a number

    @property
    def is_flushed(self) -> bool:
        """Whether a flush made the file: only that knows when the first key came; False where it is not written down.

        Source:
            FlushJob::WriteLevel0Table hands on MemTable::ApproximateOldestKeyTime; CompactionJob, SstFileWriter and
            DBImpl::WriteLevel0TableForRecovery have 0 there (5.14 to 10.1). 5.7 does not write it.
        """
        return bool(self.oldest_key_time_s)


def parse_properties(items: Iterable[tuple[bytes, bytes]]) -> Properties:
    """Pick what is known from the entries of a properties block; DamagedError for what makes no sense.

    Source:
        RocksDB table/table_properties.cc and db/table_properties_collector.cc, 5.7 to 10.1.
    """
    found = dict(items)

    def number(name: bytes) -> int | None:
        value = found.get(name)
        if value is None:
            return None
        return value[0] if value and value[0] < 0x80 else Cursor(value).varint()

    def count(name: bytes) -> int:
        value = number(name) or 0
        if value > _MAX_COUNT:
            raise DamagedError(f"property {name.decode().removeprefix('rocksdb.')} is {value}")
        return value

    if number(b"rocksdb.num.entries") is None:
        raise DamagedError("properties without a number of entries")
    index_type = found.get(b"rocksdb.block.based.table.index.type", b"")
    return Properties(
        entries=count(b"rocksdb.num.entries"),
        deletions=count(b"rocksdb.deleted.keys"),
        range_deletions=count(b"rocksdb.num.range-deletions"),
        creation_time_s=number(b"rocksdb.creation.time"),
        oldest_key_time_s=number(b"rocksdb.oldest.key.time"),
        file_creation_time_s=number(b"rocksdb.file.creation.time"),
        index_type=int.from_bytes(index_type[:4], "little"),
        index_delta_encoded=bool(number(b"rocksdb.index.value.is.delta.encoded")),
        session=_session(found.get(b"rocksdb.creating.session.identity", b"")),
    )


def _session(name: bytes) -> int | None:
    """Read the lower half of a session's name: two of its bits stand in front of the last twelve digits of base 36.

    Source:
        RocksDB table/unique_id.cc, DecodeSessionId (6.24 to 10.1).
    """
    if not 13 <= len(name) <= 24 or not name.isalnum():
        return None
    upper, lower = int(name[:-12], 36), int(name[-12:], 36)
    return (upper & 3) << 62 | lower & (1 << 62) - 1
