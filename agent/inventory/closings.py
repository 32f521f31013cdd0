"""What a store held when it was closed in order: the one moment in which its files and its offset are of one time.

Two such copies of one store at one offset should hold the same live entries, unless its content also depends on
something else than the changelog up to there. Such stores, and copies with a past that may show, are left out here.
One life does not show (`ended_exactly`), so a difference alone is no more than a suspicion.
"""

from __future__ import annotations

from agent.contract.events import Change
from agent.inventory.disk import LockState
from agent.inventory.model import Database, Session, Store, Task
from agent.inventory.observations import Observation
from agent.inventory.transitions import Transition, change_of
from agent.layout import names
from agent.layout.checkpoint import OffsetEntry

VERSIONED_SINCE_ROCKSDB = 7
"""Versioned stores came with 3.5, RocksDB 7 with 3.3: an older one wrote none."""

_PLAIN_FAMILIES = frozenset({"default", names.OFFSETS_FAMILY})
"""Column families of a plain store, and of a versioned one."""


def ended_exactly(session: Session) -> bool:
    """Return whether a session left files that hold what their offset says and nothing later.

    Up to 4.2 a close flushes, writes `.checkpoint` and lets go: the puts at the release are those at its writing.
    One life leaves the same on disk, and holds more: from 2.8 on, under at-least-once, a close while sends fail.

    Source:
        StateManagerUtil.closeStateManager, ProcessorStateManager.checkpoint and close (2.0.1, 2.6.0, 4.1.2);
        TaskManager.tryCloseCleanAllActiveTasks (2.8.2).
    """
    mark = session.last
    is_marked = mark is not None and not mark.unsure and mark.puts == session.puts_at_release
    return session.exact or (session.closed is True and is_marked)


def keeps_unbroken(before: Session | None, *, created: bool, goes_on: bool, opened_puts: int) -> bool:
    """Return whether all of an incarnation's past is known to have ended exactly when a new session begins.

    At-least-once goes on with what a killed process had flushed beyond its offset: entries whose records never reached
    the changelog stay, and a close in the middle of the replay claims less than is there. More puts at the opening than
    were left mean that a session was not seen.
    """
    if created or before is None:
        return created
    known = before.unbroken or before.wiped
    return known and goes_on and ended_exactly(before) and opened_puts <= before.puts_at_release


def is_exact(store: Store) -> bool:
    """Return whether the files of a store (4.3+) hold what its offset says and nothing later.

    A close puts the offset behind the last data and the status behind the offset, and flushes all of it at once; where
    a compaction took the order away, it is not known.

    Source:
        AbstractColumnFamilyAccessor (4.3.0); recorded: data 3005 < offset 3008 < position 3009 < status 3010.
    """
    database = _only(store)
    facts = database.offsets if database is not None else None
    if database is None or facts is None or facts.status != 0 or len(facts.offsets) != 1:
        return False
    _, offset, sequence = facts.offsets[0]
    return offset >= 0 and database.puts < sequence < facts.status_sequence


def is_comparable(task: Task, store: Store) -> bool:
    """Return whether copies of a store hold the same live entries at one offset of its changelog.

    Not so: segments expire one by one; the restoration of a versioned store leaves out what expired or was compacted
    away; RocksDB may drop entries by itself; a global store or a table on its source topic follows a topic that others
    cut, and a restoration may take in what a processor skipped.

    Source:
        RocksDBVersionedStore.restoreBatch, GlobalStateManagerImpl.restoreState and reprocessState (4.3.0).
    """
    database = _only(store)
    if database is None or task.is_global or database.forgets or _may_be_versioned(database):
        return False
    facts = database.offsets
    topics = [name.rpartition("-") for name, _, _ in facts.offsets] if facts is not None else []
    return all(
        number.isdecimal() and task.store_of(OffsetEntry(topic, int(number), 0)) == store.name
        for topic, _, number in topics
    )


def closings(task: Task, closed: list[Store], reading: Observation) -> list[Transition]:
    """Report of stores that were let go in order what they held, where offset, files and entries are of one moment."""
    changes = (_closing(task, store, reading) for store in closed)
    return [change for change in changes if change is not None]


def comparable_at(task: Task) -> bool | None:
    """Return whether a checkpoint that was just written says what the only store of a task holds; None = not known."""
    store = next(iter(task.stores.values())) if len(task.stores) == 1 else None
    session = store.session if store is not None else None
    if store is None or session is None or session.last is None or not is_comparable(task, store):
        return None
    known = session.unbroken or session.wiped
    return True if known and not session.last.unsure else None


def _closing(task: Task, store: Store, reading: Observation) -> Transition | None:
    session, database = store.sessions[-1], _only(store)
    if database is None or database.lock is not LockState.FREE or not is_comparable(task, store):
        return None
    if not ended_exactly(session) or not _is_counted(database):
        return None
    offset = _offset(session, database)
    if offset is None:
        return None
    return change_of(
        Change.STORE_CLOSED,
        reading,
        store.name,
        identity=database.identity,
        store_incarnation=database.incarnation,
        offset_after=offset,
        puts=database.puts,
        bytes=database.size_bytes,
        entries_low=database.entries_low,
        entries_high=database.entries_high,
        comparable=(session.unbroken or session.wiped) or None,
        held=False,
    )


def _offset(session: Session, database: Database) -> int | None:
    if database.offsets is not None:
        return database.offsets.offsets[0][1] if session.exact else None
    return session.last.offset if session.last is not None and session.last.offset >= 0 else None


def _only(store: Store) -> Database | None:
    return next(iter(store.databases.values())) if not store.segmented and len(store.databases) == 1 else None


def _is_counted(database: Database) -> bool:
    """All was read, and the entries were counted when everything that was flushed was there."""
    unread = database.problems or database.missing or database.offsets_unread or database.goes_on
    counted = database.entries_low is not None and database.entries_high is not None
    return database.knows_puts and not unread and counted and database.counted_puts == database.puts


def _may_be_versioned(database: Database) -> bool:
    """Like a plain store a versioned one has the default family only; timestamped stores and those with headers do."""
    major = (database.rocksdb_version or "").partition(".")[0]
    is_older = major.isdecimal() and int(major) < VERSIONED_SINCE_ROCKSDB
    return not is_older and set(database.families) <= _PLAIN_FAMILIES
