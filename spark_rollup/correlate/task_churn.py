"""A task that moves, is wiped or restored again and again, and what that costs.

Signal: pods that take the task after another one had it, deletions of stores by their owner, stores recreated.
Fires when: within one hour a task moved, or was restored, at least six times, or was wiped at least three times; a
    warning from twice as many on.
Clears when: that hour is before the look-back.
Stays quiet when: pods roll once, a task moves and comes back, or is closed and opened where it is.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from agent.contract.codec import moment
from agent.contract.events import Affected, Confidence, Level, Severity
from agent.contract.units import Twin
from spark_rollup.fleet.application import Application, Rule, Task
from spark_rollup.fleet.churn import HOUR_US, Step, steps
from spark_rollup.fleet.meta import Row, RuleMeta
from spark_rollup.fleet.words import chain, entry, finding, place

META = RuleMeta(
    id="task-churn",
    title="A task is moved, wiped or restored again and again",
    level=Level.EVENT,
    severity=Severity.WARNING,
    joined_by=(("application_id",),),
    twin=Twin("N6, a rolling restart moves each task once or twice", "benign-rolling-standby-3.9.2"),
)

LIMITS = {"move": 6, "wipe": 3, "restore": 6}
"""How often an hour may bring it before it is worth a note."""

MAX_STEPS = 20

_DONE = {"move": "took the task", "wipe": "wiped its store", "restore": "recreated its store"}


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
    doubtful, where = bool(app.unwatched(task.id, from_us, to_us)), place(app.name, task.id)
    return finding(
        META, app.where, from_us, task_id=task.id,
        severity=(Severity.WARNING if worst >= 2 else Severity.INFO).value,
        confidence=(Confidence.SUSPECTED if doubtful else Confidence.CONFIRMED).value,
        affected=Affected.NO.value,
        summary=f"{task.id}: {count['move']} moves, {count['wipe']} wipes, {count['restore']} restores between"
        f" {moment(from_us)} and {moment(to_us)}{cost}",
        evidence=chain(*(entry(x.at_us, f"{x.pod} {_DONE[x.step]}", where) for x in hour))[:MAX_STEPS],
        next_action="Find out why members leave the group: max.poll.interval.ms, liveness probes, restarts; repeated"
        " wipes point at fencing. A task that moves all the time is useless while it is restored.",
        pods=sorted({x.pod for x in hour}),
    )  # fmt: skip


RULE = Rule(META, find)
