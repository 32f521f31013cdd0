"""What a changelog says of a store's keys: which records count at an offset, and what has expired. Pure.

The agent compares entries by it, the rollup digests: both fold through `Key`, and both take times from `Times`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Generic, NamedTuple, TypeVar

from agent.contract.buckets import StoreKind

ADDITIONAL_MS = 24 * 3_600_000
"""What Kafka Streams adds to a store's retention for its changelog: windowstore.changelog.additional.retention.ms by
default, fixed for versioned stores."""

LEAST_INTERVAL_MS = 60_000

MARKERS = 2  # offsets in a row that markers of transactions may take; compaction leaves out more

_LONG = 8


C = TypeVar("C")


class Logged(NamedTuple, Generic[C]):
    """One record of a key."""

    offset: int
    content: C | None  # what it says; None = deleted
    is_committed: bool = True
    """False: of a transaction that was aborted, or has not ended: a store may have it, and need not."""
    at_ms: int = 0


class Key(Generic[C]):
    """What the records of one key come to, for a store at an offset.

    What must be there is the last committed record at or before the offset; any later one may be there as well.
    """

    __slots__ = ("_offset", "has_later", "has_later_deletion", "has_value", "low", "newest")

    def __init__(self, offset: int | None) -> None:
        """Begin; None = the store says no offset: every record is later."""
        self._offset = -1 if offset is None else offset
        self.low: Logged[C] | None = None  # the last committed record at or before the offset
        self.newest: Logged[C] | None = None  # the last committed record
        self.has_later = self.has_later_deletion = self.has_value = False

    def take(self, record: Logged[C]) -> bool:
        """Take the next record, in the order of offsets; returns whether it is a later one."""
        is_later = record.offset > self._offset
        if not is_later and not record.is_committed:
            return False
        is_deletion = record.content is None
        self.has_value |= not is_deletion
        if record.is_committed:
            self.newest = record
        if not is_later:
            self.low = record
            return False
        self.has_later = True
        self.has_later_deletion |= is_deletion
        return True


def window_ms(kind: StoreKind, key: bytes) -> int | None:
    """Return the time that decides the segment: a window's start, a session's end.

    `key`: a record's key, or its last 16 bytes. Gives milliseconds since the epoch; None = the key is too short.

    Source:
        WindowKeySchema (key, start, 4 bytes sequence), SessionKeySchema (key, end, start), 2.0 to 4.3.
    """
    behind = tail_bytes(kind)
    if len(key) < behind:
        return None
    at = len(key) - behind
    return int.from_bytes(key[at : at + _LONG], "big", signed=True)


def tail_bytes(kind: StoreKind) -> int:
    """Return how many bytes a segmented kind has behind the key of a record."""
    return 12 if kind is StoreKind.WINDOW else 16


@dataclass(frozen=True, slots=True)
class Times:
    """How long a store keeps what, milliseconds."""

    retention_ms: int  # behind stream time; not known: 0
    interval_ms: int  # length of a segment
    oldest_ms: int | None = None
    """Where the retention is not known: where the oldest segment begins that may be judged."""

    def segment(self, at_ms: int) -> int:
        """Return where the segment of a time begins."""
        return at_ms // self.interval_ms * self.interval_ms

    def live_from(self, stream_ms: int) -> int:
        """Return where the oldest segment begins that is not expired."""
        return self.segment(stream_ms - self.retention_ms) if self.oldest_ms is None else self.oldest_ms


def times_of(retention_ms: int) -> Times:
    """Return the times of a store of segments.

    Source:
        RocksDbWindowBytesStoreSupplier, RocksDbSessionBytesStoreSupplier, Stores (2.6.0 to 4.3.1): half the
        retention, at least a minute.
    """
    return Times(retention_ms, max(retention_ms // 2, LEAST_INTERVAL_MS))


def retention_ms(kind: StoreKind, settings: Mapping[str, int] | Mapping[str, str]) -> int | None:
    """Return how long a store keeps windows, or versions, by its changelog's settings; None = forever, or not known."""
    name = "min.compaction.lag.ms" if kind is StoreKind.VERSIONED else "retention.ms"
    found = int(settings.get(name, 0)) - ADDITIONAL_MS
    return found if kind is not StoreKind.KEY_VALUE and found > 0 else None
