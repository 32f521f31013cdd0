"""Entries of a versioned store (3.5+): the latest version of a key, and rows with older ones. Pure.

A row can hold versions that its store does not find. After a start the store does not know the segments that are on
disk until it writes into each: a record that comes before that is put into a row that exists as if it were older than
all of it. The store reads a row from the newest version to the first that has the row's least time, and the values
from the row's end; what is behind that time is buried.

Source:
    RocksDBVersionedStore, LogicalKeyValueSegment, RocksDBVersionedStoreSegmentValueFormatter (3.5.0 to 4.3.1).
    LogicalKeyValueSegments.openExisting opens the database and makes no segment; recorded from 4.3.1 after a kill
    under at-least-once.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from agent.errors import LayoutError
from agent.verify.kinds import read_long

LATEST = b"\xff" * 8
"""Prefix of the entries with latest versions; others begin with the number of their segment."""

_PREFIX, _HEAD, _STEP = 8, 16, 12
_TOMBSTONE = -1
_LATEST_MS = 1 << 46
"""No record is as late: the year 4199."""


@dataclass(frozen=True, slots=True)
class Version:
    """One version of a key."""

    at_ms: int  # from when on it is valid, milliseconds since the epoch
    value: bytes | None  # none = deleted


def split_key(key: bytes) -> tuple[bool, bytes]:
    """Return whether an entry holds the latest version, and the record's key. Raises `LayoutError`: too short."""
    if len(key) <= _PREFIX:
        raise LayoutError(f"key of {len(key)} bytes in a versioned store")
    return key[:_PREFIX] == LATEST, key[_PREFIX:]


def read_versions(key: bytes, value: bytes) -> list[Version]:
    """Read the versions in an entry that its store finds, newest first.

    Raises `LayoutError`: not of the form that a versioned store writes.
    """
    is_latest, _ = split_key(key)
    if is_latest:
        return [Version(read_long(value), value[8:])]
    times = list(_times(value))
    fills = _HEAD + sum(_STEP + max(size, 0) for _, size in times)
    if fills + _buried(value, _HEAD + _STEP * len(times), fills) != len(value):
        raise LayoutError(f"row of {len(value)} bytes whose versions fill {fills}")
    found, end = [], len(value)
    for at_ms, size in times:  # values lie in the order in which they were appended, the newest at the end
        begin = end - max(size, 0)
        found.append(Version(at_ms, None if size == _TOMBSTONE else value[begin:end]))
        end = begin
    return found


def _buried(row: bytes, at: int, fills: int) -> int:
    """Count the bytes of versions behind the one with the row's least time, heads and values.

    `at`: where the heads of the versions end that the store finds. `fills`: bytes that those need. Raises
    `LayoutError`: what is there is no version.
    """
    buried = 0
    while fills + buried < len(row):
        at_ms, size = _head(row, at)
        if size < _TOMBSTONE or not 0 <= at_ms < _LATEST_MS:
            raise LayoutError(f"row of {len(row)} bytes whose versions fill {fills}")
        buried, at = buried + _STEP + max(size, 0), at + _STEP
    return buried


def _head(row: bytes, at: int) -> tuple[int, int]:
    piece = row[at + 8 : at + _STEP]
    if len(piece) != 4:
        raise LayoutError("row whose versions are not in order")
    return read_long(row, at), int.from_bytes(piece, "big", signed=True)


def _times(row: bytes) -> Iterator[tuple[int, int]]:
    newer_ms, oldest_ms = read_long(row), read_long(row, 8)
    at = _HEAD
    while True:
        at_ms, size = _head(row, at)
        # a tombstone without an older version is alone, valid up to its own time
        is_alone = size == _TOMBSTONE and at == _HEAD and at_ms == newer_ms
        if size < _TOMBSTONE or not (oldest_ms <= at_ms < newer_ms or is_alone):
            raise LayoutError("row whose versions are not in order")
        yield at_ms, size
        if at_ms == oldest_ms:
            return
        newer_ms, at = at_ms, at + _STEP


def could_be_versioned(key: bytes, value: bytes) -> bool:
    """Return whether an entry has the form of a versioned store's."""
    try:
        found = read_versions(key, value)
    except LayoutError:
        return False
    return all(0 <= x.at_ms < _LATEST_MS for x in found)
