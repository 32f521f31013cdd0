"""Detector `frozen-checkpoint`: much was flushed, yet the checkpoint does not move.

Fires under at-least-once up to 4.2 when more than 10,000 records were flushed since the last checkpoint of a session
and several commit intervals have passed: the 10,000 rule was due. A crash then replays all of it.
Stays quiet before the first checkpoint of a session (a long restoration up to 3.4 writes none), and where puts may be
two or three a record (versioned and indexed stores) until there are enough for any kind.
"""

from __future__ import annotations

from collections.abc import Iterable

from agent.contract.events import Affected, Confidence, Level, Severity
from agent.contract.units import Twin
from agent.inventory.model import CheckpointClaim, Session, Store
from agent.judging.base import DetectorMeta, Evidence, Kind, Scope, TaskCase, Verdict
from agent.judging.wording import assumptions, checkpoint_of, last_mark, where
from agent.layout.facts import Fact
from agent.layout.profile import Truth
from agent.quantities.flushed import due_flush

META = DetectorMeta(
    id="frozen-checkpoint",
    title="Checkpoint does not move while data is flushed",
    level=Level.EXPOSURE,
    severity=Severity.WARNING,
    kind=Kind.CONDITION,
    scope=Scope.TASK,
    needs=("processing_guarantee", "commit_interval_ms"),
    exactly_once=False,
    next_action=(
        "Nothing is lost: a crash replays everything since that checkpoint. Find the stream thread that does not"
        " commit (application log, thread state); stop the instance cleanly and start it again."
    ),
    consequence="A crash now costs a replay of everything since that checkpoint.",
    twin=Twin("N1, a clean start that goes on writing checkpoints", "benign-restart-alos-2.8.2"),
    silent_where=((Fact.OFFSETS_IN_STORE, Truth.YES),),
)

COMMITS_MISSED = 5


def judge(case: TaskCase) -> Iterable[Verdict]:
    """Judge one task.

    Source:
        AbstractTask.OFFSET_DELTA_THRESHOLD_FOR_CHECKPOINT (2.7+); up to 2.6 every commit writes.
    """
    task = case.task
    if case.is_silent(META):
        return
    interval_ms = case.settings.assumed("commit_interval_ms") or 1
    for store in task.stores.values():
        session = store.session
        mark = session.last if session is not None else None
        if session is None or mark is None:
            continue
        due_us = due_flush(store, mark, case.profile)
        if due_us is not None and case.waited_us(due_us) > COMMITS_MISSED * interval_ms * 1_000:
            yield _verdict(case, store, session, mark, due_us)
            return


def _verdict(case: TaskCase, store: Store, session: Session, mark: CheckpointClaim, due_us: int) -> Verdict:
    task, beyond = case.task, store.puts - mark.puts
    may_restore = _may_restore(case)
    needed = (
        "commit_interval_ms",
        *(("num_standby_replicas",) if _writes_none_while_restoring(case) else ()),
    )
    sure = all(case.settings.is_configured(name) for name in needed) and not may_restore
    return Verdict(
        subject=str(mark.at_us),
        opened_at_us=due_us,
        summary=(
            f"Task {task.id}: {beyond} puts of store {store.name} were flushed since its last checkpoint, which"
            " does not move; a crash would replay them all."
        ),
        evidence=(
            last_mark(task, session),
            Evidence(due_us, f"flushes beyond it: {store.puts} puts on disk", where(task, store)),
            Evidence(due_us, "no newer checkpoint", checkpoint_of(task)),
            *assumptions(case, due_us, *needed),
        ),
        severity=Severity.INFO if may_restore else Severity.WARNING,
        confidence=Confidence.CONFIRMED if sure else Confidence.SUSPECTED,
        affected=Affected.NO,
    )


def _may_restore(case: TaskCase) -> bool:
    """Up to 3.4 a restoration writes no checkpoint, and a standby that becomes active restores in the same session."""
    return _writes_none_while_restoring(case) and (case.settings.number("num_standby_replicas") or 0) > 0


def _writes_none_while_restoring(case: TaskCase) -> bool:
    return case.says(Fact.CHECKPOINT_AT_RESTORE_END_ALOS) is not Truth.YES
