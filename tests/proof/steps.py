"""Steps of a task: Kafka Streams 2.6 to 4.4.

Each step names its class and method, and the tag at which it was read. What differs between releases is asked of the
era. A step that an agent cannot see has no words.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

from tests.proof.disk import (
    OPENED,
    answer,
    checkpointed,
    committed,
    emptied,
    flushed,
    flushed_at_commit,
    has_database,
    is_due,
    is_refused,
    leaks,
    let_go,
    marked_corrupted,
    shut,
    shut_first,
    with_segments,
    would_lose,
)
from tests.proof.eras import MANY_OFFSETS, Era
from tests.proof.life import (
    COMMITTED,
    EXPOSED,
    LEAKED,
    NOBODY,
    OPEN,
    RESTORING,
    RUNNING,
    STANDBY,
    SUSPENDED,
    UNKNOWN,
    Block,
    Life,
    Move,
    Word,
    applied,
    beyond,
    end,
    newest_window,
    of,
    put,
    resolved,
    size,
    to_apply,
    told,
    trusted,
    turned,
    writes,
)
from tests.proof.steps_of_mishaps import is_corrupted, is_killed, is_lost
from tests.proof.steps_of_others import RECORDS, other_pod_groups, other_pod_writes
from tests.proof.steps_up_to_2_5 import (
    is_assigned_up_to_2_5,
    is_closed_up_to_2_5,
    is_suspended_up_to_2_5,
    reads_again,
    restored_up_to_2_5,
)


def moves(era: Era, life: Life, most_writes: int, *, wide: bool = False) -> Iterator[Move]:
    """Give every step that may come next; `wide`: with all transactions of other pods."""
    for step in (*STEPS, other_pod_groups) if wide else STEPS:
        yield from step(era, life, most_writes)


def applies(era: Era, life: Life, _: int) -> Iterator[Move]:
    """StoreChangelogReader.restore (2.6.0 to 4.4.0): a batch, or all that is there, goes into the memtable."""
    if life.role not in (RESTORING, STANDBY) or life.paused:
        return
    todo = to_apply(life)
    life = life._replace(recorded=None) if era.old and life.role == STANDBY else life
    if len(todo) > 1:
        seen, made = with_segments(era, life, todo[:1])
        yield Move("restores some", seen, applied(made, todo[:1]))
    if todo:
        seen, made = with_segments(era, life, todo)
        yield Move("restores all", seen, applied(made, todo))


def processes(era: Era, life: Life, most: int) -> Iterator[Move]:
    """StoreChangeLogger and RecordCollectorImpl.send: into the store, or its buffer, and towards the changelog."""
    if life.role != RUNNING or writes(life) >= most:
        return
    new, newest = frozenset({len(life.log)}), newest_window(life)
    for (word, records), window in product(RECORDS.items(), range(era.segments)):
        after = life._replace(log=(*life.log, Block(OPEN, records, window=window)))
        seen, after = with_segments(era, after._replace(position=end(after.log)), new)
        after = after._replace(buffer=life.buffer | new) if era.transactional else put(after, new)
        if era.old:
            after = after._replace(recorded=after.position)
        which = "" if window == newest else " of the next window" if window else " that are late"
        yield Move(f"processes {word} records{which}", seen, after)


def starts(era: Era, life: Life, _: int) -> Iterator[Move]:
    """KafkaStreams.start; or a process that ends without the task.

    StateDirectory.initializeStartupStores (4.3.1): opens, commits and closes what is there; it wipes nothing.
    """
    if life.alive:
        if life.role == NOBODY:
            dead = life._replace(alive=False, locked=False)
            yield Move("the process ends", (("exit",),), dead)
            yield Move("SIGKILL", (("kill",),), dead)
        return
    life = life._replace(alive=True, remembered=False)
    if not era.in_store or not has_database(era, life):
        yield Move("a process starts", (("start",),), life)
    elif leaks(era, life):
        words = (("start",), ("leaks",))
        yield Move(
            "a process starts; a segment was not closed", words, told(life, EXPOSED)._replace(role=LEAKED)
        )
    elif is_refused(era, life):
        words, after = (("start",), ("refused",)), life._replace(locked=era.keeps_locks)
        yield Move("a process starts; its store was not closed", words, after)
    else:
        offset = answer(era, life)
        corrupted = era.eos and offset is None  # the pass asks as if stores were not transactional
        if not corrupted:
            life = committed(era, life, UNKNOWN if offset is None else offset)
        (word,), after = shut(era, life)
        after = after._replace(locked=era.keeps_locks)
        yield Move("a process starts, passes over the stores", (("start",), ("pass", word[2])), after)


def is_cleaned(era: Era, life: Life, _: int) -> Iterator[Move]:
    """StateDirectory.cleanRemovedTasks (2.6.0 to 4.4.0), whole or killed on its way (`.checkpoint` goes last).

    4.3.1: at the next tick after a release (KAFKA-20805). 4.3.0: it cannot, where the start-up pass keeps the lock.
    """
    if not life.alive or life.role != NOBODY or not life.directory:
        return
    if life.locked:
        yield Move("the cleaner can't take it", (("age",),), told(life, EXPOSED))
        return
    gone = emptied(life, directory=False)
    yield Move("the cleaner removes it", (("age",), ("rm",)), gone)
    if era.hasty_cleaner and life.store:
        yield Move("the cleaner removes it at once", (("tick",), ("rm",)), told(gone, EXPOSED))
    if life.store:
        torn = emptied(life, directory=True)._replace(alive=False, store=False)
        if not era.in_store:
            torn = torn._replace(checkpoint=life.checkpoint)
            torn = told(torn, EXPOSED) if (life.checkpoint or 0) > 0 else torn
        yield Move("SIGKILL while the cleaner removes it", (("age",), ("torn",), ("kill",)), torn)


def is_assigned(era: Era, life: Life, _: int) -> Iterator[Move]:
    """StateManagerUtil.registerStateStores, ProcessorStateManager.initializeStoreOffsets (3.8.0, 4.3.1).

    Without an offset, or not closed, under exactly-once: TaskCorruptedException, StateManagerUtil.closeStateManager
    deletes the directory, the task is created again (TaskManager.closeDirtyAndRevive). Else the offset is trusted; up
    to 4.2 its file is deleted under exactly-once. 4.4.0 with transactional stores wipes for neither.
    """
    if not life.alive or life.role != NOBODY:
        return
    refused, life = is_refused(era, life), life._replace(locked=False)
    wipes = era.wiped_without_offset and life.store and (refused or answer(era, life) is None)
    if era.old:
        yield from is_assigned_up_to_2_5(era, life)
        return
    for role in (RESTORING, STANDBY):
        name = "assigned" if role == RESTORING else "assigned as a standby"
        first: tuple[Word, ...] = (("refused",),) if refused else (OPENED,)
        if era.wiped_without_offset and life.store:
            yield Move(f"{name}, killed at once", (*first, ("kill",)), life._replace(alive=False))
        if wipes:
            closed: tuple[Word, ...] = ()
            if not refused:
                seen, marked = marked_corrupted(era, life)
                closed = (*seen, *shut(era, marked)[0])
            after = emptied(life, directory=True)._replace(role=role)
            yield Move(f"{name}, wiped", (*first, *closed, ("rm",), OPENED), after)
            continue
        known = max(answer(era, life) or -1, -1)
        after = life._replace(role=role, directory=True, store=True, position=known)
        after = trusted(after, eos=era.eos)
        deletes = era.deleted_at_init and life.checkpoint is not None
        yield Move(name, (("open", deletes),), after._replace(checkpoint=None) if deletes else after)


def is_restored(era: Era, life: Life, _: int) -> Iterator[Move]:
    """DefaultStateUpdater.maybeCompleteRestoration and StreamTask.completeRestoration (3.8.0); 3.4.1: the latter only.

    Fixed releases of KAFKA-20685 delete the checkpoint when the task begins to run.
    """
    if life.role != RESTORING or life.paused:
        return
    seen, life = with_segments(era, life, to_apply(life))
    life = applied(life, to_apply(life))
    if era.old:
        yield restored_up_to_2_5(era, seen, life)
        return
    for _number in range(era.restored_checkpoints):
        words, life = checkpointed(era, life)
        seen += words
    if era.restored_checkpoints and not era.kept:
        seen, life = (*seen, ("delck",)), life._replace(checkpoint=None)
    yield Move("restored, runs", seen, life._replace(role=RUNNING))


def is_paused(era: Era, life: Life, _: int) -> Iterator[Move]:
    """DefaultStateUpdater.pauseTask (3.8.0): Task.maybeCheckpoint(true), for active and standby; resumeTask."""
    if life.role not in (RESTORING, STANDBY) or not era.pauses:
        return
    if life.paused:
        yield Move("resumed", (), life._replace(paused=False))
    else:
        seen, after = checkpointed(era, life)
        yield Move("paused", seen, after._replace(paused=True))


def timer(era: Era, life: Life, _: int) -> Iterator[Move]:
    """DefaultStateUpdater.maybeCheckpointTasks (3.8.0), StandbyTask.postCommit (3.6.2), StreamTask.postCommit."""
    may = (
        life.role == STANDBY
        or (life.role == RESTORING and era.updater)
        or (life.role == RUNNING and (not era.eos or era.transactional))
    )
    if may and not life.paused and is_due(era, life):
        seen, after = checkpointed(era, resolved(life, COMMITTED, marker=era.eos))
        yield Move("checkpoint by timer", seen, after)


def commits(era: Era, life: Life, _: int) -> Iterator[Move]:
    """TaskManager.commitTasksAndMaybeUpdateCommittableOffsets; under exactly-once no checkpoint.

    StreamTask.postCommit (4.4.0): transactional stores commit with it; `timer` does.
    """
    if (
        life.role == RUNNING
        and of(life, OPEN)
        and not era.transactional
        and (era.eos or not is_due(era, life))
    ):
        seen, after = flushed_at_commit(era, resolved(life, COMMITTED, marker=era.eos))
        yield Move("commits", seen, after)
        if era.eos and not era.old:
            log = tuple(Block(COMMITTED, x.records, 2) if x.kind == OPEN else x for x in life.log)
            yield Move("commits record by record", (), life._replace(log=log, position=end(log)))


def flushes(era: Era, life: Life, _: int) -> Iterator[Move]:
    """RocksDB: a memtable is full."""
    if life.memory:
        amounts, after = flushed(era, life)
        kept = after.checkpoint is not None and not era.in_store
        if era.eos and after.role == RUNNING and kept and beyond(after):
            after = told(after, EXPOSED)
        yield Move("flush", (("flush", *amounts),), after)
    if life.older is not None and life.older.memory:
        amounts, after = flushed(era, turned(life))
        yield Move("flush of the older segment", (("behind", *amounts),), turned(after))


def rests(era: Era, life: Life, _: int) -> Iterator[Move]:
    """Two minutes: transactions end, timers that are due go off."""
    if life.role == NOBODY:
        return
    seen: tuple[Word, ...] = ()
    if life.role == RUNNING:
        seen, life = flushed_at_commit(era, resolved(life, COMMITTED, marker=era.eos))
    for move in timer(era, life, 0):
        seen, life = move.seen, move.life
    if era.every_commit and not seen and (life.role == STANDBY or (life.role == RUNNING and not era.eos)):
        seen, life = checkpointed(era, life)
    if (
        not era.eos
        and not era.in_store
        and life.checkpoint is not None
        and size(life, beyond(life)) > MANY_OFFSETS
    ):
        life = told(life, EXPOSED)  # a crash would replay them all
    yield Move("two minutes", (*seen, ("long",)), life)


def is_closed(era: Era, life: Life, _: int) -> Iterator[Move]:
    """TaskManager.shutdown, closeTaskClean; from 3.8 on the state updater wrote a checkpoint when it gave the task up.

    DefaultStateUpdater.prepareUpdatingTaskForRemoval; a paused one has written at its pause (3.8.0).
    """
    if life.role in (NOBODY, LEAKED) or era.old:
        return
    life = resolved(life, COMMITTED, marker=era.eos)
    by_updater = era.updater and life.role in (RESTORING, STANDBY)
    writes_none = (by_updater and life.paused) or life.role == SUSPENDED
    first, life = ((), life) if writes_none else checkpointed(era, life)
    closed, gone = shut(era, life)
    yield Move("revoked, closed", first + closed, gone)
    yield Move("stopped", (*first, *closed, ("exit",)), gone._replace(alive=False))
    if life.older is not None:
        amounts, cut = shut_first(era, life)
        cut = let_go(cut)._replace(alive=False)
        cut = told(cut, EXPOSED) if would_lose(era, cut) else cut
        yield Move("SIGKILL between the closes of two segments", (*first, ("cut", *amounts), ("kill",)), cut)
    if by_updater:
        again, life = checkpointed(era, life)
        closed, gone = shut(era, life)
        yield Move("stopped", (*first, *again, *closed, ("exit",)), gone._replace(alive=False))


def is_suspended(era: Era, life: Life, _: int) -> Iterator[Move]:
    """TaskManager.handleRevocation, StreamTask.suspend and resume (2.6.1, 3.8.0): the store stays open."""
    if era.old:
        return
    if life.role == RUNNING or (life.role == RESTORING and not era.updater):
        seen, after = checkpointed(era, resolved(life, COMMITTED, marker=era.eos))
        yield Move("suspended", seen, after._replace(role=SUSPENDED))
    if life.role == SUSPENDED:
        after = life._replace(role=RESTORING)
        if era.kept_at_resume:
            yield Move("resumed after a rebalance", (), after)
        else:
            yield Move("resumed after a rebalance", (("delck",),), after._replace(checkpoint=None))


def is_recycled(era: Era, life: Life, _: int) -> Iterator[Move]:
    """StreamTask/StandbyTask.prepareRecycle, TaskManager.recycleTaskFromStateUpdater (3.8.0): store and offset stay.

    TaskManager.handleAssignment (2.6.1 to 3.7.2): an active task was suspended first, also while it restored. What its
    recorder knew of before its wipe is then where the standby reads on (ProcessorStateManager.checkpoint, 2.6.1).
    """
    was_suspended = life.role == SUSPENDED
    may = life.role in (RUNNING, STANDBY) or was_suspended or (life.role == RESTORING and era.updater)
    if era.old or not may:
        return
    life = resolved(life, COMMITTED, marker=era.eos)
    seen, after = ((), life) if life.paused or was_suspended else checkpointed(era, life)
    if was_suspended:
        after = trusted(after._replace(position=max(after.position, after.recorded or -1)), eos=False)
    if era.deleted_at_init and after.checkpoint is not None:
        seen, after = (*seen, ("delck",)), after._replace(checkpoint=None)
    role, name = (RESTORING, "promoted") if life.role == STANDBY else (STANDBY, "becomes a standby")
    yield Move(name, seen, after._replace(role=role, snapshot=0, recorded=None, paused=False))


STEPS = (
    other_pod_writes, applies, processes, starts, is_killed, is_cleaned, is_assigned, is_restored, is_paused, timer,
    commits, flushes, rests, is_closed, is_suspended, is_recycled, is_lost, is_corrupted,
    is_closed_up_to_2_5, is_suspended_up_to_2_5, reads_again,
)  # fmt: skip
