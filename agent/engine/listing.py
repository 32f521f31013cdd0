"""Listings, for those who walk."""

from __future__ import annotations

from agent.inventory.disk import Entry, EntryKind, Unseen

REPORTED_AT_ONCE = 500
"""Changes that a walk gathers before it reports them."""


def directories(entries: tuple[Entry, ...] | Unseen) -> tuple[Entry, ...]:
    """Give the directories of a listing; none where nothing was seen."""
    if isinstance(entries, Unseen):
        return ()
    return tuple(entry for entry in entries if entry.kind is EntryKind.DIRECTORY)
