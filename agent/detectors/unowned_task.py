"""Detector `unowned-task`: no process holds a task directory although the process lives and standbys are configured.

Fires up to 2.2.1 with standby replicas when a directory that was held is free for longer than a hand-off while the
process shows that it lives. A suspicion: a task that really moved looks the same; the rollup confirms or explains.
Clears when a process takes the task or the directory is gone.
"""

from __future__ import annotations

from collections.abc import Iterable

from agent.contract.codec import moment
from agent.contract.events import Affected, Confidence, Level, Severity
from agent.contract.mechanisms import Mechanism
from agent.contract.units import Twin
from agent.inventory.model import Application, Task
from agent.judging.base import DetectorMeta, Evidence, Kind, Scope, TaskCase, Verdict
from agent.judging.upstream import KAFKA_8187
from agent.judging.wording import assumptions
from agent.layout.facts import Fact
from agent.layout.profile import Truth

META = DetectorMeta(
    id="unowned-task",
    title="Task directory that no process holds while its instance runs",
    mechanism=Mechanism.OFFSET_WITHOUT_DATA,
    level=Level.EXPOSURE,
    severity=Severity.WARNING,
    kind=Kind.CONDITION,
    scope=Scope.TASK,
    needs=("num_standby_replicas", "kafka_streams_version", "state_cleanup_delay_ms"),
    upstream=(KAFKA_8187,),
    next_action=(
        "Ask the rollup whether another pod took the task. If none did, stop this instance cleanly and start it again"
        " before the cleaner deletes the directory: the standby is then initialised again."
    ),
    consequence="The cleaner is about to delete a directory that may still be needed.",
    alert_after_m=5,
    twin=Twin("N7, an ordinary move, the cleaner comes later", "benign-move-3.9.2"),
    silent_where=((Fact.UNINITIALIZED_STANDBY_RUNS, Truth.NO),),
)

HANDED_OFF_BY_US = 5_000_000
"""Recorded hand-offs between threads take 20 ms; a rebalance between pods a few seconds."""
PROBED_AFTER_US = 1_000_000
"""A release is itself announced as a lock that was let go; what comes a second later is another hand. Up to 2.2.1 that
can only be the cleaner: it runs while the client is RUNNING, so after the rebalance, and never in an orderly stop."""


def judge(case: TaskCase) -> Iterable[Verdict]:
    """Judge one task.

    Source:
        StreamThread/TaskManager up to 2.2.1: RUNNING without initialised standbys; KafkaStreams.start and close
        (2.1.1): when the cleaner runs; recorded as `kafka-8187-stage1-2.2.1`, `kafka-8187-stage1-mixed-2.1.1`.
    """
    task = case.task
    standbys = case.settings.number("num_standby_replicas")
    if standbys == 0 or case.is_silent(META):
        return
    if standbys is None and case.affected(KAFKA_8187) is not Affected.YES:
        return
    released_us = task.released_us
    if not task.exists or task.held is not False or released_us is None or not task.stores:
        return
    alive_us = _alive_since(case, released_us)
    if case.waited_us(released_us) <= HANDED_OFF_BY_US or alive_us is None:
        return
    yield Verdict(
        subject=f"incarnation {task.incarnation}@{released_us}",
        opened_at_us=released_us,
        summary=(
            f"Task {task.id}: no process has held it since it was released, although the instance runs; if it was not"
            f" moved to another pod, its standby is lost here{_forecast(case, task)}."
        ),
        evidence=(
            Evidence(released_us, "released: its lock and stores are free", task.path),
            Evidence(alive_us, "the process lives: it works on other tasks or tries this lock", task.path),
            *assumptions(case, alive_us, "num_standby_replicas"),
        ),
        # By default there are no standbys, and then this is an ordinary move.
        severity=Severity.INFO if standbys is None else Severity.WARNING,
        confidence=Confidence.SUSPECTED,
        affected=case.affected(KAFKA_8187),
        missing_facts=("num_standby_replicas",) if standbys is None else (),
    )


def _alive_since(case: TaskCase, released_us: int) -> int | None:
    """When the process was seen alive after the release: a held sibling, or the cleaner's own lock probes."""
    probed, held_us = case.once(_signs_of_life, case.application)
    signs = [at_us for at_us in probed if at_us > released_us + PROBED_AFTER_US]
    # after a restart tasks are taken one by one: one that was just taken is no sign that this one is late
    if held_us is not None and case.waited_us(held_us) > HANDED_OFF_BY_US:
        signs.append(max(held_us, released_us))
    return min(signs, default=None)


def _signs_of_life(application: Application) -> tuple[list[int], int | None]:
    """List when locks of tasks were tried, and since when a task has been held at the longest."""
    tasks = application.tasks.values()
    held = [task.held_since_us for task in tasks if task.held]
    return [task.lock_probed_us for task in tasks if task.lock_probed_us], min(held, default=None)


def _forecast(case: TaskCase, task: Task) -> str:
    delay_ms = case.settings.number("state_cleanup_delay_ms")
    if delay_ms is None:
        return ""
    return f"; the cleaner may take it from {moment(task.mtime_us + delay_ms * 1_000)} on"
