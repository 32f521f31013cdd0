"""File times that a copy did not keep: `kubectl cp`, `cp -r`, `rsync -r`, a sync from an object store. Pure.

Such a copy gives every file the time of the copying, in order of names, so the order of a checkpoint and of a store's
making is lost. What RocksDB wrote into its files, and `LOG.old.<us>`, show the truth next to it.
"""

from __future__ import annotations

from agent.inventory.disk import LockState
from agent.inventory.model import Database, Task

SECOND_US = 1_000_000
"""RocksDB counts whole seconds: data of this second may be younger than it says by nearly one."""

BESIDE_US = 5_000_000
"""A database that is made where a torn deletion left a LOG renames it right before it writes its IDENTITY. A file
server's clock may be as far behind."""

NOT_OVER_US = 1 << 62


def dated(written_us: int, heard_us: int) -> int:
    """Date a file to when it was heard of, where its volume keeps whole seconds only, and that was in the same one.

    Source:
        ext4 with inodes of 128 bytes, which mke2fs up to 1.46.3 makes on volumes below 512 MiB.
    """
    is_whole = written_us % SECOND_US == 0 and 0 <= heard_us - written_us < SECOND_US
    return heard_us if is_whole else written_us


def is_copied(database: Database) -> bool:
    """Return whether the time of a database's IDENTITY is that of a copy.

    True if the database holds data older than its IDENTITY, which RocksDB writes before anything else, or younger than
    all of its files (an archive or an object store that sets all times to one). Where data shows nothing, an open long
    before the IDENTITY was written says the same.

    Source:
        DBImpl::Open writes IDENTITY for a new database; a flush writes `rocksdb.creation.time`, a compaction keeps that
        of its oldest input (flush_job.cc, compaction_job.cc, 5.7 to 10.1). Over all recorded snapshots of 2.0.0 to
        4.3.1: of 646 databases with data none is older than its IDENTITY; unpacked without times all are.
    """
    if database.oldest_data_us:
        if database.oldest_data_us + SECOND_US <= database.born_us:
            return True
        if database.lock is not LockState.FREE:  # the directory's time is asked while nobody works there
            return False
        newest_us = max(database.touched_us, database.born_us, *(at_us for _, at_us in database.flushed))
        return newest_us + BESIDE_US <= database.oldest_data_us
    return any(at_us < database.born_us - BESIDE_US for at_us in database.reopened_us)


def times_are_copied(task: Task, at_us: int) -> bool:
    """Return whether a file time of a task (of its checkpoint, of an SST) may be that of a copy, not of its writing.

    The copy was over when one of the copied stores was opened after it; what was written from then on has its own time.
    """
    copied = [x for x in task.databases if is_copied(x)]
    opened = [at_us for x in copied for at_us in x.reopened_us if at_us > x.born_us]
    return at_us <= (min(opened, default=NOT_OVER_US) if copied else 0)


def is_birth_known(task: Task, database: Database) -> bool | None:
    """Return whether the time of a database's IDENTITY is the time at which it was made; None = nothing shows it.

    Its own data decides; where it has none, the other databases of the task, which were copied with it or not.
    """
    if database.oldest_data_us:
        return not is_copied(database)
    if is_copied(database) or times_are_copied(task, database.born_us):
        return False
    return True if any(x.oldest_data_us for x in task.databases) else None
