"""Active or standby? What a task's own checkpoints show under exactly-once, and whether its process was at work.

Time alone shows nothing: SIGSTOP, a paused container or virtual machine, a clock that was set, a volume that does not
answer: no commit goes by, however late it is. What the process wrote meanwhile, in whatever task, shows that it was
none of these. One thread of several may be held up by itself: only the task's own work shows that its thread was not.
"""

from __future__ import annotations

from enum import StrEnum

from agent.inventory.model import CheckpointClaim, CheckpointFact, Session, Store, Task
from agent.judging.base import Fact, TaskCase, Truth
from agent.quantities.changelog import TEN_THOUSAND, base_offset
from agent.quantities.flushed import COMMITS, LATE_US, commit_interval_us, commits_passed, due_flush


class TaskRole(StrEnum):
    """What the task was in a session."""

    ACTIVE = "active"
    UNLESS_PAUSED = (
        "active-unless-paused"  # no timer wrote its last checkpoint: a restoration's end, or a pause
    )
    ASSUMED = "assumed"  # no standbys are configured: active, or a copy that warms up
    STANDBY_LIKE = "standby-like"  # standbys are configured, and it wrote checkpoints as a standby does
    UNKNOWN = "unknown"


def was_at_work(case: TaskCase, from_us: int, until_us: int, *, alone: bool = False) -> bool:
    """Return whether anything was written in a time, both ends included: by the task, or unless `alone` by others."""
    if from_us > until_us:
        return False
    others = () if alone else (other for other in case.application.tasks.values() if other is not case.task)
    return _wrote(case.task, from_us, until_us) or any(_wrote(other, from_us, until_us) for other in others)


def let_commits_pass(case: TaskCase, since_us: int, until_us: int, *, alone: bool = False) -> bool:
    """Return whether commits went by in a time for sure: what the commit timer writes would be there.

    The process was at work when they had been due, and for as long after that as a commit may be late nothing came: one
    that had been frozen writes what is due as soon as it goes on. `alone`: the task itself was.

    Source:
        StreamThread.runOnce (2.6 to 3.7: restores, processes and commits), DefaultStateUpdater (3.8+, one for each
        thread): a call that blocks, of a processor or to a broker, holds up all tasks of its thread, and no others.
    """
    if not commits_passed(case.settings, case.passed_us(since_us, until_us)):
        return False
    due_us = since_us + COMMITS * commit_interval_us(case.settings)
    return was_at_work(case, due_us, until_us - LATE_US, alone=alone)


def _wrote(task: Task, from_us: int, until_us: int) -> bool:
    if any(from_us <= fact.written_us <= until_us for fact in task.checkpoints):
        return True
    for store in task.stores.values():
        for database in store.databases.values():
            times = (*(at_us for _, at_us in database.flushed), *database.reopened_us, database.born_us)
            if any(from_us <= at_us <= until_us for at_us in times):
                return True
    return False


def moved_by(task: Task, fact: CheckpointFact) -> int:
    """Return by how many offsets, over all stores of the task, a checkpoint moved from the one before."""
    before: dict[str, int] = {}
    for known in task.checkpoints:
        if known is fact:
            break
        before = known.offsets
    return _moved(fact, before)


def may_be_on_the_way(task: Task, fact: CheckpointFact, opened_us: int) -> bool:
    """Return whether the commit timer may have written a checkpoint: of a standby, or half way in a restoration.

    It writes when the offsets moved by more than 10,000 in all since the last one of this task object. The first
    one is compared with nothing, so that any offset above 10,000 in all is written, however little was restored.

    Args:
        task: The task.
        fact: The checkpoint.
        opened_us: When the session began in which it was written; 0 = not known.

    Source:
        StandbyTask.initializeIfNeeded, StreamTask.initializeIfNeeded (offsetSnapshotSinceLastFlush is empty),
        StateManagerUtil.checkpointNeeded (2.8.2 to 4.2.1).
    """
    before: dict[str, int] = {}
    for known in task.checkpoints:
        if known is fact:
            break
        if opened_us and known.written_us >= opened_us and known.incarnation == fact.incarnation:
            before = known.offsets
    return _moved(fact, before) > TEN_THOUSAND


def _moved(fact: CheckpointFact, before: dict[str, int]) -> int:
    return sum(base_offset(offset) - base_offset(before.get(name)) for name, offset in fact.offsets.items())


def role_of(case: TaskCase, store: Store, session: Session | None) -> TaskRole:
    """Return what a task was that flushed beyond its checkpoint in a session; the case has the profile of who wrote it.

    From 2.7 on a standby writes its checkpoint at a commit when its offsets moved by more than 10,000 in all, or when
    it is let go or paused. So one that flushed more than that, and commits went by without one, is active. One whose
    last checkpoint is below that and no longer moves was written at the end of an active task's restoration, where a
    release keeps it, or at a pause: of a standby, or half way in a restoration, and what either flushes after it is
    committed. Every release that keeps it can pause. Copies that warm up are standbys that no setting announces.

    Source:
        StateManagerUtil.checkpointNeeded, DefaultStateUpdater.maybeCompleteRestoration and pauseTask, which calls
        Task.maybeCheckpoint(true) for active and standby tasks (3.8.0 to 4.2.1); HighAvailabilityTaskAssignor (2.6.0+:
        warm-up replicas without any standbys).
    """
    standbys = case.number_in("num_standby_replicas", session)
    if case.says(Fact.TEN_THOUSAND_RULE) is not Truth.NO and session is not None:
        mark = session.last or CheckpointClaim(session.opened_us, 0, session.puts_at_open)
        due_us = due_flush(store, mark, case.profile)
        until_us = case.now_us if session.released_us is None else session.released_us
        if due_us is not None and let_commits_pass(case, due_us, until_us):
            return TaskRole.ACTIVE
    kept = case.says(Fact.CHECKPOINT_KEPT_IN_RUNNING) is not Truth.NO
    if kept and case.says(Fact.TEN_THOUSAND_RULE) is Truth.YES and _no_timer_wrote(case.task, session):
        return TaskRole.UNLESS_PAUSED
    if standbys == 0:
        return TaskRole.ASSUMED
    return TaskRole.UNKNOWN if standbys is None else TaskRole.STANDBY_LIKE


def _no_timer_wrote(task: Task, session: Session | None) -> bool:
    """No timer wrote the checkpoint, and its owner did not change: then a task was initialised, which deletes it."""
    if session is None:
        fact = task.checkpoint
        return fact is not None and not may_be_on_the_way(task, fact, 0)
    fact = _fact_of(task, session.last) if session.last is not None else None
    return (
        fact is not None
        and not was_deleted_in(fact, session.released_us)
        and not may_be_on_the_way(task, fact, session.opened_us)
    )


def was_deleted_in(fact: CheckpointFact, until_us: int | None) -> bool:
    """Return whether a checkpoint was deleted in the session that wrote it, which lasted until then (None = it lasts).

    Under exactly-once each initialisation deletes the file: an active task became a standby, or the other way round.

    Source:
        ProcessorStateManager.initializeStoreOffsetsFromCheckpoint (2.6.0 to 4.2.1).
    """
    return fact.deleted and fact.ended_us is not None and (until_us is None or fact.ended_us < until_us)


def _fact_of(task: Task, mark: CheckpointClaim) -> CheckpointFact | None:
    return next((fact for fact in reversed(task.checkpoints) if fact.written_us == mark.at_us), None)
