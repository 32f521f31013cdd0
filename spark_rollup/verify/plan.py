"""What is read of which changelog for which copy, and what cannot be judged. Values only, no Spark.

A changelog is not the history of a store: compaction removes records that later ones replace, tombstones go after
`delete.retention.ms`, and the broker cuts off the beginning where the topic is also deleted by age. Compaction never
takes away the last record of a key; so what is missing in a store can always be said, and what it has too much only
where nothing can have gone (`Judged.may_have_gone`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from agent.contract.buckets import StoreKind
from agent.contract.changelog import MARKERS, Times, retention_ms, times_of
from spark_rollup.sources.brokers import Part
from spark_rollup.sources.changelogs import Ends, Topic
from spark_rollup.verify.digests import Copy
from spark_rollup.verify.verdicts import COUNTS, Verdict, Word


@dataclass(frozen=True, slots=True)
class Judged:
    """One copy that can be compared with its changelog."""

    source: Copy
    ends: Ends
    retention_ms: int | None
    """How long windows are kept (of a versioned store: its history); None = the kind has none."""
    surely_kept_us: int | None
    """Records of a versioned store that are older than this may have been compacted away; None = the kind keeps the
    last record of each key forever."""
    may_have_gone: bool
    """The changelog may lack keys that the copy rightly has; a copy that went on after its offset may hold what is not
    committed yet."""

    @property
    def times(self) -> Times | None:
        """How long segments span and are kept; None = the kind has none."""
        if not self.source.kind.is_segmented or self.retention_ms is None:
            return None
        return times_of(self.retention_ms)


def plan(copies: Sequence[Copy], topics: Mapping[str, Topic], now_us: int) -> list[Judged | Verdict]:
    """Decide for each copy whether its changelog can say anything; if not, its verdict is given."""
    found: list[Judged | Verdict] = []
    for copy in copies:
        topic = topics.get(copy.topic)
        ends = topic.ends.get(copy.partition) if topic else None
        reason = _unreadable(copy, topic, ends)
        if ends and not ends.latest and not copy.entries:
            found.append(Verdict(copy, Word.EQUAL, counts=dict.fromkeys(COUNTS, 0)))
        elif reason or topic is None or ends is None:
            found.append(Verdict(copy, Word.UNDECIDABLE, reason))
        else:
            found.append(_with_settings(copy, ends, topic, now_us))
    return found


def _unreadable(copy: Copy, topic: Topic | None, ends: Ends | None) -> str:
    """Say why nothing can be read that decides; empty = it can."""
    offset = copy.last_offset
    if topic is None:
        return f"the brokers have no topic {copy.topic}, or these credentials may not see it"
    if ends is None:
        return f"topic {copy.topic} has no partition {copy.partition}: it was recreated"
    if offset is None:
        return "the store has no offset: its expected content is unknown"
    if offset >= ends.latest:
        return (
            f"the store is at offset {offset}, and {copy.log} ends at {ends.latest}: it was recreated, or these are "
            f"other brokers"
        )
    if offset >= ends.committed:
        return f"a transaction at offset {ends.committed} or later has not ended"
    return ""


def _with_settings(copy: Copy, ends: Ends, topic: Topic, now_us: int) -> Judged | Verdict:
    settings = topic.settings
    kept_ms = retention_ms(copy.kind, settings)
    if copy.kind is not StoreKind.KEY_VALUE and kept_ms is None:
        reason = f"its retention is unknown: grant DescribeConfigs on {copy.topic}"
        return Verdict(copy, Word.UNDECIDABLE, reason)
    judged = Judged(
        copy,
        ends,
        kept_ms,
        now_us - settings["min.compaction.lag.ms"] * 1000 if copy.kind is StoreKind.VERSIONED else None,
        ends.earliest > 0 or not copy.is_settled or not _is_whole(copy, ends, settings, now_us),
    )
    times = judged.times
    if times and any(one.segment % times.interval_ms for one in copy.databases):
        reason = f"its segments do not fit the topic's retention ({kept_ms} ms, a segment every {times.interval_ms} ms)"
        return Verdict(copy, Word.UNDECIDABLE, reason)
    return judged


def _is_whole(copy: Copy, ends: Ends, settings: Mapping[str, int], now_us: int) -> bool:
    """Return whether no tombstone can have gone since the copy was written, with the put that it deleted."""
    if ends.latest - 1 - min(copy.offsets, default=-1) <= MARKERS:
        return True
    kept_us = settings.get("delete.retention.ms", 0) * 1000
    return all(now_us - one.written_us < kept_us for one in copy.databases)


def ranges(judged: Sequence[Judged]) -> tuple[dict[Part, tuple[int, int]], dict[Part, tuple[int, int]]]:
    """Say which offsets to read of each partition: committed records for what must be there, and any later ones.

    Gives two ranges by partition: first offset, and the one after the last.
    """
    settled: dict[Part, tuple[int, int]] = {}
    later: dict[Part, tuple[int, int]] = {}
    for one in judged:
        part, offsets = one.source.part, one.source.offsets
        first = max(one.ends.earliest, min(offsets) + 1)
        settled[part] = (one.ends.earliest, max(settled.get(part, (0, 0))[1], max(offsets) + 1))
        later[part] = (min(later.get(part, (first, 0))[0], first), one.ends.latest)
    return settled, later
