"""The `offsets` family of a store (Kafka Streams 4.3+): offsets and status, and of the position only that it is there.

Source: KIP-1035, AbstractColumnFamilyAccessor (4.3.0).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from agent.layout.names import CHANGELOG_SUFFIX
from agent.observe.rocksdb.coding import DamagedError, UnsupportedError

_STATUS, _POSITION = b"status", b"position"
_DELETION, _VALUE, _SINGLE_DELETION = 0, 1, 7  # dbformat.h ValueType
_LONG_BYTES = 8
_TRAILER_BYTES = 8  # sequence << 8 | type, little endian
_MAX_PROBLEMS = 20  # reported; a store with more is not better described by all of them


@dataclass(frozen=True, slots=True)
class OffsetsRecord:
    """One entry of the family in one file; `value` None = deleted."""

    key: bytes
    value: bytes | None
    sequence: int
    file_number: int


@dataclass(frozen=True, slots=True)
class StoredLong:
    """A number with where it comes from."""

    value: int  # the number
    sequence: int  # sequence number of its write; 0 = compacted, order unknown
    file_number: int  # SST file that holds it


@dataclass(frozen=True, slots=True)
class OffsetsFacts:
    """What the family says, by the newest entry of each key."""

    status: StoredLong | None = None  # 1 = open, 0 = closed; None = no such entry
    # `<topic>-<partition>` -> last applied offset (-4 = unknown), sorted by name
    offsets: tuple[tuple[str, StoredLong], ...] = ()
    position_sequence: int | None = None  # sequence number of the input positions; None = no such entry
    # sequence number of the newest deletion of a changelog offset that is on disk; 0 = none
    removed_sequence: int = 0
    problems: tuple[str, ...] = ()  # what could not be read, one sentence each; empty = everything was read


def decode_records(items: Iterable[tuple[bytes, bytes]], file_number: int) -> Iterator[OffsetsRecord]:
    """Split internal keys into key, sequence and type. Raises as `open_table`."""
    for internal_key, value in items:
        if len(internal_key) < _TRAILER_BYTES:
            raise DamagedError("key without sequence number")
        packed = int.from_bytes(internal_key[-_TRAILER_BYTES:], "little")
        kind = packed & 0xFF
        if kind not in (_DELETION, _VALUE, _SINGLE_DELETION):
            raise UnsupportedError(f"entry of type {kind}")
        key = internal_key[:-_TRAILER_BYTES]
        yield OffsetsRecord(key, value if kind == _VALUE else None, packed >> 8, file_number)


def summarize(records: Iterable[OffsetsRecord], problems: Iterable[str] = ()) -> OffsetsFacts:
    """Take the newest entry of each key, of records of all files.

    Those of newer sorted runs come first: that decides between equal sequence numbers, which compaction makes by
    setting them to 0.
    """
    newest: dict[bytes, OffsetsRecord] = {}
    for record in records:
        known = newest.get(record.key)
        if known is None or record.sequence > known.sequence:
            newest[record.key] = record
    found = list(problems)
    longs: dict[bytes, StoredLong] = {}
    position = newest.pop(_POSITION, None)
    for key, record in newest.items():
        if record.value is None:
            continue
        try:
            longs[key] = StoredLong(_decode_long(record.value), record.sequence, record.file_number)
        except DamagedError as error:
            found.append(f"entry {_name(key)}: {error}")
    status = longs.pop(_STATUS, None)
    return OffsetsFacts(
        status=status,
        offsets=tuple(sorted((_name(key), one) for key, one in longs.items())),
        position_sequence=position.sequence if position and position.value is not None else None,
        removed_sequence=max((x.sequence for x in newest.values() if _is_removed_offset(x)), default=0),
        problems=tuple(found[:_MAX_PROBLEMS]),
    )


def _is_removed_offset(record: OffsetsRecord) -> bool:
    """A table that reads its source topic again keeps the offset of that topic: what it lacks was committed there."""
    topic = record.key.rpartition(b"-")[0]
    return record.value is None and topic.endswith(CHANGELOG_SUFFIX.encode())


def _decode_long(value: bytes) -> int:
    if len(value) != _LONG_BYTES:
        raise DamagedError(f"{len(value)} bytes instead of {_LONG_BYTES}")
    return int.from_bytes(value, "big", signed=True)


def _name(key: bytes) -> str:
    return key[:300].decode("utf-8", "surrogateescape")
