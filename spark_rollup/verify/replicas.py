"""Copies of one store with each other, without any broker: at the same offset they must hold the same. Values only."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from spark_rollup.verify.compare import Compared
from spark_rollup.verify.digests import Copy


@dataclass(frozen=True, slots=True)
class Pair:
    """Two copies, and the databases of both that are exactly at the same offset."""

    one: Copy
    other: Copy
    segments: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Difference:
    """Two copies that hold different entries; `missing` in `counts` is what only the other has."""

    pair: Pair
    counts: Mapping[str, int]

    @property
    def doubt(self) -> str | None:
        """Why this is no proof of damage; None = it is one."""
        return self.pair.one.doubt or self.pair.other.doubt


def pairs(copies: Sequence[Copy]) -> list[Pair]:
    """Choose what can be compared: each copy with the first of its store that was at the same offset."""
    of_store: dict[tuple[object, ...], list[Copy]] = defaultdict(list)
    for copy in copies:
        key = (
            copy.namespace,
            copy.application_id,
            copy.task_id,
            copy.store,
            copy.part,
            copy.kind,
            copy.buckets,
        )
        of_store[key].append(copy)
    return [pair for several in of_store.values() for pair in _of_store(several)]


def _of_store(copies: Sequence[Copy]) -> Iterable[Pair]:
    firsts: dict[tuple[int, int], Copy] = {}
    found: dict[tuple[int, int], list[int]] = defaultdict(list)
    by_number = {copy.copy: copy for copy in copies}
    for copy in copies:
        for place in copy.places:
            if place.offset is None or not place.is_exact:
                continue
            first = firsts.setdefault((place.segment, place.offset), copy)
            if first is not copy:
                found[first.copy, copy.copy].append(place.segment)
    return [
        Pair(by_number[one], by_number[other], tuple(segments)) for (one, other), segments in found.items()
    ]


def differences(pairs_compared: Sequence[Pair], compared: Sequence[Compared]) -> list[Difference]:
    """List the pairs that differ."""
    found = {(one.copy, one.other): one.counts for one in compared}
    both = [Difference(pair, found[pair.one.copy, pair.other.copy]) for pair in pairs_compared]
    return [one for one in both if one.counts["differing"]]
