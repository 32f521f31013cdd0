"""A changelog, read once or twice, folded into a scratch database by key."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from itertools import pairwise

from agent.contract.changelog import MARKERS, Logged, Times
from agent.verify.changelog import Changelogs, Record
from agent.verify.kinds import Kind, big_endian, record_content, store_key, time_of
from agent.verify.rule import KnownKeys
from agent.verify.scratch import Scratch

Progress = Callable[[int, int], None]
"""Called with how many offsets are done, of how many."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What is folded, and how."""

    topic: str
    partition: int
    start: int  # first offset that is there
    end: int  # behind the last one that is read
    kind: Kind
    times: Times | None  # of a store of segments or versions; None = no need
    offsets: Mapping[int, int | None]
    """Segment -> offset of its database, None = it has none; segment 0 for a store of one database."""
    otherwise: int | None  # offset for segments that are not there
    place: int = 0  # where the keys go in the scratch database, of a store of one database

    @property
    def claimed(self) -> set[int]:
        """All offsets of databases; -1 = one has none."""
        return {-1 if x is None else x for x in (*self.offsets.values(), self.otherwise)}

    def offset_of(self, segment: int) -> int | None:
        """Return the offset of a segment's database."""
        return self.offsets.get(segment, self.otherwise)


@dataclass(slots=True)
class Folded:
    """What was learned of the changelog on the way."""

    stream_ms: int = -1  # highest time of a record, or of a window or session; -1 = none
    segments: set[int] = field(default_factory=set)
    transactions: bool = False  # whether there are records that are not committed
    seen: int = 0
    after: Counter[int] = field(default_factory=Counter)  # offset of a database -> records behind it
    last: int = -1  # offset of the last record; -1 = none
    gap: int = 0
    """Most offsets in a row without a record; once all is read, of those behind the databases' own."""

    def known(self, plan: Plan, offset: int | None, *, is_fresh: bool) -> KnownKeys:
        """Return what is known for a database."""
        has_gaps = self._misses(plan.end - plan.start, self.seen, plan.end)
        claimed = -1 if offset is None else offset
        after = plan.end - 1 - max(claimed, plan.start - 1)
        has_gaps_after = self._misses(after, self.after[claimed], plan.end)
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

    Raises `UsageError`: a broker refuses, or answers no more; a record is not of this kind.
    """
    least = min(plan.claimed, default=-1)
    first = max(least + 1, plan.start)
    found = _read(changelogs, plan, scratch, progress, plan.start, committed=True)
    if found.after[least] == plan.end - first:
        found.gap = 0
        return found
    again = _read(changelogs, plan, scratch, progress, first, committed=False)
    found.transactions = again.after[least] > found.after[least]
    found.seen += again.after[least] - found.after[least]
    found.after, found.gap = again.after, again.gap
    found.last = max(found.last, again.last)
    found.stream_ms = max(found.stream_ms, again.stream_ms)
    found.segments |= again.segments
    return found


def _read(
    changelogs: Changelogs, plan: Plan, scratch: Scratch, progress: Progress, first: int, *, committed: bool
) -> Folded:
    """Read once, from an offset on."""
    found, before = Folded(), first - 1
    for batch in changelogs.read(plan.topic, plan.partition, first, plan.end, committed=committed):
        for record in batch:
            _keep(found, plan, scratch, record, is_committed=committed)
        found.last = batch[-1].offset
        if found.last - before > len(batch):
            steps = pairwise((before, *(x.offset for x in batch)))
            found.gap = max(found.gap, *(later - earlier - 1 for earlier, later in steps))
        before = found.last
        found.seen += len(batch)
        for offset in plan.claimed:
            found.after[offset] += sum(x.offset > offset for x in batch)
        progress(found.last + 1 - plan.start, plan.end - plan.start)
    return found


def _keep(found: Folded, plan: Plan, scratch: Scratch, record: Record, *, is_committed: bool) -> None:
    """Keep a record; of a versioned store each is a version, and what came too late counts as not committed."""
    kind, times, at_ms, key = plan.kind, plan.times, record.at_ms, record.key
    place, segment = plan.place, 0
    if kind.is_segmented:
        assert times is not None
        at_ms, key = time_of(kind, key), store_key(kind, key)
        place = segment = times.segment(at_ms)
        found.segments.add(segment)
    elif kind is Kind.VERSIONED:
        assert times is not None
        is_committed &= at_ms >= found.stream_ms - times.retention_ms
    offset = plan.offset_of(segment)
    is_later = kind is Kind.VERSIONED or offset is None or record.offset > offset
    found.stream_ms = max(found.stream_ms, at_ms)
    if is_later or is_committed:
        content = None if record.value is None else record_content(record.at_ms, record.headers, record.value)
        logged = Logged(record.offset, content, is_committed, record.at_ms)
        scratch.put(prefix_of(place) + key, logged, is_later=is_later)
