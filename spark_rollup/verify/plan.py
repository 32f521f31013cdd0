"""What is read of which changelog for which copy, and what cannot be judged. Values only, no Spark.

A changelog is not the history of a store: compaction removes records that later ones replace, tombstones go after
`delete.retention.ms`, and the broker cuts off the beginning where the topic is also deleted by age. Compaction never
takes away the last record of a key; so what is missing in a store can always be said, and what it has too much only
where nothing can have gone (`Judged.may_have_gone`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from agent.contract.buckets import StoreKind
from agent.contract.changelog import ADDITIONAL_MS, MARKERS, Times, times_of
from spark_rollup.sources.brokers import Part
from spark_rollup.sources.changelogs import Ends, Topic
from spark_rollup.verify.digests import Copy


@dataclass(frozen=True, slots=True)
class Judged:
    """One copy that can be compared with its changelog.

    Args of the dataclass:
        retention_ms: How long windows are kept (of a versioned store: its history); None = the kind has none.
        surely_kept_us: Records of a versioned store that are older than this may have been compacted away;
            None = the kind keeps the last record of each key forever.
        may_have_gone: The changelog may lack keys that the copy rightly has; a copy that went on after its offset may
            hold what is not committed yet.
        doubt: Why a difference is no proof of damage; None = it is one.
    """

    source: Copy
    ends: Ends
    retention_ms: int | None
    surely_kept_us: int | None
    may_have_gone: bool
    doubt: str | None

    @property
    def times(self) -> Times | None:
        """How long segments span and are kept; None = the kind has none."""
        if not self.source.kind.is_segmented or self.retention_ms is None:
            return None
        return times_of(self.retention_ms)


@dataclass(frozen=True, slots=True)
class Undecidable:
    """One copy of which the changelog says nothing, and why."""

    source: Copy
    reason: str


@dataclass(frozen=True, slots=True)
class Empty:
    """One copy without an entry, of which the changelog never had a record."""

    source: Copy


Planned = Judged | Undecidable | Empty


def plan(copies: Sequence[Copy], topics: Mapping[str, Topic], now_us: int) -> list[Planned]:
    """Decide for each copy whether its changelog can say anything."""
    return [_planned(copy, topics.get(copy.part[0]), now_us) for copy in copies]


def _planned(copy: Copy, topic: Topic | None, now_us: int) -> Planned:
    name, number = copy.part
    offset = copy.last_offset
    if topic is None:
        return Undecidable(copy, f"the brokers have no topic {name}, or these credentials may not see it")
    if number not in topic.ends:
        return Undecidable(copy, f"topic {name} has no partition {number}: it was recreated")
    ends = topic.ends[number]
    if not ends.latest and not any(place.entries for place in copy.places):
        return Empty(copy)
    if offset is None:
        return Undecidable(copy, "the store has no offset: its expected content is unknown")
    if offset >= ends.latest:
        return Undecidable(
            copy,
            f"the store is at offset {offset}, and {name}-{number} ends at {ends.latest}: it was recreated, or these "
            f"are other brokers",
        )
    if offset >= ends.committed:
        return Undecidable(copy, f"a transaction at offset {ends.committed} or later has not ended")
    return _with_settings(copy, ends, topic.settings, now_us)


def _with_settings(copy: Copy, ends: Ends, settings: Mapping[str, int], now_us: int) -> Judged | Undecidable:
    retention_ms = _retention_ms(copy.kind, settings)
    if copy.kind is not StoreKind.KEY_VALUE and retention_ms is None:
        return Undecidable(copy, f"its retention is unknown: grant DescribeConfigs on {copy.part[0]}")
    judged = Judged(
        copy,
        ends,
        retention_ms,
        now_us - settings["min.compaction.lag.ms"] * 1000 if copy.kind is StoreKind.VERSIONED else None,
        ends.earliest > 0 or not copy.is_settled or not _is_whole(copy, ends, settings, now_us),
        copy.doubt,
    )
    times = judged.times
    if times and any(place.segment % times.interval_ms for place in copy.places):
        return Undecidable(
            copy,
            f"its segments do not fit the topic's retention ({retention_ms} ms, a segment every {times.interval_ms} "
            f"ms)",
        )
    return judged


def _retention_ms(kind: StoreKind, settings: Mapping[str, int]) -> int | None:
    """Read how long entries are kept; None = not known, or forever."""
    name = "min.compaction.lag.ms" if kind is StoreKind.VERSIONED else "retention.ms"
    found = settings.get(name, 0) - ADDITIONAL_MS
    return found if kind is not StoreKind.KEY_VALUE and found > 0 else None


def _is_whole(copy: Copy, ends: Ends, settings: Mapping[str, int], now_us: int) -> bool:
    """Return whether no tombstone can have gone since the copy was written, with the put that it deleted."""
    offset = min(_offsets(copy), default=-1)
    if ends.latest - 1 - offset <= MARKERS:
        return True
    kept_us = settings.get("delete.retention.ms", 0) * 1000
    return all(now_us - place.written_us < kept_us for place in copy.places)


def _offsets(copy: Copy) -> Iterable[int]:
    return (one for one in (copy.offset, *(place.offset for place in copy.places)) if one is not None)


def ranges(judged: Sequence[Judged]) -> tuple[dict[Part, tuple[int, int]], dict[Part, tuple[int, int]]]:
    """Say which offsets to read of each partition: committed records for what must be there, and any later ones.

    Returns:
        Two ranges by partition: first offset, and the one after the last.
    """
    settled: dict[Part, tuple[int, int]] = {}
    later: dict[Part, tuple[int, int]] = {}
    for one in judged:
        part, offsets = one.source.part, list(_offsets(one.source))
        first = max(one.ends.earliest, min(offsets) + 1)
        settled[part] = (one.ends.earliest, max(settled.get(part, (0, 0))[1], max(offsets) + 1))
        later[part] = (min(later.get(part, (first, 0))[0], first), one.ends.latest)
    return settled, later
