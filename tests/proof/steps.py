"""Steps of a task whose offsets are in a `.checkpoint`: Kafka Streams 2.6 to 4.2.

Each step names its class and method, and the tag at which it was read. What differs between releases is asked of the
era. A step that an agent cannot see has no words.
"""

from __future__ import annotations

from collections.abc import Iterator

from tests.proof.eras import MANY_OFFSETS, Era
from tests.proof.life import (
    ABORTED,
    COMMITTED,
    EXPOSED,
    FEW,
    MANY,
    NOBODY,
    NONE,
    OPEN,
    RESTORING,
    RUNNING,
    STANDBY,
    SUSPENDED,
    UNKNOWN,
    UNSENT,
    Block,
    Life,
    Move,
    Word,
    applied,
    beyond,
    end,
    of,
    resolved,
    size,
    to_apply,
    told,
    trusted,
    uncommitted,
    writes,
    written,
)

OPENED: Word = ("open", False)
"""The stores are opened; whether a checkpoint is deleted then."""
RECORDS = {"few": FEW, "many": MANY}


def moves(era: Era, life: Life, most_writes: int) -> Iterator[Move]:
    """Give every step that may come next."""
    for step in (*SHARED, *STEPS):
        yield from step(era, life, most_writes)


# -- what a file system shows of a task -------------------------------------------------------------------


def flushed(life: Life) -> tuple[int, Life]:
    """The memtable goes to disk: how many puts, and the life after it."""
    puts = size(life, life.memory)
    return puts, life._replace(disk=life.disk | life.memory, memory=NONE, late=NONE)


def checkpointed(life: Life) -> tuple[tuple[Word, ...], Life]:
    """AbstractTask.maybeCheckpoint (2.7.0 to 4.2.1): the store is flushed, then `.checkpoint` replaced.

    StreamTask.checkpointableOffsets: what the recorder knows comes first; up to 3.6.1 a revived task's still knows what
    it sent before the wipe (KAFKA-16017).
    """
    puts, life = flushed(life)
    known = life.position if life.recorded is None else max(life.recorded, life.position)
    value = known if known >= 0 else UNKNOWN
    return (("ckpt", value, puts),), life._replace(checkpoint=value, snapshot=max(life.position, 0))


def shut(life: Life) -> tuple[tuple[Word, ...], Life]:
    """ProcessorStateManager.close: RocksDB flushes what waits and lets go."""
    puts, life = flushed(life)
    return (("shut", puts),), life._replace(role=NOBODY, position=-1, snapshot=0, recorded=None, paused=False)


def emptied(life: Life, *, directory: bool) -> Life:
    """The directory's content is gone."""
    return life._replace(
        directory=directory,
        store=directory,
        disk=NONE,
        memory=NONE,
        checkpoint=None,
        status=None,
        offset=None,
        late=NONE,
    )


def is_due(era: Era, life: Life) -> bool:
    """StateManagerUtil.checkpointNeeded (2.7.0 to 4.2.1); the first is compared with nothing."""
    moved = life.position - life.snapshot
    return moved > (0 if era.every_change else MANY_OFFSETS)


# -- steps of any release ---------------------------------------------------------------------------------


def other_pod_writes(era: Era, life: Life, most: int) -> Iterator[Move]:
    """Another pod owns the task and processes: the changelog grows."""
    if life.role not in (NOBODY, STANDBY) or writes(life) >= most:
        return
    for word, records in RECORDS.items():
        yield Move(f"another pod writes {word}", (), written(life, records, COMMITTED, marker=era.eos))
    if era.eos:
        yield Move("another pod's transaction is aborted", (), written(life, MANY, ABORTED, marker=True))


def applies(era: Era, life: Life, _: int) -> Iterator[Move]:
    """StoreChangelogReader.restore (2.6.0 to 4.2.1): a batch, or all that is there, goes into the memtable."""
    if life.role not in (RESTORING, STANDBY) or life.paused:
        return
    todo = to_apply(life)
    if len(todo) > 1:
        yield Move("restores some", (), applied(life, todo[:1]))
    if todo:
        yield Move("restores all", (), applied(life, todo))


def processes(era: Era, life: Life, most: int) -> Iterator[Move]:
    """StoreChangeLogger and RecordCollectorImpl.send: into the store and towards the changelog."""
    if life.role != RUNNING or writes(life) >= most:
        return
    for word, records in RECORDS.items():
        after = written(life, records, OPEN)
        new = {len(life.log)}
        after = after._replace(memory=life.memory | new, late=life.late | new, position=end(after.log))
        yield Move(f"processes {word} records", (), after)


def starts(era: Era, life: Life, _: int) -> Iterator[Move]:
    """KafkaStreams.start; or a process that ends without the task."""
    if life.alive:
        if life.role == NOBODY:
            yield Move("the process ends", (("exit",),), life._replace(alive=False))
            yield Move("SIGKILL", (("kill",),), life._replace(alive=False))
        return
    if not era.in_store:
        yield Move("a process starts", (("start",),), life._replace(alive=True))


def is_killed(era: Era, life: Life, _: int) -> Iterator[Move]:
    """SIGKILL. The coordinator aborts what was sent; what was not sent never reaches the changelog."""
    if life.role == NOBODY:
        return
    dead = life._replace(
        alive=False, role=NOBODY, memory=NONE, position=-1, snapshot=0, recorded=None, paused=False, offset=None,
        late=NONE,
    )  # fmt: skip
    kinds = [ABORTED, UNSENT] if era.eos else [COMMITTED, UNSENT]
    for kind in kinds if of(life, OPEN) else [COMMITTED]:
        after = resolved(dead, kind, marker=era.eos and kind == ABORTED)
        if era.eos and after.checkpoint is not None and uncommitted(after):
            after = told(after, EXPOSED)
        name = "SIGKILL" if not of(life, OPEN) else f"SIGKILL; its records: {kind}"
        yield Move(name, (("kill",),), after)


def is_cleaned(era: Era, life: Life, _: int) -> Iterator[Move]:
    """StateDirectory.cleanRemovedTasks (2.6.0 to 4.4.0), whole or killed on its way (`.checkpoint` goes last)."""
    if not life.alive or life.role != NOBODY or not life.directory:
        return
    yield Move("the cleaner removes it", (("age",), ("rm",)), emptied(life, directory=False))
    if life.store:
        torn = life._replace(alive=False, store=False, disk=NONE, status=None)
        if not era.in_store and (life.checkpoint or 0) > 0:
            torn = told(torn, EXPOSED)
        yield Move("SIGKILL while the cleaner removes it", (("age",), ("torn",), ("kill",)), torn)


# -- steps of 2.6 to 4.2 ----------------------------------------------------------------------------------


def is_assigned(era: Era, life: Life, _: int) -> Iterator[Move]:
    """StateManagerUtil.registerStateStores, ProcessorStateManager.initializeStoreOffsetsFromCheckpoint (3.8.0).

    Without an offset under exactly-once: TaskCorruptedException, StateManagerUtil.closeStateManager deletes the
    directory, the task is created again. Else the offset is trusted, and under exactly-once its file deleted.
    """
    if not life.alive or life.role != NOBODY:
        return
    for role in (RESTORING, STANDBY):
        name = "assigned" if role == RESTORING else "assigned as a standby"
        if era.wiped_without_offset and life.store:
            yield Move(f"{name}, killed at once", (OPENED, ("kill",)), life._replace(alive=False))
        if era.wiped_without_offset and life.store and life.checkpoint is None:
            after = emptied(life, directory=True)._replace(role=role)
            yield Move(f"{name}, wiped", (OPENED, ("shut", 0), ("rm",), OPENED), after)
            continue
        known = life.checkpoint if life.checkpoint is not None and life.checkpoint >= 0 else -1
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
    seen: tuple[Word, ...] = ()
    life = applied(life, to_apply(life))
    for _number in range(era.restored_checkpoints):
        words, life = checkpointed(life)
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
        seen, after = checkpointed(life)
        yield Move("paused", seen, after._replace(paused=True))


def timer(era: Era, life: Life, _: int) -> Iterator[Move]:
    """DefaultStateUpdater.maybeCheckpointTasks (3.8.0), StandbyTask.postCommit (3.6.2), StreamTask.postCommit."""
    may = (
        life.role == STANDBY
        or (life.role == RESTORING and era.updater)
        or (life.role == RUNNING and not era.eos)
    )
    if may and not life.paused and is_due(era, life):
        seen, after = checkpointed(resolved(life, COMMITTED, marker=False))
        yield Move("checkpoint by timer", seen, after)


def commits(era: Era, life: Life, _: int) -> Iterator[Move]:
    """TaskManager.commitTasksAndMaybeUpdateCommittableOffsets; under exactly-once no checkpoint."""
    if life.role == RUNNING and of(life, OPEN) and (era.eos or not is_due(era, life)):
        yield Move("commits", (), resolved(life, COMMITTED, marker=era.eos))
        if era.eos:
            log = tuple(Block(COMMITTED, x.records, 2) if x.kind == OPEN else x for x in life.log)
            yield Move("commits record by record", (), life._replace(log=log, position=end(log)))


def flushes(era: Era, life: Life, _: int) -> Iterator[Move]:
    """RocksDB: a memtable is full."""
    if life.memory:
        puts, after = flushed(life)
        if era.eos and after.role == RUNNING and after.checkpoint is not None and beyond(after):
            after = told(after, EXPOSED)
        yield Move("flush", (("flush", puts),), after)


def rests(era: Era, life: Life, _: int) -> Iterator[Move]:
    """Two minutes: transactions end, timers that are due go off."""
    if life.role == NOBODY:
        return
    seen: tuple[Word, ...] = ()
    if life.role == RUNNING:
        life = resolved(life, COMMITTED, marker=era.eos)
    for move in timer(era, life, 0):
        seen, life = move.seen, move.life
    if not era.eos and life.checkpoint is not None and size(life, beyond(life)) > MANY_OFFSETS:
        life = told(life, EXPOSED)  # a crash would replay them all
    yield Move("two minutes", (*seen, ("long",)), life)


def is_closed(era: Era, life: Life, _: int) -> Iterator[Move]:
    """TaskManager.shutdown, closeTaskClean; from 3.8 on the state updater wrote a checkpoint when it gave the task up.

    DefaultStateUpdater.prepareUpdatingTaskForRemoval; a paused one has written at its pause (3.8.0).
    """
    if life.role == NOBODY:
        return
    life = resolved(life, COMMITTED, marker=era.eos)
    by_updater = era.updater and life.role in (RESTORING, STANDBY)
    first, life = (
        checkpointed(life) if not (by_updater and life.paused) and life.role != SUSPENDED else ((), life)
    )
    let_go, gone = shut(life)
    yield Move("revoked, closed", first + let_go, gone)
    yield Move("stopped", (*first, *let_go, ("exit",)), gone._replace(alive=False))
    if by_updater:
        again, life = checkpointed(life)
        let_go, gone = shut(life)
        yield Move("stopped", (*first, *again, *let_go, ("exit",)), gone._replace(alive=False))


def is_suspended(era: Era, life: Life, _: int) -> Iterator[Move]:
    """TaskManager.handleRevocation, StreamTask.suspend and resume (2.6.1, 3.8.0): the store stays open."""
    if life.role == RUNNING or (life.role == RESTORING and not era.updater):
        seen, after = checkpointed(resolved(life, COMMITTED, marker=era.eos))
        yield Move("suspended", seen, after._replace(role=SUSPENDED))
    if life.role == SUSPENDED:
        if era.kept_at_resume:
            yield Move("resumed after a rebalance", (), life._replace(role=RESTORING))
        else:
            yield Move(
                "resumed after a rebalance", (("delck",),), life._replace(role=RESTORING, checkpoint=None)
            )


def is_recycled(era: Era, life: Life, _: int) -> Iterator[Move]:
    """StreamTask/StandbyTask.prepareRecycle, TaskManager.recycleTaskFromStateUpdater (3.8.0): store and offset stay."""
    if life.role not in (RUNNING, STANDBY) and not (life.role == RESTORING and era.updater):
        return
    life = resolved(life, COMMITTED, marker=era.eos)
    seen, after = checkpointed(life) if not life.paused else ((), life)
    if era.deleted_at_init and after.checkpoint is not None:
        seen, after = (*seen, ("delck",)), after._replace(checkpoint=None)
    role, name = (RESTORING, "promoted") if life.role == STANDBY else (STANDBY, "becomes a standby")
    yield Move(name, seen, after._replace(role=role, snapshot=0, paused=False))


def is_lost(era: Era, life: Life, _: int) -> Iterator[Move]:
    """TaskManager.handleLostAll, closeTaskDirty (3.8.0): fenced; under exactly-once the directory is deleted."""
    if life.role != RUNNING or not era.eos:
        return
    let_go, after = shut(resolved(life, ABORTED, marker=True))
    yield Move("fenced, wiped", (*let_go, ("rm",)), emptied(after, directory=False))
    killed = told(after, EXPOSED) if after.checkpoint is not None and uncommitted(after) else after
    yield Move("fenced, killed before the wipe", (*let_go, ("kill",)), killed._replace(alive=False))


def is_corrupted(era: Era, life: Life, _: int) -> Iterator[Move]:
    """TaskManager.closeDirtyAndRevive (3.8.0): a commit timed out; the task is suspended, closed dirty, created again.

    With the state updater its changelogs are not marked before postCommit(true): the present offset is written. Before
    that the other tasks of the thread are committed, and with them its transaction, unless that times out, too.
    """
    if life.role != RUNNING or not era.eos:
        return
    for kind in (ABORTED, COMMITTED):
        after = resolved(life, kind, marker=True)
        seen, after = checkpointed(after) if era.corrupted_checkpoint else ((), after)
        let_go, after = shut(after)
        recorded = life.position if era.stale_recorder else None
        wiped = emptied(after, directory=True)._replace(role=RESTORING, recorded=recorded)
        yield Move(f"corrupted, its transaction {kind}, wiped", (*seen, *let_go, ("rm",), OPENED), wiped)
        killed = told(after, EXPOSED) if after.checkpoint is not None and uncommitted(after) else after
        words = (*seen, *let_go, ("kill",))
        yield Move(
            f"corrupted, its transaction {kind}, killed before the wipe", words, killed._replace(alive=False)
        )


SHARED = (other_pod_writes, applies, processes, starts, is_killed, is_cleaned)
STEPS = (
    is_assigned, is_restored, is_paused, timer, commits, flushes, rests, is_closed, is_suspended, is_recycled, is_lost,
    is_corrupted,
)  # fmt: skip
