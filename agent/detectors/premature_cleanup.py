"""Detector `premature-cleanup`: a task directory was deleted sooner after its release than the delay allows.

Fires when the cleaner's first removal comes earlier after the release than `state.cleanup.delay.ms` while the
process goes on with other tasks. The task then restores from the beginning where it comes back. Info on releases
without KAFKA-20805: there the cleaner counts from the last change of the directory, and a task that was closed without
writing its checkpoint may have been unchanged for long.
Stays quiet for a wipe under exactly-once (it follows the close at once; within a minute where that close was not in
order) and for `cleanUp()` of a stopped instance.
"""

from __future__ import annotations

from collections.abc import Iterable

from agent.contract.events import Affected, Confidence, Level, Severity
from agent.contract.units import Twin
from agent.inventory.model import Application, PastTask, Shape
from agent.judging.base import (
    DetectorMeta,
    Evidence,
    Kind,
    Scope,
    TaskCase,
    Verdict,
    seconds,
)
from agent.judging.upstream import KAFKA_20805
from agent.judging.wording import assumptions

META = DetectorMeta(
    id="premature-cleanup",
    title="Task directory deleted before the cleanup delay had passed",
    level=Level.DAMAGE,
    severity=Severity.WARNING,
    kind=Kind.EVENT,
    scope=Scope.TASK,
    needs=("state_cleanup_delay_ms", "processing_guarantee", "kafka_streams_version"),
    upstream=(KAFKA_20805,),
    next_action=(
        "No data is lost: the task restores in full from its changelog. Watch that restoration (it may find offsets"
        " out of range), raise state.cleanup.delay.ms well above the time between rebalances, and upgrade."
    ),
    consequence="A copy that should have been kept is gone: the task restores in full.",
    twin=Twin("N8, the cleaner waited for its delay", "control-20805-4.2.1"),
    waits_us=(),
)

WIPES_WITHIN_US = 1_500_000
"""Under exactly-once a wipe follows the close within milliseconds (recorded: up to 60 ms)."""
SLOW_WIPE_US = 60_000_000
"""The same after a close that was not in order, which is what a wipe usually follows, in a pod that is short of CPU
(seen live: 2.0 s)."""


def judge(case: TaskCase) -> Iterable[Verdict]:
    """Judge one task.

    Source:
        StateDirectory.cleanRemovedTasksCalledByCleanerThread at 4.3.0 and 4.3.1 (judges by the age of the
        directory's creation), at 3.7.2 (by its last change); recorded as `kafka-20805-4.3.1`, twin
        `control-20805-4.2.1`.
    """
    task = case.task
    delay_ms = case.settings.assumed("state_cleanup_delay_ms")
    if delay_ms is None or case.settings.exactly_once is None:
        return
    for past in task.past:
        if _is_early(case, past, delay_ms * 1_000) and _lived(case.application, past):
            yield _verdict(case, past, delay_ms)


def _is_early(case: TaskCase, past: PastTask, delay_us: int) -> bool:
    if past.released_us is None or past.held or past.shape is Shape.VANISHED_UNSEEN:
        return False
    age_us = past.started_us - past.released_us
    if case.settings.exactly_once and age_us <= (WIPES_WITHIN_US if past.closed_in_order else SLOW_WIPE_US):
        return False
    return 0 <= age_us < delay_us - POLL_SLACK_US


POLL_SLACK_US = 500_000
"""A release is seen up to a lock poll late, so a deletion can seem a little earlier than it was."""


def _lived(application: Application, past: PastTask) -> bool:
    held = any(
        life.started_us < past.started_us and (life.ended_us is None or life.ended_us > past.ended_us)
        for life in application.lives
    )
    return held and past.siblings_held


def _verdict(case: TaskCase, past: PastTask, delay_ms: int) -> Verdict:
    task = case.task
    released_us = past.released_us or 0
    is_configured = case.settings.is_configured("state_cleanup_delay_ms")
    affected = case.affected(KAFKA_20805)
    return Verdict(
        subject=f"incarnation {past.incarnation}",
        opened_at_us=past.started_us,
        summary=(
            f"Task {task.id} was deleted {seconds(past.started_us - released_us)} after its release; the cleanup delay"
            f" is {delay_ms / 1000:g} s. It restores from the beginning when it comes back."
        ),
        evidence=(
            Evidence(released_us, "released: its stores are free", task.path),
            Evidence(
                past.started_us, "first file removed, by a process that goes on with other tasks", task.path
            ),
            Evidence(past.ended_us, "directory gone", task.path),
            *assumptions(case, past.ended_us, "state_cleanup_delay_ms"),
        ),
        # A short delay is common, and nothing on disk shows it: a default alone is no reason to page anyone.
        severity=Severity.WARNING if is_configured and affected is not Affected.NO else Severity.INFO,
        confidence=Confidence.CONFIRMED if is_configured else Confidence.SUSPECTED,
        affected=affected,
        missing_facts=() if is_configured else ("state_cleanup_delay_ms",),
    )
