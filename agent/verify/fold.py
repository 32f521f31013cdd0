"""A changelog, read once or twice, folded into a scratch database by key."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from itertools import pairwise

from agent.contract.changelog import MARKERS, Times
from agent.verify.changelog import Changelogs, Record
from agent.verify.kinds import Kind, big_endian, record_content, store_key, time_of
from agent.verify.rule import KnownKeys, Logged
from agent.verify.scratch import Scratch

Progress = Callable[[int, int], None]
"""Called with how many offsets are done, of how many."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What is folded, and how.

    Args of the dataclass:
        start: First offset that is there.
        end: Behind the last one that is read.
        times: Of a store of segments or versions; None = no need.
        offsets: Segment -> offset of its database, None = it has none; segment 0 for a store of one database.
        otherwise: Offset for segments that are not there.
        place: Where the keys go in the scratch database, of a store of one database.
    """

    topic: str
    partition: int
    start: int
    end: int
    kind: Kind
    times: Times | None
    offsets: Mapping[int, int | None]
    otherwise: int | None
    place: int = 0

    def offset_of(self, segment: int) -> int | None:
        """Return the offset of a segment's database."""
        return self.offsets.get(segment, self.otherwise)


@dataclass(slots=True)
class Folded:
    """What was learned of the changelog on the way.

    Args of the dataclass:
        stream_ms: Highest time of a record, or of a window or session; -1 = none.
        transactions: Whether there are records that are not committed.
        after: Offset of a database -> records behind it.
        last: Offset of the last record; -1 = none.
        gap: Most offsets in a row without a record; once all is read, of those behind the databases' own.
    """

    stream_ms: int = -1
    segments: set[int] = field(default_factory=set)
    transactions: bool = False
    seen: int = 0
    after: Counter[int] = field(default_factory=Counter)
    last: int = -1
    gap: int = 0

    def known(self, plan: Plan, offset: int | None, *, is_fresh: bool) -> KnownKeys:
        """Return what is known for a database."""
        has_gaps = self._misses(plan.end - plan.start, self.seen, plan.end)
        after = plan.end - 1 - max(-1 if offset is None else offset, plan.start - 1)
        has_gaps_after = self._misses(after, self.after[-1 if offset is None else offset], plan.end)
        return KnownKeys(offset, plan.start, has_gaps, has_gaps_after, is_fresh, self.gap > MARKERS)

    def _misses(self, expected: int, found: int, end: int) -> bool:
        """Whether offsets are missing; the very last one is a transaction's marker, never compacted away."""
        missing = expected - found
        return missing > (1 if self.last != end - 1 else 0)


def prefix_of(segment: int) -> bytes:
    """Return where the keys of a segment begin in the scratch database."""
    return big_endian(segment)


def fold(changelogs: Changelogs, plan: Plan, scratch: Scratch, progress: Progress) -> Folded:
    """Read the changelog up to its end and keep what decides.

    Committed records are read first. Only if offsets behind a database's own were left out there (aborted, of a
    transaction that has not ended, or compacted) is that part read again with everything in it.

    Raises:
        UsageError: a broker refuses, or answers no more; a record is not of this kind.
    """
    offsets = {-1 if x is None else x for x in (*plan.offsets.values(), plan.otherwise)}
    committed = _Fold(plan, scratch, offsets, is_committed=True)
    committed.take(
        changelogs.read(plan.topic, plan.partition, plan.start, plan.end, committed=True),
        progress,
        plan.start,
    )
    found = committed.found
    first = max(min(offsets, default=-1) + 1, plan.start)
    least = min(offsets, default=-1)
    if found.after[least] == plan.end - first:
        found.gap = 0
        return found
    everything = _Fold(plan, scratch, offsets, is_committed=False)
    everything.take(
        changelogs.read(plan.topic, plan.partition, first, plan.end, committed=False), progress, first
    )
    again = everything.found
    found.transactions = again.after[least] > found.after[least]
    found.seen += again.after[least] - found.after[least]
    found.after, found.gap = again.after, again.gap
    found.last = max(found.last, again.last)
    found.stream_ms = max(found.stream_ms, again.stream_ms)
    found.segments |= again.segments
    return found


class _Fold:
    """One reading."""

    def __init__(self, plan: Plan, scratch: Scratch, offsets: Iterable[int], *, is_committed: bool) -> None:
        self._plan = plan
        self._scratch = scratch
        self._offsets = sorted(offsets)
        self._is_committed = is_committed
        self.found = Folded()

    def take(self, batches: Iterable[list[Record]], progress: Progress, first: int) -> None:
        plan, before = self._plan, first - 1
        keep = self._keep_by_segment if plan.kind.is_segmented else self._keep
        keep = self._keep_version if plan.kind is Kind.VERSIONED else keep
        for batch in batches:
            for record in batch:
                keep(record)
            if batch[-1].offset - before > len(batch):
                steps = pairwise((before, *(x.offset for x in batch)))
                self.found.gap = max(self.found.gap, *(later - earlier - 1 for earlier, later in steps))
            before = batch[-1].offset
            self.found.seen += len(batch)
            self.found.last = batch[-1].offset
            for offset in self._offsets:
                self.found.after[offset] += sum(x.offset > offset for x in batch)
            progress(batch[-1].offset + 1 - plan.start, plan.end - plan.start)

    def _keep(self, record: Record) -> None:
        self.found.stream_ms = max(self.found.stream_ms, record.at_ms)
        self._put(prefix_of(self._plan.place) + record.key, self._plan.offset_of(0), record)

    def _keep_version(self, record: Record) -> None:
        """Keep all: each is a version. One that came too late for its store counts as if it were not committed."""
        assert self._plan.times is not None
        is_late = record.at_ms < self.found.stream_ms - self._plan.times.retention_ms
        self.found.stream_ms = max(self.found.stream_ms, record.at_ms)
        content = None if record.value is None else record_content(record.at_ms, record.headers, record.value)
        logged = Logged(record.offset, content, self._is_committed and not is_late, record.at_ms)
        self._scratch.put_later(prefix_of(0) + record.key, logged)

    def _keep_by_segment(self, record: Record) -> None:
        assert self._plan.times is not None
        at_ms = time_of(self._plan.kind, record.key)
        self.found.stream_ms = max(self.found.stream_ms, at_ms)
        segment = self._plan.times.segment(at_ms)
        self.found.segments.add(segment)
        key = store_key(self._plan.kind, record.key)
        self._put(prefix_of(segment) + key, self._plan.offset_of(segment), record)

    def _put(self, key: bytes, offset: int | None, record: Record) -> None:
        content = None if record.value is None else record_content(record.at_ms, record.headers, record.value)
        logged = Logged(record.offset, content, self._is_committed, record.at_ms)
        if offset is None or record.offset > offset:
            self._scratch.put_later(key, logged)
        elif self._is_committed:
            self._scratch.put_low(key, logged)
