"""Shortages: times in which a task had fewer holders than promised, and what else was true then."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from typing import NamedTuple

from agent.contract.events import Change
from spark_rollup.fleet.application import Application, Spans, Task
from spark_rollup.fleet.events import MICROS

SETTLE_US = 5 * MICROS
"""A deletion this long after the shortage ended still belongs to it: readings are not instants."""


class Shortage(NamedTuple):
    """A task had at most so many holders (`most`), fewer than promised, from one time to another."""

    task: Task
    from_us: int
    to_us: int
    most: int


class Settled(NamedTuple):
    """A shortage that outlasts a rebalance on pods which all lived through it.

    `settled_us` is `since_us` and the patience; `until_us` the end, or the last sign of any process: nothing is missing
    from a stopped application.
    """

    short: Shortage
    since_us: int
    settled_us: int
    until_us: int
    alive: int
    expected: int


class Unowned(NamedTuple):
    """A pod whose directory no process holds though its process lives; `gone_us`: deleted then (None = not)."""

    since_us: int
    pod: str
    gone_us: int | None


class _Family:
    """All shortages of the tasks of a subtopology."""

    def __init__(self, shortages: list[Shortage]) -> None:
        self.all = shortages
        self.begins = sorted(x.from_us for x in shortages)
        self.ends = sorted(x.to_us for x in shortages)
        self.short: dict[tuple[int, int], int] = {}
        """Number of tasks that are short at some time of a closed interval."""


@dataclass
class Shortages:
    """All shortages of an application with standbys, and what is asked of them."""

    app: Application
    standbys: int
    pods: int
    patience_us: int
    all: list[Shortage] = field(default_factory=list)

    def __post_init__(self) -> None:
        """Find them."""
        promised = 1 + min(self.standbys, self.pods - 1)
        self.all = [x for task in self.app.tasks.values() for x in _find(task, promised, self.app.as_of_us)]

    def settled(self) -> Iterator[Settled]:
        """List those that outlast a rebalance on pods which all lived through them.

        The clock starts when the last process of the application started. Processes that end meanwhile do not count.
        """
        for short in self.all:
            lives = self.app.life_ends.last(short.to_us - 1)
            if lives is None:
                continue
            since_us = max(short.from_us, lives[0])
            settled_us = since_us + self.patience_us
            alive = self.app.life_ends.through(short.to_us - 1, settled_us)
            expected = 1 + min(self.standbys, alive - 1)
            if settled_us < short.to_us and short.most < expected and expected >= 2:
                yield Settled(short, since_us, settled_us, min(short.to_us, lives[1]), alive, expected)

    def unowned(self, x: Settled) -> Unowned | None:
        """Find the pod whose directory stayed unowned: the last one that let go as the shortage began."""
        task, found = x.short.task, []
        for left in task.owners:
            released = x.since_us - self.patience_us <= left.to_us <= x.since_us + MICROS
            if left.lasting or not released:
                continue
            gone = min(
                (
                    (y.at_us, y.shape or "") for y in task.marks
                    if y.change == Change.TASK_DELETED.value and y.pod == left.pod and y.at_us >= left.to_us
                ),
                default=None,
            )  # fmt: skip
            stayed = gone is None or gone[0] >= x.settled_us
            cleaned = gone is not None and gone[1] == "cleaner-walk" and gone[0] <= x.short.to_us + SETTLE_US
            if stayed and (cleaned or self._works(left.pod, x.since_us, x.settled_us)):
                found.append(Unowned(left.to_us, left.pod, gone[0] if gone else None))
        return max(
            found, key=lambda y: (y.since_us, y.pod, -1 if y.gone_us is None else y.gone_us), default=None
        )

    def _works(self, pod: str, from_us: int, to_us: int) -> bool:
        """Return whether a pod held some task of the application all through a closed interval."""
        return pod in self._spans and self._spans[pod].cover(from_us, to_us)

    @cached_property
    def _spans(self) -> dict[str, Spans]:
        held: dict[str, list[tuple[int, int]]] = defaultdict(list)
        for task in self.app.tasks.values():
            for x in task.owners:
                held[x.pod].append((x.from_us, x.to_us))
        return {pod: Spans(spans) for pod, spans in held.items()}

    def has_complete_sibling(self, x: Settled) -> bool:
        """Return whether a sibling task of the same subtopology was complete through the waiting time."""
        family = self._families[subtopology(x.short.task.id)]
        # so many shortages touch that time at most; of one task there may be several
        touching = bisect_right(family.begins, x.settled_us) - bisect_left(family.ends, x.since_us)
        siblings = self._siblings[subtopology(x.short.task.id)]
        if touching < siblings:
            return True
        key = (x.since_us, x.settled_us)
        if key not in family.short:
            family.short[key] = len(
                {y.task.id for y in family.all if y.from_us <= x.settled_us and y.to_us >= x.since_us}
            )
        return family.short[key] < siblings

    @cached_property
    def _families(self) -> dict[str, _Family]:
        found: dict[str, list[Shortage]] = defaultdict(list)
        for x in self.all:
            found[subtopology(x.task.id)].append(x)
        return {name: _Family(shortages) for name, shortages in found.items()}

    @cached_property
    def _siblings(self) -> dict[str, int]:
        found: dict[str, int] = defaultdict(int)
        for task in self.app.tasks.values():
            found[subtopology(task.id)] += bool(task.owners)
        return found


def subtopology(task: str) -> str:
    """Return a task's subtopology."""
    return re.sub(r"_\d+$", "", task)


def _find(task: Task, promised: int, as_of_us: int) -> Iterator[Shortage]:
    """Find maximal intervals in which a task had fewer holders than the application's size promises.

    A copy still held when its pod was last heard counts as held ever since: not knowing is not missing.
    """
    steps: dict[int, int] = defaultdict(int)
    for x in task.owners:
        steps[x.from_us] += 1
        if not x.lasting:
            steps[x.to_us] -= 1
    times = sorted(steps)
    low: list[tuple[int, int, int]] = []  # from, to, holders
    holders = 0
    for at_us, next_us in pairwise([*times, as_of_us]):
        holders += steps[at_us]
        if holders < promised:
            low.append((at_us, next_us, holders))
    for island in _islands(low):
        yield Shortage(task, island[0][0], island[-1][1], max(x[2] for x in island))


def _islands(low: list[tuple[int, int, int]]) -> Iterator[list[tuple[int, int, int]]]:
    """Join intervals that meet."""
    island: list[tuple[int, int, int]] = []
    for one in low:
        if island and island[-1][1] != one[0]:
            yield island
            island = []
        island.append(one)
    if island:
        yield island
