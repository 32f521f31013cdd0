"""Copies of one store with each other, without any broker: at the same offset they must hold the same. Values only."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from spark_rollup.verify.digests import Copy


class Pair(NamedTuple):
    """Two copies, and the segments of both that are exactly at the same offset."""

    one: Copy
    other: Copy
    segments: tuple[int, ...]

    @property
    def doubt(self) -> str | None:
        """Why a difference is no proof of damage; None = it is one."""
        return self.one.doubt or self.other.doubt


def pairs(copies: Sequence[Copy]) -> list[Pair]:
    """Choose what can be compared: each copy with the first of its store that was at the same offset."""
    of_store: dict[tuple[object, ...], list[Copy]] = defaultdict(list)
    for x in copies:
        of_store[x.namespace, x.application_id, x.task_id, x.store, x.part, x.kind, x.buckets].append(x)
    return [pair for several in of_store.values() for pair in _of_store(several)]


def _of_store(copies: Sequence[Copy]) -> Iterable[Pair]:
    firsts: dict[tuple[int, int], Copy] = {}
    found: dict[tuple[int, int], list[int]] = defaultdict(list)
    by_number = {copy.copy: copy for copy in copies}
    for copy in copies:
        for one in copy.databases:
            if one.offset is None or not one.is_exact:
                continue
            first = firsts.setdefault((one.segment, one.offset), copy)
            if first is not copy:
                found[first.copy, copy.copy].append(one.segment)
    return [
        Pair(by_number[one], by_number[other], tuple(segments)) for (one, other), segments in found.items()
    ]
