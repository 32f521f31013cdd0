"""Up to 2.5: how a task is assigned (a store is wiped, a restoration reopens it), suspended and closed."""

from __future__ import annotations

from collections.abc import Iterator

from tests.proof.disk import (
    checkpointed,
    emptied,
    flushed,
    flushed_at_commit,
    has_database,
    has_offset,
    let_go,
    shut,
    with_segments,
)
from tests.proof.eras import Era
from tests.proof.life import (
    COMMITTED,
    DAMAGED,
    FEW,
    NOBODY,
    RESTORING,
    RUNNING,
    STANDBY,
    SUSPENDED,
    UNKNOWN,
    Life,
    Move,
    Word,
    applied,
    end,
    resolved,
    to_apply,
    told,
    trusted,
)

Seen = tuple[Word, ...]


def is_assigned_up_to_2_5(era: Era, life: Life) -> Iterator[Move]:
    """ProcessorStateManager and StandbyTask.initializeStateStores, StoreChangelogReader.initialize (2.0.1 to 2.5.1).

    The constructor deletes the checkpoint under exactly-once. A store without an entry is wiped, an active one only
    where its changelog has an end. A restoration reopens the store (RocksDBStore.toggleDbForBulkLoading); where there
    is nothing to restore the task runs.
    """
    opened: Word = ("open", era.deleted_at_init and life.checkpoint is not None)
    known = life.checkpoint if life.checkpoint is not None and life.checkpoint >= 0 else -1
    made = life._replace(directory=True, store=True, position=known)
    made = made._replace(checkpoint=None) if era.deleted_at_init else made
    if life.store:
        yield Move("assigned, killed at once", (opened, ("kill",)), made._replace(alive=False, position=-1))
    for role in (RESTORING, STANDBY):
        seen: Seen = (opened,)
        after = made._replace(role=role)
        wipes = era.wiped_standby if role == STANDBY else era.wiped_without_offset and end(life.log) >= 0
        wipes = wipes and not has_offset(era, life)
        if wipes:
            seen, after = (*seen, ("wipe",)), emptied(after, directory=True)
        after = trusted(after, eos=era.eos)
        if role == STANDBY:
            again = after.position if era.reads_again else -1
            yield Move("assigned as a standby", seen, after._replace(opened=again))
            continue
        loaded = life.checkpoint if life.checkpoint is not None and has_offset(era, life) else UNKNOWN
        after = after._replace(opened=loaded)
        if end(life.log) > known:
            if wipes:
                yield Move("assigned, revoked at once", (*seen, ("shut", 0)), let_go(after))
            begun = (*seen, ("reopen", 0)) if era.reopens and has_database(era, after) else seen
            yield Move("assigned", begun, after)
            if life.remembered:
                yield from _taken_for_restored(era, seen if wipes else begun, after, wiped=wipes)
        else:
            yield Move("assigned, runs", seen, after._replace(role=RUNNING, remembered=era.remembers))


def restored_up_to_2_5(era: Era, seen: Seen, life: Life) -> Move:
    """RocksDBStore.toggleDbForBulkLoading (2.0.1, 2.5.1); the offset is where the changelog ended."""
    if era.reopens and has_database(era, life):
        (puts,), life = flushed(era, life)
        seen = (*seen, ("reopen", puts))
    after = life._replace(role=RUNNING, position=end(life.log), remembered=era.remembers)
    return Move("restored, runs", seen, after)


def _taken_for_restored(era: Era, seen: Seen, life: Life, *, wiped: bool) -> Iterator[Move]:
    """StoreChangelogReader.restore, AssignedTasks.updateRestored (2.1.1): the thread has completed it before.

    One poll is applied at most; nothing after a wipe, which has it initialized again.
    """
    todo = to_apply(life)
    lacks = told(life, DAMAGED) if todo else life
    yield Move("assigned, taken for restored", seen, lacks._replace(role=RUNNING))
    if not wiped and len(todo) > 1 and life.log[todo[0]].records == FEW:
        more, made = with_segments(era, lacks, todo[:1])
        some = applied(made, todo[:1])
        yield Move("assigned, restores some, taken for restored", (*seen, *more), some._replace(role=RUNNING))


def is_suspended_up_to_2_5(era: Era, life: Life, _: int) -> Iterator[Move]:
    """StreamTask.suspend and resume (2.1.1, 2.3.1, 2.5.1): under exactly-once up to 2.1 no checkpoint is written.

    TaskManager.suspendTasksAndState (2.3.1) resets the changelog reader, ProcessorStateManager.clearCheckpoints what
    was written: a task that has not written is left with the offset that it loaded when it was made.
    """
    if life.role == RUNNING and era.old:
        life = resolved(life, COMMITTED, marker=era.eos)
        writes_none = era.closes_first and era.eos
        seen, after = flushed_at_commit(era, life) if writes_none else checkpointed(era, life)
        yield Move("suspended", seen, after._replace(role=SUSPENDED))
    if life.role == SUSPENDED and era.old:
        after = life._replace(role=RUNNING, forgot=era.eos and life.recorded is None)
        if era.eos and life.checkpoint is not None:
            yield Move("resumed after a rebalance", (("delck",),), after._replace(checkpoint=None))
        else:
            yield Move("resumed after a rebalance", (), after)


def is_closed_up_to_2_5(era: Era, life: Life, _: int) -> Iterator[Move]:
    """TaskManager.suspendTasksAndState, closeNonAssignedSuspendedTasks and shutdown (2.1.1, 2.3.1, 2.5.1)."""
    if life.role == NOBODY or not era.old:
        return
    life = resolved(life, COMMITTED, marker=era.eos)
    seen, after = _closed(era, life, stops=False)
    yield Move("revoked, closed", seen, after)
    seen, after = _closed(era, life, stops=True)
    yield Move("stopped", (*seen, ("exit",)), after._replace(alive=False))


def _closed(era: Era, life: Life, *, stops: bool) -> tuple[Seen, Life]:
    """StreamTask.close, closeSuspended and closeStateManager, StandbyTask.suspend and close.

    A restoring task writes nothing when it is revoked. When it is stopped its commit fails under exactly-once, for want
    of a transaction: what was written is deleted (2.5.1), or none was (2.1.1); so does that of a suspended task, whose
    producer is closed (2.1.1).
    """
    seen: Seen = ()
    if life.role == RESTORING and not stops:
        return shut(era, life)
    if life.role in (RESTORING, SUSPENDED) and stops and era.eos and era.closes_first:
        return shut(era, life)
    if life.role == SUSPENDED and not era.closes_first:
        return shut(era, life)
    if life.role == STANDBY and era.suspends_standbys and not stops:
        seen, life = checkpointed(era, life)
    by_commit = (
        life.role == STANDBY or not era.closes_first or (not era.eos and (life.role != SUSPENDED or stops))
    )
    if by_commit:
        words, life = checkpointed(era, life)
        seen += words
    if era.closes_first:
        words, after = _written_at_last(era, life)
    else:
        words, after = shut(era, life)
    if life.role == RESTORING and era.eos:
        words, after = (("dirty", words[0][1]),), after._replace(checkpoint=None)
    return (*seen, *words), after


def _written_at_last(era: Era, life: Life) -> tuple[Seen, Life]:
    """ProcessorStateManager.close (2.0.1, 2.1.1): the checkpoint follows when the stores are closed."""
    (puts,), life = flushed(era, life)
    ((_, offset, _nothing),), life = checkpointed(era, life)
    return (("ended", puts, offset),), let_go(life)


def reads_again(era: Era, life: Life, _: int) -> Iterator[Move]:
    """StandbyTask.checkpointedOffsets, TaskManager.assignStandbyPartitions (2.1.1, 2.4.1): a rebalance seeks back.

    ProcessorStateManager.standbyRestoredOffsets says what was read before until a record is applied again.
    """
    if not era.reads_again or life.role != STANDBY:
        return
    seen, life = checkpointed(era, life) if era.suspends_standbys else ((), life)
    if life.position > life.opened:
        life = life._replace(position=life.opened, recorded=life.position, snapshot=max(life.opened, 0))
    elif not seen:
        return
    yield Move("a rebalance: reads again", seen, life)
