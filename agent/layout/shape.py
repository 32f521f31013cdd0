"""What a directory is, by the names in it: a state directory holds applications, an application holds tasks."""

from __future__ import annotations

from collections.abc import Sequence, Set

from agent.layout import names


def is_application(found: Set[str]) -> bool:
    """Return whether the names are those of an application directory: the guess where one is expected."""
    marks = {names.PROCESS_FILE, names.LOCK_FILE, names.GLOBAL_DIRECTORY}
    patterns = (names.TASK_DIRECTORY, names.TOPOLOGY_DIRECTORY)
    return bool(marks & found) or any(p.fullmatch(x) for p in patterns for x in found)


def is_surely_application(found: Set[str]) -> bool:
    """Classify where a state directory is expected, in which an application may have any name."""
    return bool({names.PROCESS_FILE, names.LOCK_FILE} & found) or any(
        names.TASK_DIRECTORY.fullmatch(x) for x in found
    )


def is_task(name: str, found: Set[str]) -> bool:
    """Return whether a directory where a state directory is expected is one of a task, by its name and the names in it.

    Up to 2.8 a task has a lock as an application has; an application may have the name of a task.
    """
    if not names.TASK_DIRECTORY.fullmatch(name) or names.PROCESS_FILE in found:
        return False
    marks = {names.CHECKPOINT_FILE, names.LOCK_FILE, names.ROCKSDB_DIRECTORY}
    return not found or (bool(marks & found) and not any(names.TASK_DIRECTORY.fullmatch(x) for x in found))


def is_topology(name: str) -> bool:
    """Return whether it is the name of a directory of a named topology, between application and tasks."""
    return names.TOPOLOGY_DIRECTORY.fullmatch(name) is not None


def leftovers(found: Sequence[str], identity: str | None) -> int:
    """Count what a torn deletion left: data files without the files that make them a database."""
    if identity is not None and names.CURRENT_FILE in found:
        return 0
    patterns = (names.SST_FILE, names.BLOB_FILE, names.WAL_FILE)
    return sum(1 for x in found if any(pattern.fullmatch(x) for pattern in patterns))
