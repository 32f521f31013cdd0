"""Detector `temp-cleaner`: single files vanish under a store that is held.

Fires when a file that RocksDB needs goes away while its `LOCK` is held: no owner does that. Usually `state.dir` is
in a temporary directory that the operating system sweeps by age.
"""

from __future__ import annotations

from collections.abc import Iterable

from agent.contract.events import Affected, Confidence, Level, Severity
from agent.contract.units import Twin
from agent.judging.base import DetectorMeta, Evidence, Kind, Scope, TaskCase, Verdict

META = DetectorMeta(
    id="temp-cleaner",
    title="Files removed under a running store",
    level=Level.DAMAGE,
    severity=Severity.WARNING,
    kind=Kind.EVENT,
    scope=Scope.TASK,
    next_action=(
        "Move state.dir out of the swept directory (default: /tmp/kafka-streams up to 2.7, the JVM's temporary"
        " directory since 2.8) or exempt it from the sweep. The store works until its next open and fails then:"
        " plan an orderly restart with this task directory removed."
    ),
    consequence="The store works until its next open, and fails then.",
    twin=Twin("segments of a window expired under a held lock", "benign-window-expiry-3.9.2"),
    waits_us=(),
)


def judge(case: TaskCase) -> Iterable[Verdict]:
    """Judge one task.

    Source:
        docs/state-format.md#n19.
    """
    task = case.task
    for at_us, path in task.swept:
        yield Verdict(
            subject=f"{path}@{at_us}",
            opened_at_us=at_us,
            summary=f"Task {task.id}: {path.rpartition('/')[2]} was removed while a process holds the store.",
            evidence=(Evidence(at_us, "gone while LOCK is held; its owner goes on", path),),
            severity=Severity.WARNING,
            confidence=Confidence.SUSPECTED,
            affected=Affected.NO,
        )
