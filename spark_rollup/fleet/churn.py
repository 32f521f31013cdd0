"""Every move, wipe and restore of a task, and how many of each an hour had."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from itertools import pairwise
from typing import NamedTuple

from agent.contract.events import Change
from spark_rollup.fleet.application import SKEW_US, Application, Spans, Task, by_pod
from spark_rollup.fleet.events import MICROS
from spark_rollup.fleet.meta import Row
from spark_rollup.fleet.rows import Hold, Mark

HOUR_US = 3600 * MICROS

BURST_US = 10 * MICROS
"""Deletions and creations of one task's stores within this time are one step."""

AWAY_US = 10 * MICROS
"""A pod that lets go and takes again within this time (microseconds of its own clock) never lost the task. In which
order two pods took a task is not counted by: within seconds that is decided by their clocks."""


class Step(NamedTuple):
    """A move, a wipe or a restore, and what a restore cost (bytes; None = unknown)."""

    at_us: int
    step: str
    pod: str
    bytes: int | None = None


def steps(task: Task) -> Iterator[Step]:
    """List every move, wipe and restore of a task."""
    yield from (Step(x.from_us, "move", x.pod) for x in _moves(task.owners))
    wiped = [x for x in task.marks if x.change == Change.STORE_DELETED.value and x.shape == "owner-walk"]
    yield from (Step(at_us, "wipe", pod) for at_us, pod in _bursts(wiped))
    size: dict[str, int] = defaultdict(int)
    for copy in task.latest:
        if copy.most_bytes is not None:
            size[copy.pod] += copy.most_bytes
    made = sorted(_bursts(x for x in task.marks if x.change == Change.STORE_CREATED.value))
    # a task's very first store in the whole fleet is new, not restored
    yield from (Step(at_us, "restore", pod, size.get(pod)) for at_us, pod in made[1:])


def _moves(holds: list[Hold]) -> Iterator[Hold]:
    """Take the holds with which a pod took a task over: its first, or one after an absence in which another had it.

    The first holder in the whole fleet took it from no other pod.
    """
    left_us: dict[int, int] = {}
    for own in by_pod(holds).values():
        own.sort(key=lambda x: x.from_us)
        left_us |= {id(later): earlier.to_us for earlier, later in pairwise(own)}
    spans = {pod: Spans((x.from_us, x.to_us) for x in own) for pod, own in by_pod(holds).items()}
    for hold in sorted(holds, key=lambda x: (x.from_us, x.pod, x.to_us))[1:]:
        since_us = left_us.get(id(hold))
        if since_us is None or (hold.from_us - since_us > AWAY_US and _was_elsewhere(spans, hold, since_us)):
            yield hold


def _was_elsewhere(spans: Mapping[str, Spans], hold: Hold, since_us: int) -> bool:
    """Return whether another pod's hold touches the absence before `hold`, whatever the two clocks say."""
    return any(
        pod != hold.pod and one.cover(hold.from_us + SKEW_US, since_us - SKEW_US)
        for pod, one in spans.items()
    )


def _bursts(marks: Iterable[Mark]) -> Iterator[tuple[int, str]]:
    last: dict[str, int] = {}
    for mark in sorted(marks, key=lambda x: x.at_us):
        if mark.pod not in last or mark.at_us - last[mark.pod] > BURST_US:
            yield mark.at_us, mark.pod
        last[mark.pod] = mark.at_us


def per_hour(app: Application) -> Iterator[Row]:
    """Add steps up per task and hour: rows of `CHURN`."""
    for task in app.tasks.values():
        hours: dict[int, list[Step]] = defaultdict(list)
        for step in steps(task):
            if step.at_us >= app.since_us:
                hours[step.at_us - step.at_us % HOUR_US].append(step)
        for hour_us, inside in hours.items():
            count = Counter(x.step for x in inside)
            yield {
                "namespace": app.namespace, "application_id": app.name, "task_id": task.id, "hour_us": hour_us,
                "moves": count["move"], "wipes": count["wipe"], "restores": count["restore"],
                "restored_bytes": sum(x.bytes or 0 for x in inside),
            }  # fmt: skip
