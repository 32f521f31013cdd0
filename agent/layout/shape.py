"""What a directory is, by the names in it: a state directory holds applications, an application holds tasks."""

from __future__ import annotations

from collections.abc import Set

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
