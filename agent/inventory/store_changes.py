"""Store level of the reducer: incarnations, flushes, opens, sessions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from agent.contract.events import Change, Source
from agent.inventory.bulk_load import note_bulk_load
from agent.inventory.disk import LockState, Unseen
from agent.inventory.flushes import apply_flushes
from agent.inventory.model import (
    PAST_KEPT,
    SWEPT_KEPT,
    TAKEN_KEPT,
    Application,
    Database,
    Deletion,
    PastDatabase,
    Remains,
    Session,
    Shape,
    Store,
    Task,
)
from agent.inventory.observations import ELSEWHERE, DatabaseReading, Observation, problem_kind
from agent.inventory.openings import apply_offsets, note_end, note_opening
from agent.inventory.recent import recent
from agent.inventory.sessions import add_segment, opened_puts
from agent.inventory.stores import NO_NUMBERS, WIPES_AT_ONCE_US
from agent.inventory.transitions import Transition, change_of
from agent.layout import names
from agent.layout.paths import PathRole

_PASSING = frozenset({None, Unseen.VANISHED.value, Unseen.RACED.value})
"""Why a manifest was not read that is being replaced or deleted; any other problem hides what the store holds."""
OWNER_DELETES_WITHIN_US = 2_000_000
"""An owner's wipe begins milliseconds after it closed the store (recorded: 5 to 60 ms); a cleaner waits for
`state.cleanup.delay.ms`. Two seconds leave room for a slow volume and for lock polling."""


def reduce_database(application: Application, task: Task, reading: DatabaseReading) -> list[Transition]:
    """Take a reading of one RocksDB directory: it was created, deleted, opened, flushed."""
    place = reading.place
    assert place.store is not None
    task.closed_us = max(task.closed_us, reading.announced_us)
    key = place.segment or ""
    store = task.stores.get(place.store)
    database = store.databases.get(key) if store else None
    if database is not None and reading.announced_us:
        database.closed_us, database.taken_us = reading.announced_us, 0
    _note_bare(task, reading)
    if reading.unseen is not None or reading.identity is None:
        return _without_identity(task, store, database, reading)
    if database is not None and database.identity is not None:
        reading = _as_known(task, store, database, reading)
    if reading.lock is None and _is_nobody_there(application, task):
        reading = replace(reading, lock=LockState.FREE)
    if store is None:
        segmented = place.role is PathRole.SEGMENT
        store = task.stores[place.store] = Store(place.store, segmented)
    changes: list[Transition] = []
    if database is not None and database.identity is not None and _is_new(database, reading):
        changes += _end(task, store, database, reading.identity_born_us, reading)
        if reading.identity == database.identity:  # an earlier state of it: nothing is known of who left that
            store.sessions, store.free_seen, store.forgotten_us = (), False, reading.at_us
        database = None
    is_new = database is None or database.identity is None
    if database is None or database.identity is None:
        database = store.databases[key] = Database(place.path, place.segment)
        changes.append(_begin(task, store, database, reading))
    changes += _apply_reading(application, store, database, reading)
    if reading.lock is LockState.HELD:
        # Its LOCK is there: what went was a predecessor's, and the removal was only heard of late.
        database.taken_us, task.taken = 0, tuple(x for x in task.taken if x[2] != database.path)
    if is_new and store.segmented:
        add_segment(store, database)
    return changes


def _is_nobody_there(application: Application, task: Task) -> bool:
    """Return whether no process works on a task: then a `LOCK` that is not there is one that nobody holds.

    Copies of a store (RocksDB's own backups, rsync with a filter) have none, and the next open makes it. A process
    would go on to hold one that was removed; so it would the application's own, which comes with the process file.
    """
    may_be_held = {LockState.HELD, LockState.UNKNOWN} & {application.lock, task.lock}
    removed = application.lock is None and application.process_id is not None
    return not may_be_held and not removed and not application.processes


def _note_bare(task: Task, reading: DatabaseReading) -> None:
    """Note since when a store's directory is there and has nothing of a database in it."""
    name = reading.place.store or ""
    is_bare = reading.unseen is None and reading.identity is None and not reading.leftovers
    if is_bare and reading.place.role is PathRole.STORE:
        task.bare = {name: reading.at_us, **task.bare}
    elif name in task.bare and reading.unseen in (None, Unseen.VANISHED):
        task.bare = {known: at_us for known, at_us in task.bare.items() if known != name}


def _as_known(
    task: Task, store: Store | None, database: Database, reading: DatabaseReading
) -> DatabaseReading:
    """Take a database that lost its IDENTITY, or got one again, for the one that is known, unless it is another.

    RocksDB makes a missing IDENTITY at the next open, which begins a manifest, too; the directory stays.
    """
    same = reading.inode == database.inode and (reading.manifest or 0) >= (database.manifest or 0)
    if reading.unnamed and same:
        is_there = any(x.startswith(f"{names.IDENTITY_FILE}: ") for x in reading.problems)  # and not readable
        if reading.lock is LockState.HELD and reading.manifest == database.manifest and not is_there:
            # A wipe closes the store first, and a new store has no later manifest before its IDENTITY: what goes
            # from under a held lock was swept away by another process.
            path = f"{database.path}/{names.IDENTITY_FILE}"
            if path not in [known for _, known in task.swept]:
                task.swept = recent(task.swept, (reading.at_us, path), SWEPT_KEPT)
        return replace(reading, identity=database.identity)
    if database.unnamed and same and store is not None and reading.identity is not None:
        database.known_as, database.identity = frozenset({database.identity or ""}), reading.identity
        for session in store.sessions:
            if session.identities & database.known_as:
                session.identities = session.identities - database.known_as | {reading.identity}
            if session.final_identities & database.known_as:
                session.final_identities = session.final_identities - database.known_as | {reading.identity}
    return reading


def _without_identity(
    task: Task, store: Store | None, database: Database | None, reading: DatabaseReading
) -> list[Transition]:
    if reading.unseen not in (None, Unseen.VANISHED):
        return []
    name, key = reading.place.store or "", reading.place.segment or ""
    if store is None:
        if not reading.leftovers:
            return []
        store = task.stores[name] = Store(name, reading.place.role is PathRole.SEGMENT)
    _apply_leftovers(store, key, reading)
    if database is None or database.identity is None:
        return []
    return _end(task, store, database, reading.at_us, reading)


def _remains(store: Store, reading: DatabaseReading) -> Remains:
    """Describe what is left of a database; while later segments are held, only an expired one is taken away.

    Source:
        AbstractSegments.cleanupExpiredSegments (2.0.1 to 4.4.0): the oldest ones, each closed before.
    """
    key = reading.place.segment or ""
    later = (x.lock for name, x in store.databases.items() if name > key and len(name) == len(key))
    expired = LockState.HELD in later
    return Remains(reading.place.path, reading.at_us, reading.leftovers, expired, reading.touched_us)


def _is_new(database: Database, reading: DatabaseReading) -> bool:
    if reading.identity != database.identity:
        return True
    # RocksDB numbers manifests upward for the life of a database, and only adds to one: less is another life.
    known = database.manifest or 0
    is_less = reading.puts < database.manifest_puts and reading.manifest_problem is None
    return (reading.manifest or known) < known or (reading.manifest == known and is_less)


def _begin(task: Task, store: Store, database: Database, reading: DatabaseReading) -> Transition:
    if not store.segmented or not store.identities:
        store.incarnation += 1
    if task.walk is not None and reading.identity_born_us > task.walk.last_us:
        task.walk = None
    database.incarnation = store.incarnation
    database.identity, database.born_us = reading.identity, reading.identity_born_us
    database.found_us, database.heard = reading.at_us, reading.source is Source.INOTIFY
    before = store.past[-1] if store.past else None
    return change_of(
        Change.STORE_CREATED,
        reading,
        store.name,
        database.segment,
        identity=reading.identity,
        identity_before=before.identity if before else None,
        occurred_at_us=reading.identity_born_us,
        store_incarnation=store.incarnation,
        puts=reading.puts,
    )


def _end(task: Task, store: Store, database: Database, at_us: int, reading: Observation) -> list[Transition]:
    unseen = reading.source is Source.BASELINE
    shape = Shape.VANISHED_UNSEEN if unseen else deletion_shape(task, store, at_us)
    return [end_database(task, store, database, at_us, shape, reading)]


def end_database(
    task: Task, store: Store, database: Database, at_us: int, shape: Shape, reading: Observation
) -> Transition:
    """End an incarnation: keep what it was, forget what it is."""
    session = store.sessions[-1] if store.sessions else None
    note_taken(task, store, database)
    store.past = recent(
        store.past,
        PastDatabase(
            database.segment,
            database.identity,
            database.born_us,
            at_us,
            shape,
            database.puts,
            database.entries_low,
            database.size_bytes,
            session.released_us if session else None,
            task.incarnation,
            database.flushed[-1][1] if database.flushed else 0,
            _is_unread(database, at_us),
            database.counted_puts,
        ),
        PAST_KEPT,
    )
    store.databases.pop(database.segment or "", None)
    store.retired_puts = store.retired_puts + database.puts if store.segmented and store.databases else 0
    if session is not None and session.released_us is None and not store.segmented:
        _end_or_restart(task, session, at_us, database)
    facts = {
        "identity": database.identity,
        "shape": shape.value,
        "puts": database.puts,
        "occurred_at_us": at_us,
    }
    return change_of(Change.STORE_DELETED, reading, store.name, database.segment, **facts)


def note_taken(task: Task, store: Store, database: Database) -> None:
    """Remember that a database was deleted under the process that holds it."""
    taken = (database.taken_us, store.name, database.path)
    if database.taken_us and taken not in task.taken:
        task.taken = recent(task.taken, taken, TAKEN_KEPT)


def _is_unread(database: Database, at_us: int) -> bool:
    """Return whether anything hid what a database held; what is missing since its deletion began does not."""
    return database.unread or any(
        at_us - since_us > OWNER_DELETES_WITHIN_US for since_us in database.problem_since_us.values()
    )


def _end_or_restart(task: Task, session: Session, at_us: int, database: Database) -> None:
    """Up to 2.5 the owner wipes single stores and goes on in the same holding; later ones end with the store."""
    if task.lock is LockState.HELD and task.exists:
        is_first = not session.wiped and session.offset_at_open is None  # a wipe takes the offset with it
        session.wiped_at_once |= is_first and at_us - session.opened_us <= WIPES_AT_ONCE_US
        session.wiped, session.bulk_load_commits = True, ()
        session.reopens = session.restored_puts = session.bulk_load_us = session.puts_at_open = 0
        session.offset_at_open = session.first = session.last = None
    else:
        session.released_us, session.puts_at_release = at_us, database.puts
        session.final_identities = frozenset({database.identity or ""})


def deletion_shape(task: Task, store: Store, at_us: int) -> Shape:
    """Return who deleted a store: its owner (a wipe), a cleaner, or an unseen process."""
    session = store.sessions[-1] if store.sessions else None
    if session is not None and session.released_us is None:
        return Shape.OWNER_WALK
    walk: Deletion | None = task.walk
    if walk is not None and store.name in walk.stores:
        return walk.shape
    released_us = max(session.released_us or 0 if session is not None else 0, task.closed_us)
    if released_us and at_us - released_us <= OWNER_DELETES_WITHIN_US:
        return Shape.OWNER_WALK
    return Shape.VANISHED_UNSEEN


def _apply_reading(
    application: Application, store: Store, database: Database, reading: DatabaseReading
) -> list[Transition]:
    changes: list[Transition] = []
    note_opening(application, store, database, reading)
    reopened = [x for x in reading.reopened_us if x not in database.reopened_us]
    if database.seen_us and reopened:
        changes.append(
            _store_change(Change.STORE_OPENED, store, database, reading, occurred_at_us=reopened[-1])
        )
    _count_reopens(store, database, reopened)
    _apply_leftovers(store, database.segment or "", reading)
    before = database.puts
    apply_flushes(store, database, reading)
    if database.seen_us and database.puts > before:
        changes.append(_store_change(Change.STORE_FLUSHED, store, database, reading, puts_before=before))
    database.inode, database.unnamed = reading.inode, reading.unnamed
    _apply_content(database, reading)
    if reading.lock is LockState.FREE or (reading.lock is None and store.session is None):
        database.touched_us = reading.touched_us
    if reading.lock is not database.lock:
        database.lock, database.lock_since_us = reading.lock, reading.at_us
    database.reopened_us, database.all_reopens = reading.reopened_us, reading.all_reopens
    _apply_layout(application, database, reading)
    note_bulk_load(store)
    if not set(reading.families_in_use) <= set(database.families_in_use):
        database.families_in_use = tuple(sorted({*database.families_in_use, *reading.families_in_use}))
    if reading.oldest_data_us:
        database.oldest_data_us = min(
            reading.oldest_data_us, database.oldest_data_us or reading.oldest_data_us
        )
    database.seen_us = reading.at_us
    note_end(store, database)
    if store.session is not None:
        store.session.restored_puts = max(store.session.restored_puts, opened_puts(store))
    return changes


def _count_reopens(store: Store, database: Database, reopened: Sequence[int]) -> None:
    """Add what was reopened in the session that lasts; the session counts what is read before it begins.

    What was made by a wipe in the session was reopened in it, whatever the clock said, and however late it is read.
    """
    session = store.session
    if session is not None and session.wiped:
        session.reopens += len(reopened)
    elif session is not None and database.seen_us:
        session.reopens += len([x for x in reopened if x > session.opened_us])


def _apply_content(database: Database, reading: DatabaseReading) -> None:
    """Take what was read. What was not leaves in its place what was known before: it is not the same as nothing."""
    database.manifest_problem, database.problems = reading.manifest_problem, reading.problems
    since_us = {x: database.problem_since_us.get(x, reading.at_us) for x in reading.problems}
    database.problem_since_us = since_us or NO_NUMBERS
    database.goes_on = reading.goes_on
    if reading.entries_low is not None:
        database.entries_low, database.entries_high = reading.entries_low, reading.entries_high
        database.counted_puts = database.puts
    database.offsets_unread = reading.offsets_unread
    apply_offsets(database, reading)
    if reading.manifest is None:
        database.unread |= reading.manifest_problem not in _PASSING
        return
    database.unread = False
    if reading.manifest_problem is None or not database.seen_us:
        database.files, database.size_bytes = reading.files, reading.size_bytes
        database.opened_puts, database.opened_sequence = reading.opened_puts, reading.opened_sequence
    database.manifest = reading.manifest
    database.file_puts, database.manifest_puts = max(database.file_puts, reading.puts), reading.puts
    if not reading.missing_files:
        database.missing_since_us = 0
    elif not database.missing:
        database.missing_since_us = reading.at_us
    database.missing = reading.missing_files
    _apply_file_paths(database, reading)


def _apply_file_paths(database: Database, reading: DatabaseReading) -> None:
    """Distinguish files on another path from lost ones: RocksDB opens no database that misses a file.

    Source:
        VersionBuilder::LoadTableHandlers (5.7 to 10.1; `max_open_files` is -1 by default). The manifest says of a
        file that it is on another path only from the second one of `db_paths` on; LOG names those, but not `cf_paths`,
        and OPTIONS names none.
    """
    elsewhere = sum(problem_kind(x) == ELSEWHERE for x in reading.problems)
    database.has_had_files |= reading.files > len(reading.missing_files) + elsewhere
    if database.has_had_files:
        database.is_elsewhere = False
    elif reading.missing_files and reading.lock is LockState.HELD and database.lock is LockState.HELD:
        database.is_elsewhere = True


def _apply_leftovers(store: Store, key: str, reading: DatabaseReading) -> None:
    left = store.remains.get(key)
    if not reading.leftovers:
        store.remains.pop(key, None)
    elif left is None:
        store.remains[key] = _remains(store, reading)
    else:
        left.touched_us = reading.touched_us


def _apply_layout(application: Application, database: Database, reading: DatabaseReading) -> None:
    if reading.offsets is not None and reading.offsets.transactional:
        application.transactional_us = max(application.transactional_us, reading.offsets.written_us)
    elif reading.offsets is not None and reading.offsets.transactional is False:
        application.marked_us = max(application.marked_us, reading.offsets.written_us)
    if reading.rocksdb_version:
        database.rocksdb_version, database.families = reading.rocksdb_version, reading.families
        database.options_written_us, database.forgets = reading.options_written_us, reading.forgets
        database.bulk_loading = reading.bulk_loading
        newest = application.rocksdb_versions.get(reading.rocksdb_version, 0)
        application.rocksdb_versions[reading.rocksdb_version] = max(newest, reading.options_written_us)
        if names.OFFSETS_FAMILY in reading.families:
            application.offsets_family_us = max(application.offsets_family_us, reading.options_written_us)
        else:
            application.plain_us = max(application.plain_us, reading.options_written_us)


def _store_change(
    change: Change, store: Store, database: Database, reading: DatabaseReading, **more: object
) -> Transition:
    facts = {"identity": database.identity, "puts": database.puts, "bytes": reading.size_bytes, **more}
    return change_of(change, reading, store.name, database.segment, **facts)
