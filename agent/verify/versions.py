"""Entries of a versioned store (3.5+): the latest version of a key, and rows with older ones. Pure.

Source:
    RocksDBVersionedStore, LogicalKeyValueSegment, RocksDBVersionedStoreSegmentValueFormatter (3.5.0 to 4.3.1).
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


@dataclass(frozen=True, slots=True)
class Version:
    """One version of a key.

    Args of the dataclass:
        at_ms: From when on it is valid, milliseconds since the epoch.
        value: None = deleted.
    """

    at_ms: int
    value: bytes | None


def split_key(key: bytes) -> tuple[bool, bytes]:
    """Return whether an entry holds the latest version, and the record's key.

    Raises:
        LayoutError: too short.
    """
    if len(key) <= _PREFIX:
        raise LayoutError(f"key of {len(key)} bytes in a versioned store")
    return key[:_PREFIX] == LATEST, key[_PREFIX:]


def read_versions(key: bytes, value: bytes) -> list[Version]:
    """Read the versions in an entry, newest first.

    Raises:
        LayoutError: not of the form that a versioned store writes.
    """
    is_latest, _ = split_key(key)
    if is_latest:
        return [Version(read_long(value), value[8:])]
    times = list(_times(value))
    at = _HEAD + _STEP * len(times)
    found = []
    for at_ms, size in reversed(times):  # values lie in the order in which they were appended
        if size == _TOMBSTONE:
            found.append(Version(at_ms, None))
            continue
        found.append(Version(at_ms, value[at : at + size]))
        at += size
    if at != len(value):
        raise LayoutError(f"row of {len(value)} bytes whose versions fill {at}")
    return found[::-1]


def _times(row: bytes) -> Iterator[tuple[int, int]]:
    newer_ms, oldest_ms = read_long(row), read_long(row, 8)
    at = _HEAD
    while True:
        at_ms = read_long(row, at)
        piece = row[at + 8 : at + _STEP]
        size = int.from_bytes(piece, "big", signed=True)
        # a tombstone without an older version is alone, valid up to its own time
        is_alone = size == _TOMBSTONE and at == _HEAD and at_ms == newer_ms
        if len(piece) != 4 or size < _TOMBSTONE or not (oldest_ms <= at_ms < newer_ms or is_alone):
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
    return all(0 <= x.at_ms < 1 << 46 for x in found)
