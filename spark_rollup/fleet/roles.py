"""Which role a pod's copy of a task had before a crash, by what the rest of the fleet did meanwhile."""

from __future__ import annotations

from collections import defaultdict
from typing import NamedTuple

from agent.contract.events import Change
from spark_rollup.fleet.application import NOISE_PUTS, SKEW_US, Application, Task
from spark_rollup.fleet.growth import course, growth
from spark_rollup.fleet.rows import Reading, Said


class Tenure(NamedTuple):
    """The hold before a crash."""

    to_us: int
    from_us: int


def tenure_before(task: Task, said: Said) -> Tenure | None:
    """Find the suspect's last hold that ended before the finding opened."""
    own = [x for x in task.owners if x.pod == said.pod and x.to_us <= said.opened_at_us]
    return max((Tenure(x.to_us, x.from_us) for x in own), default=None)


def why_active(app: Application, task: Task, said: Said, tenure: Tenure | None) -> str | None:
    """Say what shows that the suspect was the active when it crashed; None = nothing does.

    The application has no other pod. Or no other pod held the task for longer than it takes a group to miss an active
    and give the task to another, and all its pods were watched meanwhile. Or others held it, but as standbys: one of
    them wrote checkpoints as it went on, which under exactly-once a standby does every 10,000 records and an active
    never, while the suspect put in records and wrote none.
    """
    if tenure is None:
        return None
    pod = said.pod
    if all(x.name == pod for x in app.home):
        return f"{app.name} has no other pod: {pod} was the active of {task.id}"
    if app.settings is None:
        return None
    settled_us = tenure.to_us - (app.settings.session_ms * 1_000 + SKEW_US)
    if tenure.from_us > settled_us or app.unwatched(task.id, settled_us, tenure.to_us):
        return None
    beside = {
        x.pod for x in task.owners if x.pod != pod and x.from_us <= tenure.to_us and x.to_us >= settled_us
    }
    if not beside:
        return f"no other pod held {task.id} before the crash: {pod} was its active"
    standby = _standby(task, pod, tenure)
    if len(beside) == 1 and standby:
        return (
            f"{standby} wrote checkpoints of {task.id} as a standby does, {pod} wrote none: it was the active"
        )
    return None


def _standby(task: Task, pod: str, tenure: Tenure) -> str | None:
    """Find another pod that behaved as a standby where the suspect did not."""
    written = [x for x in task.marks if x.change == Change.CHECKPOINT_WRITTEN.value]
    theirs: dict[str, list[int]] = defaultdict(list)
    for x in written:
        if x.pod != pod and tenure.from_us + SKEW_US <= x.at_us <= tenure.to_us - SKEW_US:
            theirs[x.pod].append(x.at_us)
    found = []
    for other, times in theirs.items():
        from_us, to_us = min(times) - SKEW_US, max(times) + SKEW_US
        lasting = max(times) - min(times) > 2 * SKEW_US
        wrote = any(x.pod == pod and from_us <= x.at_us <= to_us for x in written)
        if lasting and not wrote and _worked(task, pod, from_us, to_us):
            found.append(other)
    return min(found, default=None)


def _worked(task: Task, pod: str, from_us: int, to_us: int) -> bool:
    """Return whether a pod put records into some store in a closed interval."""
    own: dict[str | None, list[Reading]] = defaultdict(list)
    for x in task.readings:
        if x.pod == pod and x.puts is not None and not x.anchor and from_us <= x.at_us <= to_us:
            own[x.store].append(x)
    return any((growth(course(readings)) or 0) > NOISE_PUTS for readings in own.values())
