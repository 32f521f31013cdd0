"""What was on disk whenever a windowed store was opened again: taken before the opening changes it.

From 4.3 on the start-up pass of a new process writes one offset into every segment and so wipes out the difference
that shows what a crash lost.
"""

from __future__ import annotations

import re
from dataclasses import replace

from agent.inventory.disk import LockState
from agent.inventory.model import Database, Store
from agent.inventory.observations import DatabaseReading
from agent.inventory.recent import recent
from agent.inventory.segments import OPENINGS_KEPT, Opening, Segment
from agent.layout import names

_STARTS = re.compile(r"[.:-](\d+)\Z", re.ASCII)


def segments_of(store: Store) -> tuple[Segment, ...] | None:
    """List the segments of a store, oldest first.

    Returns:
        None where one could not be read: what is not known of it is not "nothing". Empty for a store that has
        no segments, or none with an `offsets` family.
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


def _is_unread(database: Database) -> bool:
    incomplete = database.problems or database.missing_files or database.offsets_unread
    return bool(incomplete) or database.manifest_problem is not None


def _segment(database: Database) -> Segment | None:
    match = _STARTS.search(database.segment or "")
    if match is None or database.identity is None or database.offsets is None:
        return None
    newest = database.flushed[-1][1] if database.flushed else 0
    opened = database.reopened_us[-1] if database.reopened_us else database.born_us
    return Segment(
        name=database.segment or "",
        path=database.path,
        starts=int(match[1]),
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
    )


def _is_offset_last(database: Database) -> bool | None:
    """Return whether the offset was written after the data; both are sequence numbers of the same database."""
    assert database.offsets is not None
    written = max((sequence for _, _, sequence in database.offsets.offsets), default=0)
    return written > database.puts if written else None


def note_opening(store: Store, database: Database, reading: DatabaseReading) -> None:
    """Keep the picture of a store whose segment the reading finds opened again; call it before the reading is taken."""
    if not store.segmented or not database.seen_us or reading.manifest is None:
        return
    opened_us = _opened_us(database, reading)
    if opened_us is None:
        return
    last = store.openings[-1] if store.openings else None
    if last is None or not _is_in(last, database):
        segments = segments_of(store)
        if not segments:
            return
        last = Opening(opened_us, segments)
        store.openings = recent(store.openings, last, OPENINGS_KEPT)
    if reading.opened_puts > max(database.puts, reading.zeroed_puts):
        store.openings = (*store.openings[:-1], _correct(last, database.identity, opened_us))


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


def apply_offsets(database: Database, reading: DatabaseReading) -> None:
    """Take over the `offsets` family and the time of its last offset: a compaction makes a new file of an old one."""
    known = [row[:2] for row in database.offsets.offsets] if database.offsets is not None else []
    if reading.offsets is not None:
        now = [row[:2] for row in reading.offsets.offsets]
        if now != known or not database.offset_us:
            database.offset_us = reading.offsets.written_us
    if not reading.offsets_unread:
        database.offsets = reading.offsets
    if reading.deletions is not None:
        database.deletes = bool(database.deletes) or reading.deletions > 0
