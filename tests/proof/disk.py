"""What a file system shows of a task when Kafka Streams flushes, commits, closes and deletes: 2.6 to 4.4."""

from __future__ import annotations

from tests.proof.eras import MANY_OFFSETS, Era
from tests.proof.life import (
    EXPOSED,
    GONE,
    GONE_ALONE,
    NOBODY,
    NONE,
    RESTORING,
    RUNNING,
    STANDBY,
    UNKNOWN,
    Life,
    Word,
    missing,
    size,
    told,
    uncommitted,
)

OPENED: Word = ("open", False)
"""The stores are opened; whether a checkpoint is deleted then."""


def flushed(era: Era, life: Life) -> tuple[Word, Life]:
    """The memtable goes to disk: amounts, and the life after it.

    RocksDBStore.openDB (4.3.1) turns on atomic flushes: the offset, and that the store is open, go with the data. Puts
    before the offset, the offset, puts after it.
    """
    after = life._replace(disk=life.disk | life.memory, memory=NONE, late=NONE, offset=None)
    if not era.in_store:
        return (size(life, life.memory),), after
    if life.offset is not None:
        after = after._replace(checkpoint=None if life.offset in (GONE, GONE_ALONE) else life.offset)
    late = life.late if life.offset is not None else NONE
    amounts = (size(life, life.memory - late), life.offset, size(life, late))
    return amounts, after._replace(status=1 if era.status and has_database(era, life) else None)


def checkpointed(era: Era, life: Life) -> tuple[tuple[Word, ...], Life]:
    """AbstractTask.maybeCheckpoint (2.7.0 to 4.2.1): the store is flushed, then `.checkpoint` replaced.

    StreamTask.checkpointableOffsets: what the recorder knows comes first; up to 3.6.1 a revived task's still knows what
    it sent before the wipe (KAFKA-16017). 4.3.1: ProcessorStateManager.commit puts the offset into the memtable.
    """
    known = claimed(life)
    is_told = known >= 0 or (era.next_offset and life.role != STANDBY and known != UNKNOWN)
    value = known if is_told else UNKNOWN
    if era.in_store:
        return (), committed(era, life, value)
    (puts,), life = flushed(era, life)
    if missing(life._replace(position=value)):
        life = told(life, EXPOSED)
    told_as = value + 1 if era.next_offset and is_told else value
    return (("ckpt", told_as, puts),), life._replace(checkpoint=value, snapshot=max(life.position, 0))


def claimed(life: Life) -> int:
    """Give the offset of which a checkpoint knows; -1 = of none."""
    if life.recorded is not None:
        return max(life.recorded, life.position)
    return life.opened if life.forgot else life.position


def committed(era: Era, life: Life, offset: int) -> Life:
    """AbstractColumnFamilyAccessor.commit (4.4.0): what a transaction's buffer holds, then the offset, or its end."""
    if not has_database(era, life):
        return life
    return life._replace(memory=life.memory | life.buffer, buffer=NONE, offset=offset, late=NONE)


def flushed_at_commit(era: Era, life: Life) -> tuple[tuple[Word, ...], Life]:
    """StreamTask.commit: up to 2.5 stores are flushed under exactly-once, too (2.0.1, 2.5.1)."""
    if not (era.old and era.eos and life.memory):
        return (), life
    amounts, life = flushed(era, life)
    return (("flush", *amounts),), life


def marked_corrupted(era: Era, life: Life) -> tuple[tuple[Word, ...], Life]:
    """StreamTask.postCommit(true), before a corrupted task is closed: its offset is written (3.8.0 to 4.3.1).

    AbstractColumnFamilyAccessor.wipeOffsets (4.4.0): it is marked first, and its offset is taken away.
    """
    if era.corrupted_checkpoint and (era.in_store or life.role == RUNNING):
        return checkpointed(era, life)
    if not era.in_store:
        return (), life
    return (), committed(era, life, GONE if life.buffer or life.late else GONE_ALONE)


def shut(era: Era, life: Life) -> tuple[tuple[Word, ...], Life]:
    """ProcessorStateManager.close: RocksDB flushes what waits and lets go; 4.3.1: the store says that it was closed."""
    amounts, life = flushed(era, life)
    status = 0 if era.status and has_database(era, life) else None
    return (("shut", *amounts),), let_go(life)._replace(status=status)


def let_go(life: Life) -> Life:
    """Nobody has the task: what was in memory is gone."""
    return life._replace(
        role=NOBODY, memory=NONE, late=NONE, buffer=NONE, offset=None, position=-1, snapshot=0, recorded=None,
        paused=False, opened=-1, forgot=False,
    )  # fmt: skip


def emptied(life: Life, *, directory: bool) -> Life:
    """The directory's content is gone."""
    return life._replace(
        directory=directory, store=directory, disk=NONE, memory=NONE, checkpoint=None, status=None, offset=None,
        late=NONE, buffer=NONE, segment=False,
    )  # fmt: skip


def has_database(era: Era, life: Life) -> bool:
    """A windowed store has none before its first record: nothing holds an offset, or says that it was closed."""
    return life.store and (life.segment or not era.windowed)


def with_segment(era: Era, life: Life) -> tuple[tuple[Word, ...], Life]:
    """AbstractSegments.getOrCreateSegmentIfLive (2.5.1 to 3.9.0): the first record makes a database.

    getWriteBatches (2.1.1, 2.5.1): a restoration opens it again at once, for bulk loading; so does a standby up to
    2.5.0, for which that mode never ends.
    """
    if not era.windowed or life.segment:
        return (), life
    loads = era.reopens and (life.role == RESTORING or (life.role == STANDBY and era.loads_standbys))
    reopened: tuple[Word, ...] = (("reopen", 0),) if loads else ()
    return (("segment",), *reopened), life._replace(segment=True)


def is_due(era: Era, life: Life) -> bool:
    """StateManagerUtil.checkpointNeeded (2.7.0 to 4.2.1); the first is compared with nothing. 4.3.1: always."""
    moved = life.position - life.snapshot
    return era.in_store or moved > (0 if era.every_change else MANY_OFFSETS)


def has_offset(era: Era, life: Life) -> bool:
    """OffsetCheckpoint.read: what a start would go on from; up to 2.5 there is no word for unknown (2.5.1)."""
    return life.checkpoint is not None and not (era.next_offset and life.checkpoint == UNKNOWN)


def is_refused(era: Era, life: Life) -> bool:
    """RocksDBStore.openDB (4.3.1): exactly-once does not open a store that was not closed."""
    return era.eos and life.status == 1


def is_trusted(era: Era, life: Life) -> bool:
    """A start would keep what is on disk, whoever wrote it: it was never committed."""
    kept = has_offset(era, life) or not (era.wiped_without_offset and era.wiped_standby)
    return kept and not is_refused(era, life) and bool(uncommitted(life))
