"""Detector `interrupted-wipe`: a task was closed with a fresh offset just before the process was killed.

Under exactly-once a corrupted task is closed with a checkpoint (4.3: an offset) right before its wipe. A kill in
between leaves uncommitted data that the next start trusts. Fires when a task was closed so, alone, its siblings died
with the process before the wipe could have started on this volume, and the same store was opened again.
Never more than suspected: a task that was committed, or revoked at that very moment, looks the same; only the
aborted transactions in the changelog can show it. Only information where the kill came later than the wipe would have
started, or where other tasks were closed with it: a revocation or an orderly stop does that, a corrupted task is wiped
before the next one is closed. On 4.3 information, too, where every task that died open has a higher id: a stop closes
tasks in the order of their ids, and writes nothing before. Stays quiet when another thread took the task before the
kill.
"""

from __future__ import annotations

from collections.abc import Iterable

from agent.contract.events import Affected, Confidence, Level, Severity
from agent.contract.mechanisms import Mechanism
from agent.contract.units import Twin
from agent.inventory.model import CLOSES_WITHIN_US, Application, Session, Store, Task
from agent.judging.base import DetectorMeta, Evidence, Kind, Scope, TaskCase, Verdict, seconds
from agent.judging.killed_close import (
    KillClose,
    close_of,
    closed_with,
    is_first_of_a_stop,
    killed_life,
    siblings_killed,
)
from agent.judging.reopening import reopenings
from agent.judging.upstream import INTERRUPTED_WIPE
from agent.judging.wording import where
from agent.layout import names
from agent.layout.facts import Fact
from agent.layout.profile import Truth

META = DetectorMeta(
    id="interrupted-wipe",
    title="Process killed between the close of a task and its wipe",
    mechanism=Mechanism.UNCOMMITTED_DATA,
    level=Level.DAMAGE,
    severity=Severity.WARNING,
    kind=Kind.DAMAGE,
    scope=Scope.TASK,
    needs=("processing_guarantee", "kafka_streams_version"),
    upstream=(INTERRUPTED_WIPE,),
    exactly_once=True,
    next_action=(
        "Check for an aborted transaction of this instance that ends right before the kill (kafka-dump-log on the"
        " changelog partition, or `task corrupted` in the application's log). If there is one: stop cleanly, keep"
        " a copy, remove this task directory only, start again. What the task wrote since stays wrong until it is"
        " reprocessed."
    ),
    consequence="Uncommitted records may have been kept; the disk alone cannot show it.",
    twin=Twin("N14, a lost membership wiped all active tasks at once", "benign-eos-fencing-4.1.2"),
)

_NOTHING = "Nothing, unless the application's log names this task as corrupted right before the kill."


def judge(case: TaskCase) -> Iterable[Verdict]:
    """Judge one task.

    Source:
        `agent.judging.killed_close`; recorded as `corrupt-kill-*`.
    """
    task = case.task
    if task.is_global or case.is_silent(META) or case.affected(INTERRUPTED_WIPE) is Affected.NO:
        return
    most_severe: dict[int, Verdict] = {}
    for store in task.stores.values():
        for before, after in reopenings(case, store):
            verdict = _judge_reopening(case, store, before, after)
            if verdict is None:
                continue
            known = most_severe.setdefault(verdict.opened_at_us, verdict)
            if verdict.severity.rank > known.severity.rank:
                most_severe[verdict.opened_at_us] = verdict
    yield from most_severe.values()


def _judge_reopening(case: TaskCase, store: Store, before: Session, after: Session) -> Verdict | None:
    task, application = case.task, case.application
    life = killed_life(application, before, after)
    if life is None:
        return None
    close = close_of(task, before, life)
    if not _has_fresh_offset(case, before, close.due_us) or not siblings_killed(application, task, close):
        return None
    return _verdict(case, store, before, after, close, _doubt(application, task, close))


def _doubt(application: Application, task: Task, close: KillClose) -> str:
    """Say what speaks against a corrupted close; empty: nothing."""
    if closed_with(application, task, close):
        return "other tasks were closed with it"
    if not close.is_in_time:
        return f"its wipe would have started within {close.due_us / 1_000_000:.1f} s"
    if is_first_of_a_stop(application, task, close):
        return "a stop closes this task first"
    return ""


def _has_fresh_offset(case: TaskCase, session: Session, slack_us: int) -> bool:
    """The close wrote an offset last; on 4.3 one without an offset is a false clean, another matter.

    On a slow volume the store is let go later than `closed` allows for: a close removes files, too.
    """
    mark = session.last
    took_us = (session.released_us or 0) - mark.at_us if mark is not None else 0
    if not session.closed and not CLOSES_WITHIN_US < took_us <= CLOSES_WITHIN_US + slack_us:
        return False
    return case.says(Fact.OFFSETS_IN_STORE) is not Truth.YES or session.closed_with_offset is True


def _verdict(
    case: TaskCase, store: Store, before: Session, after: Session, close: KillClose, doubt: str
) -> Verdict:
    task, application = case.task, case.application
    suspected = not doubt
    waited = seconds(close.ended_us - close.closed_us)
    means = (
        "if it was closed as corrupted, uncommitted data is in it"
        if suspected
        else f"a revocation or an orderly stop, most likely ({doubt})"
    )
    return Verdict(
        subject=f"kill@{close.ended_us}",
        opened_at_us=after.opened_us,
        summary=(
            f"Task {task.id} was closed with a fresh offset {waited} before its process was killed, and was reopened"
            f" without a wipe: {means}."
        ),
        evidence=(
            Evidence(before.opened_us, f"store {store.name} opened", where(task, store)),
            Evidence(
                close.closed_us,
                "closed, with an offset written right before; its siblings were held",
                task.path,
            ),
            Evidence(
                close.ended_us,
                "the process ended, its other tasks without a close",
                f"{application.id}/{names.LOCK_FILE}",
            ),
            Evidence(after.opened_us, "the same incarnation opened again, no wipe", where(task, store)),
        ),
        severity=Severity.WARNING if suspected else Severity.INFO,
        confidence=Confidence.SUSPECTED if suspected else Confidence.UNKNOWN,
        level=None if suspected else Level.EVENT,
        identity=store.identity,
        affected=case.affected(INTERRUPTED_WIPE),
        missing_facts=("aborted transactions in the changelog",),
        next_action="" if suspected else _NOTHING,
    )
