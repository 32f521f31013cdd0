"""Compares buckets: a copy with its changelog, or two copies with each other. Values only, no Spark."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from agent.contract.buckets import Bucket
from spark_rollup.verify.plan import Judged
from spark_rollup.verify.replicas import Pair
from spark_rollup.verify.verdicts import COUNTS, Verdict, Word

Place = tuple[int, int]
"""Segment and bucket."""


@dataclass(slots=True)
class Cell:
    """One bucket of a copy, or what a changelog says of it."""

    entries: int = 0  # entries at the offset
    keys: int = 0
    first: int = 0
    second: int = 0
    least: int = 0  # entries that a copy has at least, if it went on after its offset
    most: int = 0  # entries that it has at most
    open: int = 0  # keys of which it is not known whether they are there
    blind: int = 0  # keys in a segment that says no offset


@dataclass(slots=True)
class Expected:
    """What a changelog says that a copy holds."""

    stream_ms: int | None = None  # latest time of a window; None = none
    odd: int = 0  # keys of no form that the kind has
    cells: dict[Place, Cell] = field(default_factory=dict)  # buckets with any key


class Compared(NamedTuple):
    """What came of one comparison."""

    copy: int
    other: int | None
    """The copy that it was compared with; None = its changelog. `missing` is what the other one has alone."""
    odd: int  # keys of the changelog of no form that the kind has
    counts: Mapping[str, int]  # `COUNTS`, summed up over what is not expired
    segments: list[int]  # segments that differ
    expired: list[int]  # segments that are older than what is kept: nothing is said of them


def with_changelog(one: Judged, stored: Mapping[Place, Cell], logged: Expected) -> Compared:
    """Compare a copy with its changelog."""
    live_from = None
    if one.times is not None:
        segments_ms = (database.segment for database in one.source.databases)
        live_from = one.times.live_from(max(logged.stream_ms or 0, *segments_ms, 0))
    counted = _counted(stored, logged.cells, live_from, may_have_gone=one.may_have_gone)
    return Compared(one.source.copy, None, logged.odd, *counted)


def with_other(pair: Pair, stored: Mapping[int, Mapping[Place, Cell]]) -> Compared:
    """Compare segments of two copies at the same offset; both must be exact."""
    mine, others = (
        {place: cell for place, cell in stored[copy.copy].items() if place[0] in pair.segments}
        for copy in (pair.one, pair.other)
    )
    return Compared(pair.one.copy, pair.other.copy, 0, *_counted(mine, others, None, may_have_gone=False))


def _counted(
    own: Mapping[Place, Cell], log: Mapping[Place, Cell], live_from: int | None, *, may_have_gone: bool
) -> tuple[dict[str, int], list[int], list[int]]:
    """Count what is equal and what is not; a bucket that one side lacks is empty there."""
    counts = dict.fromkeys(COUNTS, 0)
    differing: set[int] = set()
    expired: set[int] = set()
    nothing = Cell()
    for place in own.keys() | log.keys():
        if live_from is not None and place[0] < live_from:
            expired.add(place[0])
            continue
        wrong = _judged(own.get(place, nothing), log.get(place, nothing), may_have_gone=may_have_gone)
        counts["buckets"] += 1
        if wrong is None:
            counts["equal"] += 1
        elif any(wrong):
            counts["differing"] += 1
            differing.add(place[0])
            for name, number in zip(COUNTS[4:], wrong, strict=True):
                counts[name] += number
        else:
            counts["unknown"] += 1
    return counts, sorted(differing), sorted(expired)


def _judged(own: Cell, log: Cell, *, may_have_gone: bool) -> tuple[int, int, int] | None:
    """Count at least how many keys of a bucket are missing, extra, or have another value; None = it is equal.

    What is not known: keys that are open, and whether the changelog lacks keys that were there.
    """
    has_same_keys = own.entries == log.entries and own.keys == log.keys
    has_same_values = own.first == log.first and own.second == log.second
    if has_same_keys and has_same_values and not log.blind:
        return None
    if log.open or may_have_gone:
        # beyond the bounds whatever the unknown keys are
        missing = max(log.least - own.entries, 0)
        extra = 0 if may_have_gone else max(own.entries - log.most, 0)
    else:
        swapped = int(own.entries == log.entries and own.keys != log.keys)
        missing = max(log.entries - own.entries, swapped)
        extra = max(own.entries - log.entries, swapped)
    return missing, extra, int(has_same_keys and not has_same_values and not log.open)


def cell_of(bucket: Bucket) -> Cell:
    """Give a bucket of a digest: all of it is known."""
    return Cell(bucket.entries, bucket.keys, bucket.first, bucket.second, bucket.entries, bucket.entries)


def verdict(one: Judged, compared: Compared) -> Verdict:
    """Judge a copy by what came of its comparison."""
    copy, counts, expired = one.source, compared.counts, frozenset(compared.expired)
    if compared.odd:
        reason = f"{copy.log} has keys that are not those of a {copy.kind.value} store"
        return Verdict(copy, Word.UNDECIDABLE, reason)
    reason = _unknown(one, counts)
    if counts["differing"]:
        segments = tuple(compared.segments) if one.times else ()
        return Verdict(copy, Word.DIFFERS, reason, counts, segments, expired)
    if not counts["unknown"]:
        return Verdict(copy, Word.EQUAL, counts=counts, expired=expired)
    return Verdict(copy, Word.PARTLY if counts["equal"] else Word.UNDECIDABLE, reason, counts)


def _unknown(one: Judged, counts: Mapping[str, int]) -> str:
    """Say why buckets cannot be judged."""
    if not counts["unknown"]:
        return ""
    head = f"{counts['unknown']} of {counts['buckets']} buckets cannot be judged: "
    if one.ends.earliest > 0:
        return f"{head}{one.source.log} begins at offset {one.ends.earliest}, the records before it are gone"
    if not one.source.is_settled:
        return f"{head}the store went on behind its offset, as one that runs does; a digest of a closed one decides"
    return f"{head}the changelog went on, and may have been compacted since the digest was made"
