"""Detector `interrupted-wipe`: a task was closed with a fresh offset just before the process was killed.

Under exactly-once a corrupted task is closed with a checkpoint (4.3: an offset) right before its wipe. A kill in
between leaves uncommitted data that the next start trusts. Fires when a task was closed so, its siblings died with
the process within seconds, and the same store was opened again.
Never more than suspected: a task that was committed, or revoked right before the kill, looks the same; only the
aborted transactions in the changelog can tell.
"""

from __future__ import annotations

from collections.abc import Iterable

from agent.contract.events import Affected, Confidence, Level, Severity
from agent.detectors.base import Case, DetectorMeta, Evidence, Kind, Scope, Verdict, seconds
from agent.detectors.reopening import reopenings
from agent.detectors.telling import where
from agent.detectors.upstream import INTERRUPTED_WIPE
from agent.inventory.model import Application, ProcessLife, Session, Store, Task
from agent.layout.facts import Fact
from agent.layout.profile import Truth

META = DetectorMeta(
    id="interrupted-wipe",
    title="Process killed between the close of a task and its wipe",
    level=Level.DAMAGE,
    severity=Severity.WARNING,
    kind=Kind.DAMAGE,
    scope=Scope.TASK,
    needs=("processing_guarantee", "kafka_streams_version"),
    upstream=(INTERRUPTED_WIPE,),
    next_action=(
        "Look for an aborted transaction of this instance that ends right before the kill (kafka-dump-log on the"
        " changelog partition, or `task corrupted` in the application's log). If there is one: stop cleanly, keep"
        " a copy, remove this task directory only, start again. What the task wrote since stays wrong until it is"
        " reprocessed."
    ),
)

KILLED_WITHIN_US = 5_000_000
"""The wipe begins right after the close (recorded: 15 and 59 ms before the kill); a task that was released longer
before the end of its process was revoked."""
BEFORE_THE_KILL_US = 8_000
"""A kill lets go of everything at once; the recorded closes came 15 and 59 ms before it."""
SAME_END_US = 1_000_000
STOPS_WITHIN_US = 10_000_000
"""How long an orderly stop may flush the stores of all tasks before it closes the first of them. Under exactly-once a
running task writes no checkpoint, so that of a sibling which was killed dates from its restoration."""


def judge(case: Case) -> Iterable[Verdict]:
    """Judge one task.

    Source:
        StreamTask.markChangelogAsCorrupted and closeDirty at 3.8.0 to 4.3.1; recorded as `corrupt-kill-*`.
    """
    task, application = case.task, case.application
    assert task is not None
    assert application is not None
    if (
        case.settings.exactly_once is not True
        or task.is_global
        or case.affected(INTERRUPTED_WIPE) is Affected.NO
    ):
        return
    for store in task.stores.values():
        for before, after in reopenings(store, case.now_us):
            life = _killed_life(application, before)
            if life is None:
                continue
            if _has_fresh_offset(case, store, before) and _siblings_killed(application, task, before, life):
                yield _tell(case, task, store, before, after, life)
                return


def _killed_life(application: Application, session: Session) -> ProcessLife | None:
    released_us = session.released_us
    if released_us is None:
        return None
    for life in application.lives:
        if life.ended_us is not None and 0 <= life.ended_us - released_us <= KILLED_WITHIN_US:
            return life
    return None


def _has_fresh_offset(case: Case, store: Store, session: Session) -> bool:
    """The close wrote an offset last; on 4.3 one without an offset is a false clean, another matter."""
    if not session.closed:
        return False
    return case.says(Fact.OFFSETS_IN_STORE) is not Truth.YES or session.closed_with_offset is True


def _siblings_killed(application: Application, task: Task, closed: Session, life: ProcessLife) -> bool:
    """Other tasks were held after this one was closed, to the end of the process, and were not closed.

    The global state proves nothing: an orderly stop lets go of it last, after all tasks of the stream threads. Neither
    does a task whose checkpoint is about as new: an orderly stop writes those of all tasks, then closes one by one.
    """
    closed_us, ended_us = closed.released_us or 0, life.ended_us or 0
    for other in application.tasks.values():
        written_us = max((x.written_us for x in other.checkpoints), default=0)
        if other is task or other.is_global or written_us > closed_us - STOPS_WITHIN_US:
            continue
        for store in other.stores.values():
            for session in store.sessions:
                released_us = session.released_us or 0
                with_it = session.opened_us < ended_us and abs(released_us - ended_us) <= SAME_END_US
                if with_it and released_us - closed_us >= BEFORE_THE_KILL_US and session.closed is False:
                    return True
    return False


def _tell(
    case: Case, task: Task, store: Store, before: Session, after: Session, life: ProcessLife
) -> Verdict:
    released_us, ended_us = before.released_us or 0, life.ended_us or 0
    assert case.application is not None
    return Verdict(
        subject=f"kill@{ended_us}",
        opened_at_us=after.opened_us,
        summary=(
            f"Task {task.id} was closed with a fresh offset {seconds(ended_us - released_us)} before its process"
            " was killed, and was reopened without a wipe: if it was closed as corrupted, uncommitted data is in it."
        ),
        evidence=(
            Evidence(before.opened_us, f"store {store.name} opened", where(task, store)),
            Evidence(
                released_us, "closed, with an offset written right before; its siblings were held", task.path
            ),
            Evidence(
                ended_us, "the process ended, its other tasks without a close", f"{case.application.id}/.lock"
            ),
            Evidence(after.opened_us, "the same incarnation opened again, no wipe", where(task, store)),
        ),
        severity=Severity.WARNING,
        confidence=Confidence.SUSPECTED,
        identity=store.identity,
        affected=case.affected(INTERRUPTED_WIPE),
        missing_facts=("aborted transactions in the changelog",),
    )
