"""Detector `orphaned-task`: a task directory that nobody opens and no cleaner takes.

Fires when a directory with data has been free for more than two cleanup delays while its process lives and no
cleaner is at work on it. On 4.3.0 the start-up pass keeps such directories locked for ever (KAFKA-20663).
Clears when somebody opens it or it is deleted.
"""

from __future__ import annotations

from collections.abc import Iterable

from agent.contract.events import Confidence, Level, Severity
from agent.detectors.base import Case, DetectorMeta, Evidence, Kind, Scope, Verdict, seconds
from agent.detectors.upstream import KAFKA_20663
from agent.inventory.model import Application
from agent.layout.facts import Fact
from agent.layout.profile import Truth

META = DetectorMeta(
    id="orphaned-task",
    title="Task directory that nobody opens and no cleaner takes",
    level=Level.EXPOSURE,
    severity=Severity.WARNING,
    kind=Kind.CONDITION,
    scope=Scope.TASK,
    needs=("state_cleanup_delay_ms",),
    upstream=(KAFKA_20663,),
    next_action=(
        "No data is at risk; disk space is. Restart the instance in an orderly way, or upgrade. After a change of"
        " the topology the directory may belong to a task id that no longer exists."
    ),
)

DELAYS = 2
SLACK_US = 5_000_000


def judge(case: Case) -> Iterable[Verdict]:
    """Judge one task.

    Source:
        StateDirectory.initializeStartupStores at 4.3.0; recorded as `kafka-20663-startup-lock-4.3.0`, twin
        `control-20663-startup-lock-4.3.1`.
    """
    task, application = case.task, case.application
    assert task is not None
    assert application is not None
    delay_ms = case.settings.number("state_cleanup_delay_ms")
    if delay_ms is None or task.is_global or not task.exists or task.held:
        return
    if not any(store.databases for store in task.stores.values()):
        return
    alive_us = _alive_since(application)
    if alive_us is None or task.walk is not None:
        return
    free_us = max(task.released_us or 0, task.mtime_us, alive_us)
    limit_us = DELAYS * delay_ms * 1_000 + SLACK_US
    if case.now_us - free_us <= limit_us:
        return
    kept = case.says(Fact.STARTUP_LOCK_KEPT) is not Truth.NO
    yield Verdict(
        subject=f"incarnation {task.incarnation}",
        opened_at_us=free_us + limit_us,
        summary=(
            f"Task {task.id}: its directory has been free for {seconds(case.now_us - free_us)} (cleanup delay"
            f" {delay_ms / 1000:g} s) while the process lives; no cleaner takes it."
        ),
        evidence=(
            Evidence(alive_us, "the process lives", f"{application.id}/.lock"),
            Evidence(free_us, "free since then", task.path),
        ),
        severity=Severity.WARNING if kept else Severity.INFO,
        confidence=Confidence.CONFIRMED if kept else Confidence.SUSPECTED,
        affected=case.affected(KAFKA_20663),
    )


def _alive_since(application: Application) -> int | None:
    if application.life is not None:
        return application.life.started_us
    held = [task.held_since_us for task in application.tasks.values() if task.held]
    return min(held, default=None)
