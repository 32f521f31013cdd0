"""A state directory before its first start: missing or empty, and not just misspelt. A gate lets that start pass."""

from __future__ import annotations

import os
from pathlib import Path

from agent.errors import UnreadError, UsageError
from agent.inventory.disk import EntryKind, Unseen
from agent.layout import names
from agent.layout.paths import join
from agent.layout.shape import is_application, is_surely_application
from agent.observe.kernel_disk import KernelDisk

DEEPEST = 3
MOST = 1_000  # directories that are read at most: a volume before its first start has few


def is_before_first_start(directory: Path) -> bool:
    """Return whether no instance can have started on this directory yet: it is missing, or no application is in it.

    False where it has an application or a link to one, or is no directory. Raises `UsageError`: an application is
    near it: the path is wrong. Raises `UnreadError`: it cannot be known.
    """
    if names.TASK_DIRECTORY.fullmatch(directory.absolute().name):
        raise UsageError(f"{directory}: the name is that of a task directory; give Kafka Streams' state.dir")
    if not _is_directory(directory):
        if os.path.lexists(directory):
            return False
        place = next(x for x in directory.absolute().parents if _is_directory(x))
        if place == place.parent:
            raise UsageError(f"{directory}: no such directory, and no volume is mounted above it")
        near = _application_near(place, must_see=False)
    else:
        place = directory.absolute()
        if _has_link(place):
            return False  # an application may lie behind it
        near = _application_near(place, must_see=True)
    if near is None:
        return True
    if near.parent == directory.absolute():
        return False
    raise UsageError(
        f"{directory}: holds no application, but {near.parent} does: {near.name}; give Kafka Streams' state.dir"
    )


def _has_link(place: Path) -> bool:
    entries = KernelDisk(place).list("")
    return not isinstance(entries, Unseen) and any(x.kind is EntryKind.SYMLINK for x in entries)


def _application_near(place: Path, *, must_see: bool) -> Path | None:
    """Find an application directory in the first few levels, the place itself included.

    Raises `UnreadError`: the place, or (`must_see`) something below it, may not be read.
    """
    disk = KernelDisk(place)
    level, visited = [""], 0
    for depth in range(DEEPEST + 1):
        below: list[str] = []
        for path in level[: MOST - visited]:
            entries = disk.list(path)
            visited += 1
            if entries is Unseen.DENIED and (must_see or not path):
                raise UnreadError(
                    f"{place / path}: permission denied; can't tell whether an application is there"
                )
            if isinstance(entries, Unseen):
                continue
            found = {entry.name for entry in entries}
            if is_application(found) if depth else is_surely_application(found):
                return place / path
            below += [join(path, x.name) for x in entries if _is_inner(x.name, x.kind)]
        level = below
    return None


def _is_directory(path: Path) -> bool:
    try:
        return path.is_dir()
    except PermissionError:
        return False


def _is_inner(name: str, kind: EntryKind) -> bool:
    return kind is EntryKind.DIRECTORY and not names.OF_THE_VOLUME.fullmatch(name)
