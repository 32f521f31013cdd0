"""Detector `startup-pass`: what a start of 4.3 or later did with the stores on disk before any task was assigned.

An event per start, never a fault by itself: which stores were opened, in which order, for how long, and what
became of them.
"""

from __future__ import annotations

from collections.abc import Iterable

from agent.contract.events import Confidence, Level, Severity
from agent.contract.units import Twin
from agent.inventory.model import Application, ProcessLife, Session, Store, Task
from agent.judging.base import ApplicationCase, DetectorMeta, Evidence, Kind, Scope, Verdict, seconds
from agent.judging.upstream import KAFKA_19434
from agent.layout import names
from agent.layout.facts import Fact
from agent.layout.profile import Truth

META = DetectorMeta(
    id="startup-pass",
    title="Start-up pass over the stores on disk",
    level=Level.EVENT,
    severity=Severity.INFO,
    kind=Kind.EVENT,
    scope=Scope.APPLICATION,
    needs=(),
    upstream=(KAFKA_19434,),
    next_action="Nothing to do. A long pass delays the first assignment: fewer, smaller stale directories help.",
    consequence="The start takes longer; nothing else.",
    alert_after_m=30,
    twin=Twin("N6, a restart on a release without that pass", "benign-restart-alos-2.8.2"),
    silent_where=((Fact.STARTUP_PASS, Truth.NO), (Fact.STARTUP_PASS, Truth.MAYBE)),
)

SETTLED_US = 30_000_000
"""The pass ends before any thread works; half a minute after the start, or at the process's end, it is reported."""


def judge(case: ApplicationCase) -> Iterable[Verdict]:
    """Judge one application.

    Source:
        StateDirectory.initializeStartupStores, KafkaStreams.start (4.3.0+);
        docs/state-format.md#start-up-pass.
    """
    application = case.application
    if case.is_silent(META):
        return
    for life in application.lives:
        if life.ended_us is None and case.waited_us(life.started_us) < SETTLED_US:
            continue
        opened = sorted(_opened(application, life), key=lambda x: x[2].opened_us)
        if opened:
            yield _verdict(case, application, life, opened)


def _opened(application: Application, life: ProcessLife) -> Iterable[tuple[Task, Store, Session]]:
    for task in application.tasks.values():
        for store in task.stores.values():
            for session in store.sessions:
                # lock polling sees a process up to a second after its first work
                after = session.opened_us >= life.started_us - 1_000_000
                if (
                    after
                    and not session.created
                    and session.opened_us <= (life.ended_us or session.opened_us)
                ):
                    yield task, store, session
                    break


def _verdict(
    case: ApplicationCase,
    application: Application,
    life: ProcessLife,
    opened: list[tuple[Task, Store, Session]],
) -> Verdict:
    first, last = opened[0][2].opened_us, max(x[2].opened_us for x in opened)
    steps = [Evidence(life.started_us, "process started", f"{application.id}/{names.LOCK_FILE}")]
    for task, store, session in opened:
        steps.append(Evidence(session.opened_us, f"store {store.name} opened; {_fate(session)}", task.path))
    return Verdict(
        subject=str(life.started_us),
        opened_at_us=life.started_us,
        summary=(
            f"Start of {application.id}: {len(opened)} stores on disk opened within {seconds(last - first)},"
            f" {seconds(first - life.started_us)} after the start."
        ),
        evidence=tuple(steps),
        severity=Severity.INFO,
        confidence=Confidence.CONFIRMED,
        affected=case.affected(KAFKA_19434),
    )


def _fate(session: Session) -> str:
    if session.released_us is None:
        return "still open"
    return f"released after {seconds(session.released_us - session.opened_us)}"
