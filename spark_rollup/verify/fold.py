"""Folds the changelog of a copy into the buckets that the copy must have. Values only, no Spark.

Each key is reduced to what it was at the copy's offset (last committed record up to it) and to what may have come
after: later records, committed or not (`agent.contract.changelog`). Keys come one after the other, their records in
the order of offsets, hashed as `agent.contract.buckets` says; so what is kept in memory are the buckets.
"""

from __future__ import annotations

from agent.contract.buckets import StoreKind
from agent.contract.changelog import Key, Logged, window_ms
from spark_rollup.verify.compare import Cell, Expected
from spark_rollup.verify.plan import Judged

Hashes = tuple[int, int]
"""What a record says: first and second hash of key and value."""


class _Newest(Key[Hashes]):
    """A key of a versioned store: of the records up to the offset that with the latest time counts."""

    __slots__ = ()

    def take(self, record: Logged[Hashes]) -> bool:
        is_older = self.low is not None and record.at_ms < self.low.at_ms
        return False if is_older and record.offset <= self._offset else super().take(record)


class Fold:
    """The changelog of one copy, key by key."""

    def __init__(self, judged: Judged) -> None:
        """Begin with nothing."""
        self.expected = Expected()
        self._judged = judged
        copy = judged.source
        self._kind = copy.kind
        self._times = judged.times
        self._mask = copy.buckets - 1
        # a segment that is not there: what the store says of itself
        self._rest = (copy.offset, copy.is_settled)
        self._places = {one.segment: (one.offset, one.is_exact) for one in copy.databases}
        self._hash = 0
        self._window_ms: int | None = None
        self._segment: int | None = 0
        self._is_exact = self._is_blind = False
        self._key: Key[Hashes] = Key(None)

    def begin(self, key_hash: int, tail: bytes | None) -> None:
        """Begin a key: its hash and, of a segmented store, its last 16 bytes."""
        self._hash = key_hash
        if self._times is not None:
            at_ms = window_ms(self._kind, tail or b"")
            self._window_ms = None if at_ms is None or at_ms < 0 else at_ms
            self._segment = None if self._window_ms is None else self._times.segment(self._window_ms)
        known = self._rest if self._segment is None else self._places.get(self._segment, self._rest)
        offset, self._is_exact = known
        self._is_blind = offset is None
        self._key = _Newest(offset) if self._kind is StoreKind.VERSIONED else Key(offset)

    def take(self, record: Logged[Hashes]) -> None:
        """Take the next record of the key."""
        self._key.take(record)

    def end(self, latest_ms: int | None) -> None:
        """Count the key; `latest_ms` is the latest time in the changelog of a versioned store."""
        key, expected = self._key, self.expected
        low, has_later = key.low, key.has_later
        if low is None and not has_later:
            return
        if self._segment is None:
            expected.odd += 1
            return
        # an exact copy has not seen the time of later records
        if self._window_ms is not None and (low is not None or not self._is_exact):
            expected.stream_ms = max(self._window_ms, expected.stream_ms or 0)
        is_unsure = self._is_unsure(low, latest_ms)
        is_unknown = is_unsure or (has_later and (low is None or not self._is_exact))
        content = low.content if low is not None else None
        place = self._segment, self._hash & self._mask
        cell = expected.cells.get(place)
        if cell is None:
            cell = expected.cells[place] = Cell()
        if content is not None:
            cell.entries += 1
            cell.keys ^= self._hash
            cell.first ^= content[0]
            cell.second ^= content[1]
            cell.least += not is_unsure and (self._is_exact or not key.has_later_deletion)
        cell.most += content is not None or is_unknown
        cell.open += is_unknown
        cell.blind += self._is_blind

    def _is_unsure(self, low: Logged[Hashes] | None, latest_ms: int | None) -> bool:
        """Return whether another version than this one may be the latest.

        The changelog does not show whether a record that came later than the history reaches back was put at all; and a
        compacted one may have been the latest.
        """
        one = self._judged
        if self._kind is not StoreKind.VERSIONED or low is None:
            return False
        assert latest_ms is not None
        assert one.retention_ms is not None
        assert one.surely_kept_us is not None
        return low.at_ms < latest_ms - one.retention_ms or low.at_ms * 1000 < one.surely_kept_us
