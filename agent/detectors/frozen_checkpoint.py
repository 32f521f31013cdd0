"""Detector `frozen-checkpoint`: much was flushed, yet the checkpoint does not move.

Fires under at-least-once up to 4.2 when more than 10,000 puts were flushed since the last checkpoint of a session
and several commit intervals have passed: the 10,000 rule was due. A crash then replays all of it.
Stays quiet before the first checkpoint of a session (a long restoration up to 3.4 writes none).
"""

from __future__ import annotations

from collections.abc import Iterable

from agent.contract.events import Affected, Confidence, Level, Severity
from agent.detectors.base import Case, DetectorMeta, Evidence, Kind, Scope, Verdict
from agent.detectors.puts import DEFAULT_COMMIT_INTERVAL_MS, ROLE_PROOF_RECORDS
from agent.detectors.telling import checkpoint_of, last_mark, where
from agent.inventory.model import Session, Store, Task
from agent.layout.facts import Fact
from agent.layout.profile import Truth

META = DetectorMeta(
    id="frozen-checkpoint",
    title="Checkpoint does not move while data is flushed",
    level=Level.EXPOSURE,
    severity=Severity.WARNING,
    kind=Kind.CONDITION,
    scope=Scope.TASK,
    needs=("processing_guarantee", "commit_interval_ms"),
    next_action=(
        "Nothing is lost: a crash replays everything since that checkpoint. Look for a stream thread that does not"
        " commit (application log, thread state); restart the instance in an orderly way."
    ),
)

COMMITS_MISSED = 5


def judge(case: Case) -> Iterable[Verdict]:
    """Judge one task.

    Source:
        AbstractTask.OFFSET_DELTA_THRESHOLD_FOR_CHECKPOINT (2.7+); up to 2.6 every commit writes.
    """
    task = case.task
    assert task is not None
    if case.settings.exactly_once is not False or case.says(Fact.OFFSETS_IN_STORE) is Truth.YES:
        return
    interval_ms = case.settings.number("commit_interval_ms") or DEFAULT_COMMIT_INTERVAL_MS
    for store in task.stores.values():
        session = store.session
        if session is None or session.last is None:
            continue
        due_us = _due(store, session)
        if due_us is not None and case.now_us - due_us > COMMITS_MISSED * interval_ms * 1_000:
            yield _tell(task, store, session, due_us)
            return


def _due(store: Store, session: Session) -> int | None:
    """When the flush was written that made a new checkpoint due; None = none is due."""
    assert session.last is not None
    limit = session.last.puts + ROLE_PROOF_RECORDS
    times = [at for db in store.databases.values() for _, at in db.flushed if at > session.last.at_us]
    return min((at for at in times if store.puts_at(at) > limit), default=None)


def _tell(task: Task, store: Store, session: Session, due_us: int) -> Verdict:
    assert session.last is not None
    beyond = store.puts - session.last.puts
    return Verdict(
        subject=str(session.last.at_us),
        opened_at_us=due_us,
        summary=(
            f"Task {task.id}: {beyond} puts of store {store.name} were flushed since its last checkpoint, which"
            " does not move; a crash would replay them all."
        ),
        evidence=(
            last_mark(task, session),
            Evidence(due_us, f"flushes beyond it: {store.puts} puts on disk", where(task, store)),
            Evidence(due_us, "no newer checkpoint", checkpoint_of(task)),
        ),
        severity=Severity.WARNING,
        confidence=Confidence.CONFIRMED,
        affected=Affected.NO,
    )
