"""When a store is read again because one reading did not settle what it is. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from agent.engine.unreadable_paths import LASTS_US
from agent.inventory.disk import Unseen
from agent.inventory.model import Database, Inventory, Task
from agent.inventory.observations import DatabaseReading
from agent.layout.paths import PathRole, StatePath

EVENTS = frozenset(
    {
        PathRole.CURRENT,
        PathRole.IDENTITY,
        PathRole.MANIFEST,
        PathRole.SST,
        PathRole.OPTIONS,
        PathRole.STORE_LOCK,
    }
)
"""Files of a store whose notification asks for a reading of it."""

SETTLE_US = 100_000
"""A store is read once for a burst of its files: flush, manifest, CURRENT, LOCK come within milliseconds."""

TORN_AGAIN_US = 5_500_000  # when a store that misses files, or has some that cannot be read, is read again
RACED_AGAIN_US = 1_000_000  # when a store is read again whose files went faster than they could be read

READ_ON_US, WAITS_US = 2_000_000, 10_000_000
"""When a long manifest is read on (a third of a second of CPU each), and when one asks again whose turn it is not."""


def reread_us(reading: DatabaseReading, database: Database | None, *, is_deleted: bool) -> int:
    """Return how soon a reading of a store should be repeated; 0 = it need not.

    `database`: what is known of the store with it. `is_deleted`: the task is being deleted, or was a moment ago.
    """
    if reading.goes_on:
        return WAITS_US if reading.waits else READ_ON_US
    if reading.unseen is Unseen.RACED:
        return SETTLE_US
    if reading.manifest_problem == Unseen.RACED:
        return RACED_AGAIN_US
    if reading.missing_files or reading.leftovers:
        # a deletion that goes on looks the same; it is torn only if a later reading finds it so again
        return TORN_AGAIN_US
    lasting = database.lasting_problems(reading.at_us, for_us=LASTS_US) if database is not None else ()
    return TORN_AGAIN_US if len(lasting) < len(reading.problems) or (reading.problems and is_deleted) else 0


def is_being_deleted(task: Task | None, now_us: int) -> bool:
    """Return whether files of a task went one by one up to a moment ago: what is missing then is no damage."""
    return task is not None and task.walk is not None and now_us - task.walk.last_us < LASTS_US


def seems_idle(task: Task | None, place: StatePath) -> bool:
    """Return whether no process is known to hold a store, and nothing deletes it."""
    store = task.stores.get(place.store or "") if task is not None else None
    return task is not None and task.walk is None and store is not None and store.session is None


def databases(inventory: Inventory) -> Iterator[Database]:
    """List every database of every store that is there."""
    for application in inventory.applications.values():
        for task in application.tasks.values():
            yield from task.databases


def database_at(inventory: Inventory, place: StatePath) -> Database | None:
    """Find what is known of a store or segment; None = it is not there."""
    application = inventory.applications.get(place.application or "")
    task = application.tasks.get(place.task or "") if application is not None else None
    store = task.stores.get(place.store or "") if task is not None else None
    return store.databases.get(place.segment or "") if store is not None else None
