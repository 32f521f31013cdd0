"""What a walk goes through: the directories of a listing, the databases below a task, what is known of a place."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from agent.inventory.disk import Disk, Entry, EntryKind, Unseen
from agent.inventory.model import Inventory, Task
from agent.inventory.nested import nested
from agent.inventory.transitions import Transition
from agent.layout.paths import DATABASE_ROLES, PathRole, StatePath, classify

Unlisted: TypeAlias = tuple[Unseen, str]  # why an entry is not listed, and what more there is to say

LINK: Unlisted = (
    Unseen.UNREADABLE,
    ", a symbolic link: it is not followed. Mount its target, or give the target's parent as a state directory",
)

_HOLD_DATABASES = (PathRole.STORES, PathRole.SEGMENTED_STORE)

REPORTED_AT_ONCE = 500  # changes that a walk gathers before it reports them

Report: TypeAlias = Callable[[list[Transition]], None]  # takes them


def directories(entries: tuple[Entry, ...] | Unseen) -> tuple[Entry, ...]:
    """Give the directories of a listing; none where nothing was seen."""
    if isinstance(entries, Unseen):
        return ()
    return tuple(entry for entry in entries if entry.kind is EntryKind.DIRECTORY)


def databases_below(disk: Disk, path: str, known: Task | None) -> tuple[list[StatePath], dict[str, Unlisted]]:
    """List the databases below a task's directory: those that are there, and those that were known.

    Gives databases; and of the directories that may hold some, which cannot be listed.
    """
    paths = set(known.database_paths) if known else set()
    unread: dict[str, Unlisted] = {}
    entries = disk.list(path)
    for entry in () if isinstance(entries, Unseen) else entries:
        inner = f"{path}/{entry.name}"
        if entry.kind is EntryKind.SYMLINK and classify(inner).role in _HOLD_DATABASES:
            unread[inner] = LINK
        if entry.kind is not EntryKind.DIRECTORY:
            continue
        children = disk.list(inner)
        if isinstance(children, Unseen):
            unread[inner] = children, ""
        else:
            paths.update(f"{inner}/{child.name}" for child in directories(children))
            links = (f"{inner}/{child.name}" for child in children if child.kind is EntryKind.SYMLINK)
            unread.update((x, LINK) for x in links if classify(x).role in DATABASE_ROLES)
    return [x for x in map(classify, sorted(paths)) if x.role in DATABASE_ROLES], unread


def not_found(inventory: Inventory, place: StatePath, found: set[str]) -> tuple[list[str], list[Task]]:
    """List what is known below a directory that was listed, and was not in it.

    `place`: the state directory, or an application's. `found`: paths of the directories in it. Gives ids of
    applications, and tasks.
    """
    applications: list[str] = []
    gone: list[Task] = []
    for application in inventory.applications.values():
        tasks = [task for task in application.tasks.values() if task.exists and task.path not in found]
        if place.role is PathRole.STATE_DIRECTORY:
            if application.exists and application.id not in found:
                applications.append(application.id)
                gone += tasks
        elif place.role is PathRole.APPLICATION and application.id == place.application:
            # a task of a topology that is there was looked for in its directory
            gone += [task for task in tasks if task.path.rpartition("/")[0] not in found]
    return applications, gone


def note_nested(inventory: Inventory, disk: Disk) -> None:
    """Search one level below for a state directory, as long as no application is where one should be."""
    if any(x.exists for x in inventory.applications.values()):
        inventory.nested = ()
    else:
        inventory.nested = nested(disk, [x.name for x in directories(disk.list(""))])
