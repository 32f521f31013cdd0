"""State directories one level below: where each pod has its own on one volume. For every command and the agent."""

from __future__ import annotations

from collections.abc import Iterable

from agent.inventory.disk import Disk, EntryKind, Unseen
from agent.layout.paths import join
from agent.layout.shape import is_application

ASKED = 64
"""Directories that are listed at most, and in each of them."""

SHOWN = 3


def nested(disk: Disk, children: Iterable[str]) -> tuple[str, ...]:
    """List which of the child directories are state directories themselves, where no application is here."""
    return tuple(name for name in sorted(children)[:ASKED] if _is_state_directory(disk, name))


def _is_state_directory(disk: Disk, path: str) -> bool:
    entries = disk.list(path)
    if isinstance(entries, Unseen):
        return False
    inner = [x.name for x in entries if x.kind is EntryKind.DIRECTORY][:ASKED]
    listed = (disk.list(join(path, name)) for name in inner)
    return any(not isinstance(x, Unseen) and is_application({entry.name for entry in x}) for x in listed)


def in_words(names: tuple[str, ...], pod: str = "") -> str:
    """Say what was found one level below, and what to give instead; this pod's own directory comes first."""
    own = [x for x in names if x == pod]
    first = own[0] if own else names[0]
    more = f" ({len(names)} are: {', '.join(names[:SHOWN])}{', ...' if len(names) > SHOWN else ''})"
    whose = "this pod's own" if own else "the one of this pod"
    return (
        f"no application is here, but one level below: {first} is a state directory"
        f"{more if len(names) > 1 else ''}; give {whose}"
    )
