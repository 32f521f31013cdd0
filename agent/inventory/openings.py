"""What was on disk whenever a windowed store was opened again: taken before the opening changes it.

From 4.3 on the start-up pass of a new process writes one offset into every segment and so wipes out the difference
that shows what a crash lost.
"""

from __future__ import annotations

import re
from dataclasses import replace

from agent.inventory.disk import LockState
from agent.inventory.model import Application, Database, Store
from agent.inventory.observations import DatabaseReading, StoreOffsets
from agent.inventory.recent import recent
from agent.inventory.segments import OPENINGS_KEPT, Opening, Segment
from agent.layout import names

DELETED_BEFORE_IT = 2
"""The deletions of the offset itself, and of the position where that comes first in the order of keys."""

OPENS_WITHIN_US = 10_000_000
"""How long the opening of one store may take (recorded: up to 0.2 s a segment)."""

_STARTS = re.compile(r"[.:-](\d+)\Z", re.ASCII)


def segments_of(store: Store) -> tuple[Segment, ...] | None:
    """List the segments of a store that have an `offsets` family, oldest first.

    None where one could not be read: what is not known of it is not "nothing".
    """
    if not store.segmented:
        return ()
    found: list[Segment] = []
    for database in store.databases.values():
        if _is_unread(database):
            return None
        made = _segment(database)
        if made is not None:
            found.append(made)
    return tuple(sorted(found, key=lambda one: one.starts))


def starts_of(database: Database) -> int | None:
    """Return the number in a segment's name: by it segments are ordered, whenever they were made; None = no segment."""
    match = _STARTS.search(database.segment or "")
    return int(match[1]) if match is not None else None


def _is_unread(database: Database) -> bool:
    incomplete = database.problems or database.missing or database.offsets_unread
    return bool(incomplete) or database.manifest_problem is not None


def _segment(database: Database) -> Segment | None:
    starts = starts_of(database)
    if starts is None or database.identity is None or database.offsets is None:
        return None
    newest = database.flushed[-1][1] if database.flushed else 0
    opened = database.reopened_us[-1] if database.reopened_us else database.born_us
    return Segment(
        name=database.segment or "",
        path=database.path,
        starts=starts,
        identity=database.identity,
        born_us=database.born_us,
        opened_us=opened if database.all_reopens else None,
        manifest=database.manifest,
        has_data=database.puts > 0 or any(x != names.OFFSETS_FAMILY for x in database.families_in_use),
        offsets=database.offsets,
        offset_us=database.offset_us,
        flushed_us=max(newest, database.offset_us),
        deletes=database.deletes,
        offset_last=_is_offset_last(database),
        puts=database.puts,
        opened_sequence=database.opened_sequence,
        entries=database.entries_high
        if database.deletes is False and database.counted_puts == database.puts
        else None,
    )


def _is_offset_last(database: Database) -> bool | None:
    """Return whether the offset was written after the data; both are sequence numbers of the same database."""
    assert database.offsets is not None
    written = database.offsets.newest_sequence
    return written > database.puts if written else None


def note_opening(
    application: Application, store: Store, database: Database, reading: DatabaseReading
) -> None:
    """Keep the picture of a store whose segment the reading finds opened again; call it before the reading is taken."""
    if not store.segmented or not database.seen_us or reading.manifest is None:
        return
    opened_us = _opened_us(database, reading)
    if opened_us is None:
        return
    last = store.openings[-1] if store.openings else None
    if last is None or not _is_in(last, database):
        segments = _without_newborn(application, store, segments_of(store) or (), opened_us)
        if not segments:
            return
        last = Opening(opened_us, segments, reading.at_us)
        store.openings = recent(store.openings, last, OPENINGS_KEPT)
    if reading.opened_puts > max(database.puts, reading.zeroed_puts):
        store.openings = (*store.openings[:-1], _correct(last, database.identity, opened_us))


def _without_newborn(
    application: Application, store: Store, segments: tuple[Segment, ...], opened_us: int
) -> tuple[Segment, ...]:
    """Leave out what the opening itself made: RocksDB makes a new database where an expired segment was half deleted.

    It was born right before, after the process before had ended, and the store was not opened in between; the others
    show that it is not all of the store that is new. The end is a time of the agent's clock, which may have been set.
    """
    ended = [x.ended_us for x in application.lives if x.ended_us is not None and x.ended_us <= opened_us]
    ended_us = max(ended, default=None)
    if ended_us is None or any(x.at_us > ended_us for x in store.openings):
        return segments
    since_us = max(ended_us, opened_us - OPENS_WITHIN_US)
    return tuple(x for x in segments if x.born_us <= since_us) or segments


def note_end(store: Store, database: Database) -> None:
    """Bring a picture up to date by a reading of a segment that the opening has not come to yet.

    A close and the next opening take milliseconds: the first segment may be read when it is open again, the last one
    when it was closed. What was flushed to that one came before the opening.
    """
    last = store.openings[-1] if store.openings else None
    if last is None or not _is_in(last, database) or _is_unread(database):
        return
    made, opened_us = _segment(database), max(database.reopened_us, default=0)
    if made is not None and max(made.flushed_us, opened_us) < last.at_us:
        segments = tuple(made if x.identity == made.identity else x for x in last.segments)
        store.openings = (*store.openings[:-1], replace(last, segments=segments))


def is_read_since(store: Store, opening: Opening) -> bool:
    """Return whether everything of the store was read since an opening: before, a flush of a close may be missing."""
    return all(x.seen_us >= opening.noted_us for x in store.databases.values())


def _opened_us(database: Database, reading: DatabaseReading) -> int | None:
    """When the database was opened since the last reading; None = it was not, as far as is known."""
    new = [at_us for at_us in reading.reopened_us if at_us not in database.reopened_us]
    if new:
        return new[0]
    renewed = reading.manifest != database.manifest and database.lock is LockState.FREE
    return reading.at_us if renewed and not reading.all_reopens else None


def _is_in(opening: Opening, database: Database) -> bool:
    """Return whether an opening's picture has a database as it is known now: then it is the same opening."""
    return any(
        (one.identity, one.manifest) == (database.identity, database.manifest) for one in opening.segments
    )


def _correct(opening: Opening, identity: str | None, opened_us: int) -> Opening:
    """The reading that finds the opening also finds a flush that was not read before: it came before the opening."""
    segments = (
        replace(one, has_data=True, flushed_us=opened_us) if one.identity == identity else one
        for one in opening.segments
    )
    return replace(opening, segments=tuple(segments))


def _took_uncommitted(offsets: StoreOffsets, puts: int) -> bool:
    """Return whether the commit that took the offset away put the records of an open transaction right before it.

    A corrupted task commits its buffer without an offset: data, then the deletion of the offset, and that of the
    position before or behind it, then the new position; it is closed at once. Where the buffer was empty, the offset
    and the position of the commit before are between the last data and the deletion. A store whose changelog was
    switched off loses its offset in the same way, and goes on to put a position at every commit.

    Source:
        AbstractColumnFamilyAccessor.commit and wipeOffsets, ProcessorStateManager.commit (4.4.0).
    """
    if offsets.transactional is not True or offsets.offsets or not offsets.removed_sequence:
        return False
    is_newest = (offsets.position_sequence or 0) - offsets.removed_sequence <= DELETED_BEFORE_IT
    return is_newest and 0 < offsets.removed_sequence - puts <= DELETED_BEFORE_IT


def apply_offsets(database: Database, reading: DatabaseReading) -> None:
    """Take over the `offsets` family and the time of its last offset: a compaction makes a new file of an old one."""
    known = [row[:2] for row in database.offsets.offsets] if database.offsets is not None else []
    if reading.offsets is not None:
        now = [row[:2] for row in reading.offsets.offsets]
        if now != known or not database.offset_us:
            database.offset_us = reading.offsets.written_us
    if not reading.offsets_unread:
        database.offsets = reading.offsets
    if (
        not database.uncommitted_us
        and reading.offsets is not None
        and _took_uncommitted(reading.offsets, reading.puts)
    ):
        database.uncommitted_us = database.flushed[-1][1] if database.flushed else reading.at_us
    if reading.deletions is not None:
        database.deletes = bool(database.deletes) or reading.deletions > 0
