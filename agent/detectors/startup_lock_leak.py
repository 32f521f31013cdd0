"""Detector `startup-lock-leak`: an orderly exit left stores of the start-up pass unclosed.

Fires on 4.3.0 when a process ended in order (its other stores were closed) but a store that its start-up pass had
opened was let go without a close (KAFKA-20663). Not reproduced on the released jars so far; kept because the
source allows it.
"""

from __future__ import annotations

from collections.abc import Iterable

from agent.contract.events import Confidence, Level, Severity
from agent.contract.units import Twin
from agent.inventory.model import Application, ProcessLife, Session
from agent.judging.base import DetectorMeta, Evidence, Kind, Scope, TaskCase, Verdict
from agent.judging.upstream import KAFKA_20663
from agent.judging.wording import where
from agent.layout.facts import Fact
from agent.layout.profile import Truth

META = DetectorMeta(
    id="startup-lock-leak",
    title="Store opened by the start-up pass was not closed at a clean exit",
    level=Level.EXPOSURE,
    severity=Severity.WARNING,
    kind=Kind.EVENT,
    scope=Scope.TASK,
    needs=("kafka_streams_version",),
    upstream=(KAFKA_20663,),
    next_action="Expect a long replay or a wipe of this task at the next start; upgrade to 4.3.1.",
    consequence="The next start replays or wipes more than it had to.",
    twin=Twin("N18, the same start on the release with the fix", "control-20663-startup-lock-4.3.1"),
    silent_where=((Fact.STARTUP_LOCK_KEPT, Truth.NO), (Fact.STARTUP_LOCK_KEPT, Truth.MAYBE)),
)

SAME_END_US = 1_000_000


def judge(case: TaskCase) -> Iterable[Verdict]:
    """Judge one task.

    Source:
        StateDirectory.initializeStartupStores and closeStartupTasks at 4.3.0 (docs/state-format.md#kafka-20663).
    """
    task, application = case.task, case.application
    if task.is_global or case.is_silent(META):  # start-up tasks are stream tasks
        return
    for store in task.stores.values():
        for session in store.sessions:
            life = _ended_with(application, session)
            if life is None or session.closed is not False or session.puts_at_release <= session.puts_at_open:
                continue
            if _others_closed(application, task.id, life):
                yield Verdict(
                    subject=str(life.ended_us),
                    opened_at_us=session.released_us or 0,
                    summary=f"Task {task.id}: store {store.name} was not closed although its process ended cleanly.",
                    evidence=(
                        Evidence(session.opened_us, "opened, and flushed since", where(task, store)),
                        Evidence(session.released_us or 0, "let go without a close", where(task, store)),
                    ),
                    severity=Severity.WARNING,
                    confidence=Confidence.SUSPECTED,
                    store=store.name,
                    identity=store.identity,
                    affected=case.affected(KAFKA_20663),
                )


def _ended_with(application: Application, session: Session) -> ProcessLife | None:
    for life in application.lives:
        ended_us = life.ended_us
        if ended_us and session.released_us and abs(ended_us - session.released_us) <= SAME_END_US:
            return life
    return None


def _others_closed(application: Application, task_id: str, life: ProcessLife) -> bool:
    others = [
        session
        for task in application.tasks.values()
        for store in task.stores.values()
        for session in store.sessions
        if task.id != task_id
        and session.released_us is not None
        and abs((life.ended_us or 0) - session.released_us) <= SAME_END_US
    ]
    return bool(others) and all(x.closed for x in others)
