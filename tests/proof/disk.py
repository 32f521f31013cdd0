"""What a file system shows of a task when Kafka Streams flushes, commits, closes and deletes: 2.6 to 4.4."""

from __future__ import annotations

from collections.abc import Iterable

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
    Part,
    Word,
    missing,
    of_window,
    size,
    told,
    turned,
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
    """AbstractColumnFamilyAccessor.commit (4.4.0): what a transaction's buffer holds, then the offset, or its end.

    AbstractSegments.commit (4.3.1): the same offset goes into every segment.
    """
    if not has_database(era, life):
        return life
    if life.older is not None:
        mine = of_window(life, life.buffer, life.window)
        behind = _committed(turned(life)._replace(buffer=life.buffer - mine), offset)
        life = turned(behind)._replace(buffer=mine)
    return _committed(life, offset)


def _committed(life: Life, offset: int) -> Life:
    ends = GONE_ALONE if offset == GONE and not (life.buffer or life.late) else offset
    return life._replace(memory=life.memory | life.buffer, buffer=NONE, offset=ends, late=NONE)


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
    return (), committed(era, life, GONE)


def shut(era: Era, life: Life) -> tuple[tuple[Word, ...], Life]:
    """ProcessorStateManager.close: RocksDB flushes what waits and lets go; 4.3.1: the store says that it was closed.

    AbstractSegments.close: the oldest segment goes first.
    """
    status = 0 if era.status and has_database(era, life) else None
    first: Word = ()
    if life.older is not None:
        first, life = shut_first(era, life)
    amounts, life = flushed(era, life)
    return (("shut", *amounts, *first),), let_go(life)._replace(status=status)


def shut_first(era: Era, life: Life) -> tuple[Word, Life]:
    """The older of two segments is closed: amounts, and the life after it."""
    amounts, behind = flushed(era, turned(life))
    return amounts, turned(behind._replace(status=0 if era.status else None))


def let_go(life: Life) -> Life:
    """Nobody has the task: what was in memory is gone."""
    older = life.older and life.older._replace(memory=NONE, late=NONE, offset=None)
    return life._replace(
        role=NOBODY, memory=NONE, late=NONE, buffer=NONE, offset=None, position=-1, snapshot=0, recorded=None,
        paused=False, opened=-1, forgot=False, older=older,
    )  # fmt: skip


def emptied(life: Life, *, directory: bool) -> Life:
    """The directory's content is gone."""
    return life._replace(
        directory=directory, store=directory, disk=NONE, memory=NONE, checkpoint=None, status=None, offset=None,
        late=NONE, buffer=NONE, segment=False, window=0, older=None,
    )  # fmt: skip


def has_database(era: Era, life: Life) -> bool:
    """A windowed store has none before its first record: nothing holds an offset, or says that it was closed."""
    return life.store and (life.segment or not era.windowed)


def with_segments(era: Era, life: Life, blocks: Iterable[int]) -> tuple[tuple[Word, ...], Life]:
    """AbstractSegments.getOrCreateSegmentIfLive (2.5.1 to 3.9.0): the first record of a segment makes a database.

    getWriteBatches (2.1.1, 2.5.1): a restoration opens it again at once, for bulk loading; so does a standby up to
    2.5.0, for which that mode never ends.
    """
    seen: tuple[Word, ...] = ()
    for window in sorted({life.log[x].window for x in blocks}) if era.windowed else ():
        if life.segment and (window == life.window or life.older is not None):
            continue
        loads = era.reopens and (life.role == RESTORING or (life.role == STANDBY and era.loads_standbys))
        seen = (*seen, ("segment", window), *((("reopen", 0),) if loads else ()))
        if life.segment:
            life = life._replace(older=Part())
            life = turned(life)._replace(window=1) if window > life.window else life
        else:
            life = life._replace(segment=True, window=window)
    return seen, life


def is_due(era: Era, life: Life) -> bool:
    """StateManagerUtil.checkpointNeeded (2.7.0 to 4.2.1); the first is compared with nothing. 4.3.1: always."""
    moved = life.position - life.snapshot
    return era.in_store or moved > (0 if era.every_change else MANY_OFFSETS)


def has_offset(era: Era, life: Life) -> bool:
    """OffsetCheckpoint.read: what a start would go on from; up to 2.5 there is no word for unknown (2.5.1)."""
    found = answer(era, life)
    return found is not None and not (era.next_offset and found == UNKNOWN)


def answer(era: Era, life: Life) -> int | None:
    """AbstractSegments.committedOffset (4.3.1): the newest segment with an offset answers; 4.3.0: the oldest one."""
    behind = life.older.checkpoint if life.older is not None else None
    asked = (behind, life.checkpoint) if era.oldest_answers else (life.checkpoint, behind)
    return next((x for x in asked if x is not None), None)


def is_refused(era: Era, life: Life) -> bool:
    """RocksDBStore.openDB (4.3.1): exactly-once does not open a store that was not closed."""
    return era.eos and 1 in (life.status, life.older and life.older.status)


def leaks(era: Era, life: Life) -> bool:
    """AbstractSegments.openExisting (4.3.1): the older segment was opened; the newer is refused, and closes nothing."""
    return is_refused(era, life) and life.older is not None and life.older.status != 1


def would_lose(era: Era, life: Life) -> bool:
    """A start would go on from the offset of one segment, and another one lacks records before it."""
    found = answer(era, life)
    if life.older is None or is_refused(era, life) or found is None:
        return False
    return bool(missing(life._replace(position=found)))


def is_trusted(era: Era, life: Life) -> bool:
    """A start would keep what is on disk, whoever wrote it: it was never committed."""
    kept = has_offset(era, life) or not (era.wiped_without_offset and era.wiped_standby)
    return kept and not is_refused(era, life) and bool(uncommitted(life))
