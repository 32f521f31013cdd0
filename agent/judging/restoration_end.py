"""Where a restoration ended: the checkpoint that no longer moves, and how sure it is that it was the last one."""

from __future__ import annotations

from dataclasses import dataclass

from agent.inventory.model import CLOSES_WITHIN_US, CheckpointClaim, CheckpointFact, Session, Store, Task
from agent.judging.base import Fact, TaskCase, Truth
from agent.judging.role import let_commits_pass, may_be_on_the_way, moved_by, was_deleted_in
from agent.quantities.changelog import TEN_THOUSAND
from agent.quantities.flushed import commits_passed, due_flush

UNCHANGED_US = 500_000
"""The checkpoint at the end of the restoration no longer moves; one that is written on the way (removal, a standby that
becomes active) is replaced or deleted within milliseconds (seen live: 0.26 s)."""
UNCHANGED_BESIDE_STANDBYS_US = 10_000_000  # up to 2.6 a standby writes at every commit, also on its way
UNCHANGED_ALONE_US = 300_000_000
"""Without any work after it a checkpoint may be that of a paused restoration: five minutes without either."""
RESTORING_US = 30_000_000
"""The first commit after an opening writes a checkpoint, too: what was left then is restored within this time."""
WORKED_US = 1_000_000  # a flush that a checkpoint follows at once belongs to that checkpoint


@dataclass(frozen=True, slots=True)
class RestorationEnd:
    """A checkpoint at which a restoration ended."""

    offset: int  # its entry for the store
    # more than 10,000 records were flushed after it without another; otherwise the restoration may have been
    # paused there, or be stalled (with its thread, beside others that work), or on 2.6 be that of a copy that warms up
    certain: bool


def restoration_end(case: TaskCase, task: Task, store: Store, after: Session) -> RestorationEnd | None:
    """Return the checkpoint with which the restoration of a session ended; None = not known.

    While it restores, a task writes checkpoints, too: by the commit timer, and whenever it is paused, removed or
    recycled, where a store that was not started says "unknown". They say how far it came, not where the changelog ends.
    So only the last one counts, that of a close aside: the end of a restoration writes one, and nothing until then
    leaves it standing for certain but a task that flushes more than 10,000 records while commits go by.

    Source:
        DefaultStateUpdater.pauseTask, maybeCompleteRestoration, maybeCheckpointTasks (3.8.0 to 4.2.1);
        StandbyTask.commit (2.5.0) and postCommit (2.6.1): written whenever the offsets changed;
        HighAvailabilityTaskAssignor (2.6.0).
    """
    end_us = case.now_us if after.released_us is None else after.released_us
    fact = _last_before_the_close(task, store, after, end_us)
    if fact is None:
        return None
    offset, until_us = fact.offsets[store.name], min(fact.ended_us or end_us, end_us)
    unchanged_us = case.passed_us(fact.written_us, until_us)
    alone = case.number_in("num_standby_replicas", after) == 0
    rare = case.says(Fact.TEN_THOUSAND_RULE) is Truth.YES
    if was_deleted_in(fact, after.released_us):
        return None
    if unchanged_us < (UNCHANGED_US if alone or rare else UNCHANGED_BESIDE_STANDBYS_US):
        return None
    due_us = due_flush(
        store, CheckpointClaim(fact.written_us, offset, store.puts_at(fact.written_us)), case.profile
    )
    passing = may_be_on_the_way(task, fact, after.opened_us)
    if due_us is not None and _commits_passed(case, due_us, until_us, passing=passing):
        certain = not passing or let_commits_pass(case, due_us, until_us, alone=True)
        return RestorationEnd(offset, certain)
    if moved_by(task, fact) > TEN_THOUSAND or (rare and _ends_leave_none(case)):
        return None
    if case.says(Fact.PAUSE) is Truth.NO:
        # A standby, and a copy of 2.6 that warms up unannounced, writes at every commit, however far it is; one that
        # is held up (brokers are away) writes none, for any time.
        return RestorationEnd(offset, certain=alone and case.says(Fact.BULK_LOAD_REOPEN) is not Truth.NO)
    if passing and not (alone and unchanged_us >= RESTORING_US):
        return None  # a standby goes on from there without another one, for up to 10,000 records
    if _was_worked_after(store, after, fact, until_us) or _is_alone(case, store, after, fact):
        return RestorationEnd(offset, certain=False)
    return None


def _commits_passed(case: TaskCase, due_us: int, until_us: int, *, passing: bool) -> bool:
    """Time is enough where no timer can have written the checkpoint: a process that is frozen half way writes none."""
    if passing:
        return let_commits_pass(case, due_us, until_us)
    return due_us <= until_us and commits_passed(case.settings, case.passed_us(due_us, until_us))


def _ends_leave_none(case: TaskCase) -> bool:
    """Return whether an active task has no checkpoint once it runs: then one that stays is not of a restoration's end.

    It is a standby's: its first commit writes one whatever it restored, and a removal or a pause writes one half way.

    Source:
        StreamTask.completeRestoration (2.7.0 to 3.7.2; 4.2.2 deletes it).
    """
    kept = (case.says(Fact.CHECKPOINT_KEPT_IN_RUNNING), case.says(Fact.CHECKPOINT_KEPT_AT_RESUME))
    return kept == (Truth.NO, Truth.NO)


def _last_before_the_close(task: Task, store: Store, after: Session, end_us: int) -> CheckpointFact | None:
    closes_us = end_us if after.released_us is None else end_us - CLOSES_WITHIN_US
    return next(
        (
            fact
            for fact in reversed(task.checkpoints)
            if store.name in fact.offsets and after.opened_us <= fact.written_us <= closes_us
        ),
        None,
    )


def _was_worked_after(store: Store, after: Session, fact: CheckpointFact, until_us: int) -> bool:
    """New data reached the disk while it did not move, or the session closed cleanly further on."""
    flushed = any(
        fact.written_us < at_us <= until_us - WORKED_US
        for database in store.databases.values()
        for _, at_us in database.flushed
    )
    last = after.last
    went_on = last is not None and last.at_us > fact.written_us and last.offset > fact.offsets[store.name]
    return flushed or (after.closed is True and went_on)


def _is_alone(case: TaskCase, store: Store, after: Session, fact: CheckpointFact) -> bool:
    """It did not move until the process ended without a close, or closed there, or has not moved for minutes."""
    until_us = case.now_us if after.released_us is None else after.released_us
    last = after.last
    if after.closed and last is not None:
        return last.offset == fact.offsets[store.name]
    if fact.ended_us is not None and fact.ended_us < until_us:
        return False
    least_us = UNCHANGED_ALONE_US if after.released_us is None else UNCHANGED_BESIDE_STANDBYS_US
    return case.passed_us(fact.written_us, until_us) >= least_us
