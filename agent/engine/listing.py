"""What a walk goes through: the directories of a listing, the databases below a task, what is known of a place."""

from __future__ import annotations

from agent.engine.refusals import Refusals
from agent.inventory.disk import Disk, Entry, EntryKind, Unseen
from agent.inventory.model import Inventory, Task
from agent.layout.paths import DATABASE_ROLES, Role, StatePath, classify

_MAY_BE_DATABASES = (EntryKind.DIRECTORY, EntryKind.SYMLINK)
"""A link is not followed: asking for what it names shows that this cannot be read."""

REPORTED_AT_ONCE = 500
"""Changes that a walk gathers before it reports them."""


def directories(entries: tuple[Entry, ...] | Unseen) -> tuple[Entry, ...]:
    """Give the directories of a listing; none where nothing was seen."""
    if isinstance(entries, Unseen):
        return ()
    return tuple(entry for entry in entries if entry.kind is EntryKind.DIRECTORY)


def databases_below(
    disk: Disk, path: str, known: Task | None, refusals: Refusals, at_us: int
) -> list[StatePath]:
    """List the databases below a task's directory: those that are there, and those that were known.

    What cannot be listed on the way, or is a link, is noted: whether a store is there is unknown then.
    """
    paths = set(known.database_paths) if known else set()
    entries = disk.list(path)
    refusals.note_listing(classify(path), entries, at_us)
    for entry in directories(entries):
        inner = f"{path}/{entry.name}"
        children = disk.list(inner)
        refusals.note(classify(inner), children if isinstance(children, Unseen) else None, at_us)
        if not isinstance(children, Unseen):
            paths.update(f"{inner}/{child.name}" for child in children if child.kind in _MAY_BE_DATABASES)
    return [x for x in map(classify, sorted(paths)) if x.role in DATABASE_ROLES]


def not_found(inventory: Inventory, place: StatePath, found: set[str]) -> tuple[list[str], list[Task]]:
    """List what is known below a directory that was listed, and was not in it.

    Args:
        inventory: What is known.
        place: The state directory, or an application's.
        found: Paths of the directories in it.

    Returns:
        Ids of applications, and tasks.
    """
    applications: list[str] = []
    gone: list[Task] = []
    for application in inventory.applications.values():
        tasks = [task for task in application.tasks.values() if task.exists and task.path not in found]
        if place.role is Role.STATE_DIRECTORY:
            if application.exists and application.id not in found:
                applications.append(application.id)
                gone += tasks
        elif place.role is Role.APPLICATION and application.id == place.application:
            # a task of a topology that is there was looked for in its directory
            gone += [task for task in tasks if task.path.rpartition("/")[0] not in found]
    return applications, gone
