"""Listings, for those who walk."""

from __future__ import annotations

from agent.inventory.disk import Disk, Entry, EntryKind, Unseen
from agent.inventory.model import Task
from agent.layout.paths import DATABASE_ROLES, StatePath, classify

REPORTED_AT_ONCE = 500
"""Changes that a walk gathers before it reports them."""


def directories(entries: tuple[Entry, ...] | Unseen) -> tuple[Entry, ...]:
    """Give the directories of a listing; none where nothing was seen."""
    if isinstance(entries, Unseen):
        return ()
    return tuple(entry for entry in entries if entry.kind is EntryKind.DIRECTORY)


def databases_below(disk: Disk, path: str, known: Task | None) -> list[StatePath]:
    """List the databases below a task's directory: those that are there, and those that were known."""
    paths = set(known.database_paths) if known else set()
    for entry in directories(disk.list(path)):
        inner = f"{path}/{entry.name}"
        paths.update(f"{inner}/{child.name}" for child in directories(disk.list(inner)))
    return [x for x in map(classify, sorted(paths)) if x.role in DATABASE_ROLES]
