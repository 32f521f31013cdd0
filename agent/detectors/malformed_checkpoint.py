"""Detector `malformed-checkpoint`: a checkpoint that cannot be read, or a temporary one that was left behind.

Fires when `.checkpoint` is not in the form that Kafka Streams writes: it replaces the file whole, so this is never
a moment in between. A leftover `.checkpoint.tmp` of a task that no process holds is reported as info.
"""

from __future__ import annotations

from collections.abc import Iterable

from agent.contract.events import Affected, Confidence, Level, Severity
from agent.contract.units import Twin
from agent.judging.base import DetectorMeta, Evidence, Kind, Scope, TaskCase, Verdict
from agent.judging.wording import checkpoint_of
from agent.layout.names import CHECKPOINT_FILE, TEMP_SUFFIX

LEFT_AFTER_US = 60_000_000

META = DetectorMeta(
    id="malformed-checkpoint",
    title="Checkpoint that cannot be read",
    level=Level.DAMAGE,
    severity=Severity.WARNING,
    kind=Kind.CONDITION,
    scope=Scope.TASK,
    next_action=(
        "Keep a copy. With the instance stopped, remove this task directory only: the task restores from its"
        " changelog. First check whether the volume is full or failing."
    ),
    consequence="The next start fails or restores in full; the volume may be failing.",
    twin=Twin("a crash loop in the midst of starts", "benign-crash-loop-4.0.2"),
    waits_us=(LEFT_AFTER_US,),
)


def judge(case: TaskCase) -> Iterable[Verdict]:
    """Judge one task.

    Source:
        OffsetCheckpoint.write: temporary name, fsync, rename (all releases).
    """
    task = case.task
    if task.exists and task.checkpoint_problem is not None:
        yield Verdict(
            subject=f"content@{task.checkpoint_problem_us}",
            opened_at_us=task.checkpoint_problem_us,
            summary=f"Task {task.id}: its checkpoint cannot be read ({task.checkpoint_problem}).",
            evidence=(Evidence(task.checkpoint_problem_us, task.checkpoint_problem, checkpoint_of(task)),),
            severity=Severity.WARNING,
            confidence=Confidence.CONFIRMED,
            affected=Affected.NO,
        )
    temporary = CHECKPOINT_FILE + TEMP_SUFFIX
    idle_us = case.waited_us(task.mtime_us)
    if task.exists and not task.held and temporary in task.names and idle_us > LEFT_AFTER_US:
        yield Verdict(
            subject="temporary",
            opened_at_us=task.mtime_us,
            summary=f"Task {task.id}: a temporary checkpoint was left behind by a kill in the middle of a write.",
            evidence=(
                Evidence(task.mtime_us, "left behind; no process holds the task", f"{task.path}/{temporary}"),
            ),
            severity=Severity.INFO,
            confidence=Confidence.CONFIRMED,
            affected=Affected.NO,
            next_action="Harmless: the next write replaces it. Up to 4.2 it makes the directory count as not empty.",
        )
