"""Sessions: who holds a store from when to when, what it found and what it left."""

from __future__ import annotations

from collections.abc import Iterable

from agent.inventory.closings import is_exact, keeps_unbroken
from agent.inventory.disk import LockState
from agent.inventory.model import (
    CLOSES_WITHIN_US,
    SESSIONS_KEPT,
    Application,
    Database,
    Session,
    Shape,
    Store,
    Task,
)
from agent.inventory.observations import DatabaseReading, Observation, StoreOffsets
from agent.inventory.recent import recent, same_or_new, share_numbers
from agent.inventory.stores import NO_NUMBERS
from agent.layout.checkpoint import OffsetEntry

TOO_SHORT_US = 1_000_000
"""The first reading of a session shorter than this may have come when its last write was there already."""

OPENED_TWICE_WITHIN_US = 1_000_000
"""Recorded: 10 to 20 ms; a process cannot be started again within a second."""

OUTLIVES_BY_US = 5_000_000
"""A process that ends lets go of everything within the time of a lock poll; five seconds are clearly later."""

SEEN_BEFORE_BORN_US = 1_000_000
"""A task directory is announced before its stores are made; a second covers clock and reading order."""


def opened_puts(store: Store) -> int:
    """Return what had been flushed when the current manifests of a store began."""
    return store.retired_puts + sum(x.opened_puts for x in store.databases.values())


def open_sessions(application: Application, task: Task, reading: Observation) -> None:
    """Begin a session for every store that is held and has none."""
    for store in task.stores.values():
        store.free_seen |= store.lock is LockState.FREE and task.lock is not LockState.HELD
        if store.session is None and store.lock is LockState.HELD:
            if store.sessions:
                before = store.sessions[-1]
                if _goes_on(store, before, reading.at_us):
                    before.released_us, before.closed, before.exact = None, None, False
                    continue
                before.outlived = is_outlived(application, task, before.released_us or 0)
                before.status_floors = NO_NUMBERS
            store.sessions = recent(store.sessions, _new_session(task, store, reading.at_us), SESSIONS_KEPT)
            task.walk = None


def _goes_on(store: Store, before: Session, at_us: int) -> bool:
    """A new store is opened twice within milliseconds (timestamped ones up to 3.7): that is one session.

    It is empty then: what holds data went to another thread.
    """
    soon = at_us - (before.released_us or 0) <= OPENED_TWICE_WITHIN_US
    is_new = before.created and before.last is None and not before.puts_at_release
    return soon and is_new and bool(store.identities & before.identities)


def is_outlived(application: Application, task: Task, released_us: int) -> bool:
    """Return whether the process went on after it released a task: it held others, or its own lock."""
    after_us = released_us + OUTLIVES_BY_US
    for life in application.lives:
        if life.started_us < released_us and (life.ended_us is None or life.ended_us > after_us):
            return True
    for other in application.tasks.values():
        if other is task or other.held_since_us >= released_us or other.held is None:
            continue
        if other.held or (other.released_us or 0) > after_us:
            return True
    return False


def _new_session(task: Task, store: Store, at_us: int) -> Session:
    before = store.sessions[-1] if store.sessions else None
    released_us = before.released_us if before and before.released_us else 0
    born_us = min((x.born_us for x in store.databases.values()), default=at_us)
    reopens = sorted(x for db in store.databases.values() for x in db.reopened_us if x > released_us)
    # Without an earlier session, only a store born under the agent's eyes, or provably never opened again since, is
    # known to begin with this one.
    seen_us = max(task.first_seen_us - SEEN_BEFORE_BORN_US, store.forgotten_us)
    floor_us = released_us if before else seen_us
    never_again = not reopens and store.all_reopens
    # What an earlier session was opened with was not made since, even if a clock that was set back makes it seem so.
    is_known = before is not None and bool(before.identities & store.identities)
    created = (born_us > floor_us and not is_known) or (
        before is None and never_again and not store.forgotten_us
    )
    if created:
        opened_us = born_us or at_us  # 0: it has no IDENTITY that says when
    elif reopens:
        opened_us = reopens[0] if before else reopens[-1]
    else:
        opened_us = at_us
    # Nobody heard which came first, the new store or the end of the old checkpoint: `confirm_offsets` may show it.
    heard = not created or any(x.heard for x in store.databases.values())
    known_us = max(released_us, store.forgotten_us)
    counts = heard and not (created and _in_a_wipe(task, store))
    offset = offset_in_force(task, store.name, min(opened_us, at_us), known_us) if counts else None
    # A volume that was replaced meanwhile holds another store, of which the earlier session says nothing.
    goes_on = before is not None and before.is_of(store.identities)
    # of its segments some may not have been read since
    flushed = store.retired_puts + sum(map(_puts_before, store.databases.values()))
    puts_at_open = 0 if created else before.puts_at_release if before and goes_on else flushed
    inside = len([x for x in reopens if x > opened_us])
    segments = len(store.databases)
    return Session(
        opened_us=min(opened_us, at_us),
        seen_us=at_us,
        identities=same_or_new(before.final_identities if before else frozenset(), store.identities),
        puts_at_open=puts_at_open,
        offset_at_open=offset,
        created=created,
        attached=not created and before is None and not store.free_seen,
        stored_offset_at_open=stored_offset(store),
        by_source_topic=any(x != store.name for x in _stores_of_offsets(task, store)),
        status_floors=NO_NUMBERS if created else _highest_sequences(store) or NO_NUMBERS,
        reopens=inside if segments <= 1 else 0,
        entries_at_open=_sum_known(x.entries_high for x in store.databases.values()),
        counted_at_open=counted_puts(store),
        unbroken=keeps_unbroken(before, created=created, goes_on=goes_on, opened_puts=opened_puts(store)),
    )


def _in_a_wipe(task: Task, store: Store) -> bool:
    """Return whether its owner (up to 2.5) was at a wipe when the agent came: its checkpoint is not the new store's.

    Between two openings nobody holds the store. A cleaner, which takes the task's lock, too, makes no store.
    """
    ended = store.past[-1] if store.past and not store.sessions else None
    if ended is None or ended.shape is Shape.CLEANER_WALK or ended.task_incarnation != task.incarnation:
        return False
    return task.lock is LockState.HELD and task.lock_since_us <= ended.ended_us


def _puts_before(database: Database) -> int:
    """Return what was on disk before the opening that lasts: with that its manifest begins, once it is renewed.

    A manifest from before the opening begins with what an earlier one found, and ends with what this one did. LOG is
    renamed first of all, and OPTIONS is written last.
    """
    opened_us = database.reopened_us[-1] if database.reopened_us and database.all_reopens else 0
    is_older = 0 < database.options_written_us < opened_us
    is_renewed = database.lock is LockState.HELD and not is_older
    return database.opened_puts if is_renewed else database.puts


def add_segment(store: Store, database: Database) -> None:
    """Take a segment into the session that lasts, if it was there before and is read only now."""
    session = store.session
    if session is not None and not session.created and database.born_us < session.opened_us:
        session.puts_at_open += _puts_before(database)


def _stores_of_offsets(task: Task, store: Store) -> list[str | None]:
    """Return whose changelogs the offsets in a store (4.3+) name; None for a topic that is no changelog of the task."""
    facts = [x.offsets for x in store.databases.values() if x.offsets is not None]
    parts = [name.rpartition("-") for x in facts for name, _, _ in x.offsets]
    return [
        task.store_of(OffsetEntry(topic, int(number), 0)) for topic, _, number in parts if number.isdecimal()
    ]


def _is_closed(task: Task, store: Store, session: Session) -> bool | None:
    """Return whether the session ended with a close: it wrote a checkpoint, or from 4.3 on a status, last.

    Not known where checkpoints cannot name the store: an entry names a source topic, and not the store.
    """
    if any(x.offsets_unread for x in store.databases.values()):
        return None
    markers = {key: x.offsets for key, x in store.databases.items() if x.offsets is not None}
    if markers:
        if (session.released_us or 0) - session.seen_us < TOO_SHORT_US:
            return None
        said = {_says_closed(store.databases[key], session.status_floors.get(key, 0)) for key in markers}
        return False if False in said else None if None in said else True
    if not task.names_changelog_of(store.name):
        return None
    mark, released_us = session.last, session.released_us or 0
    is_close = mark is not None and released_us - mark.at_us <= CLOSES_WITHIN_US
    return None if session.release_unseen and not is_close else is_close


def _says_closed(database: Database, floor: int) -> bool | None:
    """Return whether a status was written by a close in this session, above what was known when it began.

    A compaction right at the close zeroes the status' sequence (seen live on 4.3.0). What was flushed in the session
    took the status "open" along, so "closed" is newer; where nothing was flushed it may be the one from before.
    """
    facts = database.offsets
    if facts is not None and facts.transactional:
        return None  # nothing says that such a store was closed
    if facts is None or facts.status != 0:
        return False
    if facts.status_sequence == 0:
        return True if database.puts > floor else None
    return facts.status_sequence > floor


def wrote_offset(store: Store) -> bool | None:
    """Return whether the last close wrote an offset: between the last data and the status, in one flush.

    True also where sequence numbers were zeroed by a compaction: the order is then unknown. If only the offset was
    zeroed, data that was flushed under a higher file number is newer. None if the store holds no offset at all: it has
    no changelog, or the next start wipes it.

    Source:
        Measured on recorded 4.3.1 stores: data 3005 < offset 3008 < position 3009 < status 3010.
        ProcessorStateManager.initializeStoreOffsets (4.3.0, 4.3.1): exactly-once wipes what has no offset, and asks
        none of a store without a changelog.
    """
    known = [x.offsets for x in store.databases.values() if x.offsets is not None]
    if known and not any(x.offsets for x in known):
        return None
    for database in store.databases.values():
        facts = database.offsets
        if facts is None or facts.status is None or facts.status_sequence == 0:
            continue
        if not facts.offsets:
            return False
        newest = facts.newest_sequence
        if newest and newest < _last_put(database, facts):
            return False
        if not newest and database.newest_flush > facts.offset_file:
            return False
    return True


def _last_put(database: Database, facts: StoreOffsets) -> int:
    """Give the number of the last put of data before the last close, at most.

    Where a compaction zeroed it, what had been given out by a later opening is all that is known: position and status
    of that close are in it, and what a process after it took along when it was killed.
    """
    if database.puts <= database.file_puts:
        return database.puts
    last = min(database.puts, facts.status_sequence)
    of_close = (facts.position_sequence or 0, facts.status_sequence)
    return max(database.file_puts, last - sum(facts.newest_sequence < x <= last for x in of_close))


def took_offset(store: Store) -> bool:
    """Return whether an offset came, or may have come, with what was flushed to a store (4.3+) since its opening.

    If each one that it holds is older, it has no changelog (any more), or its restoration did not end.

    Source:
        DefaultStateUpdater.maybeCompleteRestoration (4.3.0 to 4.4.0) commits all stores before their task processes
        anything; ProcessorStateManager.commit gives no offset to a store without a changelog.
    """
    held = [x for x in store.databases.values() if x.offsets is not None and x.offsets.offsets]
    is_flushed = any(x.puts > x.opened_puts for x in store.databases.values())
    return not (held and is_flushed) or any(_may_have_newer_offset(x) for x in held)


def _may_have_newer_offset(database: Database) -> bool:
    facts, opened = database.offsets, database.opened_sequence
    if facts is None or opened is None:
        return True
    in_older_file = 0 < facts.offset_file < (database.manifest or 0)
    return not (in_older_file or 0 < facts.newest_sequence <= opened)


def stored_offset(store: Store) -> int | None:
    """Changelog offset that the store itself holds (4.3+); None if it holds none."""
    held = [o for x in store.databases.values() if x.offsets for _, o, _ in x.offsets.offsets if o >= 0]
    return max(held, default=None)


def uncovered_puts(store: Store) -> int | None:
    """Puts on disk behind the newest stored offset (4.3+); None if a compaction zeroed the order, or there is none.

    A commit puts an offset beside its data, and both families are flushed together: where data is newer than every
    stored offset, no commit came between, and each sequence number in between is a put of data.
    """
    beyond = 0
    for database in store.databases.values():
        newest = database.offsets.newest_sequence if database.offsets else 0
        if not newest:
            return None
        beyond += max(database.puts - newest, 0)
    return beyond if store.databases else None


def _sum_known(bounds: Iterable[int | None]) -> int | None:
    """Sum up bounds of live entries; None if one is not known, or there is none."""
    all_of_them = list(bounds)
    known = [each for each in all_of_them if each is not None]
    return sum(known) if known and len(known) == len(all_of_them) else None


def counted_puts(store: Store) -> int:
    """Return what had been flushed when the live entries of a store were counted."""
    return store.retired_puts + sum(x.counted_puts for x in store.databases.values())


def _highest_sequences(store: Store) -> dict[str, int]:
    """Every segment is its own database and counts for itself."""
    return {
        key: max(x.puts, x.offsets.status_sequence if x.offsets is not None else 0)
        for key, x in store.databases.items()
    }


def offset_in_force(task: Task, store_name: str, opened_us: int, released_us: int) -> int | None:
    """Return which checkpoint entry an opening of a store trusts; None = there is no entry.

    Up to 2.5 the file is read, and under exactly-once deleted, before the lock is taken: a file that went after
    `released_us` (0 = never released before; or until when nothing is known of it) was read by the new owner.
    """
    fact = task.checkpoint_at(opened_us)
    if fact is None or fact.in_walk or fact.incarnation != task.incarnation:
        return None
    if fact.deleted and (fact.ended_us or 0) < released_us:
        return None
    return fact.offsets.get(store_name)


def confirm_offsets(task: Task) -> None:
    """Take a checkpoint that is still there for the one in force when an incarnation that came unheard was made."""
    for store in task.stores.values():
        session = store.session
        if (
            store.past
            and session
            and session.created
            and session.first is None
            and session.offset_at_open is None
        ):
            session.offset_at_open = offset_in_force(task, store.name, session.opened_us, 0)


def close_sessions(task: Task, reading: Observation) -> list[Store]:
    """End the session of every store whose databases and task lock are all free; return these stores.

    Up to 2.5 a restoration closes and reopens the store under the task lock: that is no release.
    """
    if task.lock is LockState.HELD:
        return []
    ended = []
    for store in task.stores.values():
        session = store.sessions[-1] if store.sessions else None
        if session is None or store.lock in (LockState.HELD, LockState.UNKNOWN):
            continue
        if session.released_us is None:
            session.released_us = reading.at_us
            session.puts_at_release = store.puts
            session.final_identities = same_or_new(session.identities, store.identities)
            session.closed_with_offset = wrote_offset(store)
            session.entries_at_release = _sum_known(x.entries_low for x in store.databases.values())
            session.counted_at_release = counted_puts(store)
            for key, database in store.databases.items():
                newest = database.offsets.newest_sequence if database.offsets else 0
                if newest > session.status_floors.get(key, 0):
                    session.stored_offset = stored_offset(store)
            session.uncovered_puts = uncovered_puts(store)
            session.covering_offset = stored_offset(store)
            session.took_offset = took_offset(store)
            session.exact = is_exact(store)
            session.kept_offsets, session.transactional = store.keeps_offsets, store.transactional
            settle_close(task, store, session)
            marks = [mark for x in store.sessions for mark in (x.first, x.last) if mark is not None]
            share_numbers([*store.past, *store.sessions, *marks])
            ended.append(store)
        # a lock poll sees a release late; the announcement of the close, read in its turn, shows when it was
        is_of_it = isinstance(reading, DatabaseReading) and reading.place.store == store.name
        announced_us = reading.announced_us if isinstance(reading, DatabaseReading) else 0
        if is_of_it and session.opened_us <= announced_us < (session.released_us or 0):
            session.released_us = announced_us
            settle_close(task, store, session)
    return ended


def settle_close(task: Task, store: Store, session: Session) -> None:
    """Work out again whether a released session ended with a close: its checkpoint may be read after its lock."""
    if session.released_us is not None:
        session.closed = _is_closed(task, store, session)
