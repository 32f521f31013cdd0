"""The timeline of a database's flushes: what was on disk when, exactly at the times of checkpoints."""

from __future__ import annotations

from collections.abc import Sequence

from agent.contract.events import Source
from agent.inventory.observations import DatabaseReading, Flush
from agent.inventory.stores import FLUSHES_KEPT, CheckpointClaim, Database, Store
from agent.inventory.timeline import Flushed, Timeline


def apply_flushes(store: Store, database: Database, reading: DatabaseReading) -> None:
    """Take what was flushed since the last reading, and date the checkpoints of the session by it."""
    if reading.later != database.later:  # the same file keeps the time at which it was found
        database.later = reading.later
    marks = _marks(store)
    marked_us = tuple(mark.at_us for mark in marks)
    floor = database.seen_us or reading.identity_born_us
    database.newest_flush = max(
        [x.number for x in reading.flushes if not x.compacted], default=database.newest_flush
    )
    # Of a store that is watched it is known what was flushed: what was given out beyond that at a crash is gone.
    if not database.seen_us or reading.source is Source.BASELINE:
        _raise_puts(database, reading.zeroed_puts, floor, marks, reading.at_us)
    for flush, by_us in zip(reading.flushes, _latest(reading), strict=True):
        if flush.sequence > database.puts:
            _doubt(database, marks, _append_flush(database, flush, floor, marked_us), by_us)
            database.puts = flush.sequence
    _raise_puts(database, reading.puts, floor, marks, reading.at_us)
    for mark in marks:  # a flush can be seen after the checkpoint that followed it
        mark.puts = max(mark.puts, store.puts_at(mark.at_us))


def _marks(store: Store) -> tuple[CheckpointClaim, ...]:
    session = store.sessions[-1] if store.sessions else None
    marks = (session.first, session.last) if session is not None else ()
    return tuple(mark for mark in marks if mark is not None)


def _raise_puts(
    database: Database, puts: int, at_us: int, marks: tuple[CheckpointClaim, ...], by_us: int
) -> None:
    """Take down what no file's time shows."""
    if puts > database.puts:
        _remember(database, (puts, at_us), tuple(mark.at_us for mark in marks))
        _doubt(database, marks, at_us, by_us)
        database.puts = puts


def _latest(reading: DatabaseReading) -> list[int]:
    """Return until when each flush was written, at the latest.

    A file is written once its flush or compaction is done, and flushes are written in their order.
    """
    times = []
    by_us = reading.at_us
    for flush in reversed(reading.flushes):
        by_us = min(by_us, flush.written_at_us or by_us)
        times.append(by_us)
    return times[::-1]


def _doubt(database: Database, marks: tuple[CheckpointClaim, ...], since_us: int, by_us: int) -> None:
    """Note that a checkpoint was written in a time in which something was flushed, before or after it."""
    if by_us > since_us:
        database.undated_us = max(database.undated_us, by_us)
        for mark in marks:
            mark.unsure |= since_us <= mark.at_us < by_us


def _append_flush(database: Database, flush: Flush, floor_us: int, marked_us: tuple[int, ...]) -> int:
    """Add a flush; return when it was written, at the earliest."""
    # A file that is gone already was written some time since the last reading, and what went into a compaction's
    # output was written before it: the earliest possible time never makes a flush seem younger than a checkpoint
    # that it preceded.
    known = None if flush.compacted else flush.written_at_us
    at_us = floor_us if known is None else known
    last = database.flushed[-1][1] if database.flushed else 0
    _remember(database, (flush.sequence, max(at_us, last)), marked_us)
    return max(at_us, last)


def _remember(database: Database, flush: Flushed, marked_us: tuple[int, ...]) -> None:
    """Add a flush; where there is no more room, one goes that no checkpoint is compared with.

    What stays is the last flush before each checkpoint of the session and the first one after it, so that what was
    flushed beyond a checkpoint is known exactly, however many flushes followed.
    """
    known = [*database.flushed]
    if len(known) >= FLUSHES_KEPT:
        needed = {i for at_us in marked_us for i in _around(known, at_us)}
        goes = next((i for i in range(len(known)) if i not in needed), 0)
        if goes == 0:
            database.dropped_puts = known[0][0]
        del known[goes]
    database.flushed = Timeline((*known, flush))


def _around(flushed: Sequence[Flushed], at_us: int) -> tuple[int, int]:
    after = next((i for i, (_, written_us) in enumerate(flushed) if written_us > at_us), len(flushed))
    return after - 1, after
