"""Detector `wipe-storm`: the same task is wiped again and again.

Fires when a task directory was wiped by its owner three times within an hour. A burst that wipes many tasks
once is a single fencing and is not reported. A task in which nothing was ever flushed has nothing to restore and does
not count; one whose stores could not be read does. One finding per task, however long the storm lasts; it gives the
present count.
"""

from __future__ import annotations

from collections.abc import Iterable

from agent.contract.events import Affected, Confidence, Level, Severity
from agent.contract.units import Twin
from agent.inventory.model import WIPES_KEPT
from agent.judging.base import DetectorMeta, Evidence, Kind, Scope, TaskCase, Verdict

META = DetectorMeta(
    id="wipe-storm",
    title="Task wiped again and again",
    level=Level.EXPOSURE,
    severity=Severity.WARNING,
    kind=Kind.CONDITION,
    scope=Scope.TASK,
    refreshed=True,
    next_action=(
        "Search the application's log for the reason of each wipe (TaskCorrupted, fenced producer, commit timeout)."
        " Every wipe is a full restoration: raise transaction and poll timeouts, or fix the crash."
    ),
    consequence="Every wipe is a full restoration: the task does little else.",
    twin=Twin("N14, one fencing wiped many tasks once", "benign-eos-fencing-4.1.2"),
    waits_us=(),
)

WIPES = 3
WITHIN_US = 3_600_000_000


def judge(case: TaskCase) -> Iterable[Verdict]:
    """Judge one task.

    Source:
        StateManagerUtil.closeStateManager (2.6.0+); docs/state-format.md#n13, docs/state-format.md#n14.
    """
    task = case.task
    recent = [x for x in task.wiped_us if case.waited_us(x) <= WITHIN_US]
    if len(recent) < WIPES:
        return
    yield Verdict(
        subject="storm",
        opened_at_us=recent[WIPES - 1],
        summary=f"Task {task.id} was wiped {_times(len(recent))} within an hour.",
        evidence=tuple(Evidence(x, "wiped by its owner", task.path) for x in recent),
        severity=Severity.WARNING,
        confidence=Confidence.CONFIRMED,
        affected=Affected.NO,
    )


def _times(count: int) -> str:
    """Older wipes are forgotten."""
    return f"{'at least ' if count == WIPES_KEPT else ''}{count} times"
