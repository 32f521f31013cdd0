"""A task that moves, is wiped or restored again and again, and what that costs.

Signal: pods that take the task after another one had it, deletions of stores by their owner, stores recreated.
Fires when: within one hour a task moved, or was restored, at least six times, or was wiped at least three times; a
    warning from twice as many on.
Clears when: that hour is before the look-back.
Stays quiet when: pods roll once, a task moves and comes back, or is closed and opened where it is.
Blind spots: what happens unwatched is not counted, so numbers are lower bounds.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from agent.contract.events import Affected, Change, Confidence, Level, Severity
from agent.contract.units import Twin
from spark_rollup.fleet.application import MICROS, SKEW_US, Application, Spans, Task, by_pod
from spark_rollup.fleet.meta import Row, Rule, RuleMeta
from spark_rollup.fleet.rows import Hold, Mark
from spark_rollup.fleet.words import chain, clock, entry, finding, place

META = RuleMeta(
    id="task-churn",
    title="A task is moved, wiped or restored again and again",
    level=Level.EVENT,
    severity=Severity.WARNING,
    joined_by=(("application_id",),),
    twin=Twin("N6, a rolling restart moves each task once or twice", "benign-rolling-standby-3.9.2"),
)

HOUR_US = 3600 * MICROS

LIMITS = {"move": 6, "wipe": 3, "restore": 6}
"""How often an hour may bring it before it is worth a note."""

BURST_US = 10 * MICROS
"""Deletions and creations of one task's stores within this time are one step."""

AWAY_US = 10 * MICROS
"""A pod that lets go and takes again within this time (microseconds of its own clock) never lost the task. In which
order two pods took a task is not counted by: within seconds that is decided by their clocks."""

MAX_STEPS = 20

_DONE = {"move": "took the task", "wipe": "wiped its store", "restore": "recreated its store"}


class Step(NamedTuple):
    """A move, a wipe or a restore, and what a restore cost (bytes; None = unknown)."""

    at_us: int
    step: str
    pod: str
    bytes: int | None = None


def find(app: Application) -> Iterator[Row]:
    """Find each task's busiest hour."""
    for task in app.tasks.values():
        ordered = sorted(steps(task), key=lambda x: x.at_us)
        times = [x.at_us for x in ordered]
        best: tuple[float, int, Step, list[Step]] | None = None
        counts: Counter[str] = Counter()
        first = 0
        for last, step in enumerate(ordered):
            counts[step.step] += 1
            while times[first] < step.at_us - HOUR_US:
                counts[ordered[first].step] -= 1
                first += 1
            if last + 1 < len(times) and times[last + 1] == step.at_us:
                continue  # what happened at one time is counted together
            worst = max(counts[kind] / limit for kind, limit in LIMITS.items())
            if worst >= 1 and step.at_us >= app.since_us and (best is None or (worst, step.at_us) > best[:2]):
                best = (worst, step.at_us, step, ordered[first : last + 1])
        if best:
            yield _finding(app, task, best[0], best[3])


def _finding(app: Application, task: Task, worst: float, hour: list[Step]) -> Row:
    from_us, to_us = hour[0].at_us, hour[-1].at_us
    count = Counter(x.step for x in hour)
    known = [x.bytes for x in hour if x.bytes is not None]
    cost = f", {sum(known)} bytes restored" if known else ""
    # a hold whose begin was lost begins later: a pause of a second can then look like an absence
    doubtful = bool(app.unwatched(task.id, from_us, to_us))
    return finding(
        META, app.where, from_us, task_id=task.id,
        severity=(Severity.WARNING if worst >= 2 else Severity.INFO).value,
        confidence=(Confidence.SUSPECTED if doubtful else Confidence.CONFIRMED).value,
        affected=Affected.NO.value,
        summary=f"{task.id}: {count['move']} moves, {count['wipe']} wipes, {count['restore']} restores between"
        f" {clock(from_us)} and {clock(to_us)}{cost}",
        evidence=chain(*(entry(x.at_us, f"{x.pod} {_DONE[x.step]}", place(app.name, task.id)) for x in hour))[:MAX_STEPS],
        next_action="Find out why members leave the group: max.poll.interval.ms, liveness probes, restarts; repeated wipes"
        " point at fencing. A task that moves all the time is useless while it is restored.",
        pods=sorted({x.pod for x in hour}),
    )  # fmt: skip


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
        left_us |= {id(later): earlier.to_us for earlier, later in zip(own, own[1:], strict=False)}
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


RULE = Rule(META, find)
