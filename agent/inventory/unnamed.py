"""Store directories without IDENTITY: a whole database all the same, or nothing of one."""

from __future__ import annotations

from dataclasses import replace

from agent.inventory.disk import LockState, Unseen
from agent.inventory.model import SWEPT_KEPT, Database, Store, Task
from agent.inventory.observations import DatabaseReading
from agent.inventory.recent import recent
from agent.layout import names
from agent.layout.paths import PathRole


def note_bare(task: Task, reading: DatabaseReading) -> None:
    """Note since when a store's directory is there and has nothing of a database in it."""
    name = reading.place.store or ""
    is_bare = reading.unseen is None and reading.identity is None and not reading.leftovers
    if is_bare and reading.place.role is PathRole.STORE:
        task.bare = {name: reading.at_us, **task.bare}
    elif name in task.bare and reading.unseen in (None, Unseen.VANISHED):
        task.bare = {known: at_us for known, at_us in task.bare.items() if known != name}


def as_known(
    task: Task, store: Store | None, database: Database, reading: DatabaseReading
) -> DatabaseReading:
    """Take a database that lost its IDENTITY, or got one again, for the one that is known, unless it is another.

    RocksDB makes a missing IDENTITY at the next open, which begins a manifest, too; the directory stays.
    """
    same = reading.inode == database.inode and (reading.manifest or 0) >= (database.manifest or 0)
    if reading.unnamed and same:
        if reading.lock is LockState.HELD and reading.manifest == database.manifest:
            # A wipe closes the store first, and a new store has no later manifest before its IDENTITY: what goes
            # from under a held lock was swept away by another process.
            path = f"{database.path}/{names.IDENTITY_FILE}"
            if path not in [known for _, known in task.swept]:
                task.swept = recent(task.swept, (reading.at_us, path), SWEPT_KEPT)
        return replace(reading, identity=database.identity)
    if database.unnamed and same and store is not None and reading.identity is not None:
        before, database.identity = frozenset({database.identity}), reading.identity
        for session in store.sessions:
            if session.identities & before:
                session.identities = session.identities - before | {reading.identity}
            if session.final_identities & before:
                session.final_identities = session.final_identities - before | {reading.identity}
    return reading
