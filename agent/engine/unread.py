"""What one reading of a directory did not see, and why: an all-clear says nothing of it. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from agent.contract.wording import named
from agent.engine.rows import size_of
from agent.inventory.blind_causes import why_unread
from agent.inventory.copied import times_are_copied
from agent.inventory.disk import LockState
from agent.inventory.model import Application, Inventory, Task
from agent.layout import names
from agent.layout.paths import classify
from agent.quantities.changelog import is_real

SHOWN = 5  # places that a sentence names at most

AHEAD_US = 3_600_000_000
"""What is written while a scan goes on is dated less than that behind its begin."""

_UNASKED = "whether a process holds it cannot be asked"


def unread(inventory: Inventory) -> dict[str, str]:
    """List the places that could not be read, and why, by path; empty = all was read.

    What is open among the blind intervals that have a place; a file that has not the form of its kind; and a lock that
    could not be asked, because rules that wait for its release have not spoken.
    """
    found = {
        x.place: why_unread(x) for x in inventory.blind if x.ended_us is None and x.place is not None
    }  # the state directory itself has the empty path
    for application in inventory.applications.values():
        if application.exists and application.lock is LockState.UNKNOWN:
            found.setdefault(f"{application.id}/{names.LOCK_FILE}", _UNASKED)
        if application.exists and application.process_problem is not None:
            found.setdefault(f"{application.id}/{names.PROCESS_FILE}", application.process_problem)
    for task in tasks_of(inventory):
        if task.lock is LockState.UNKNOWN:
            found.setdefault(f"{task.path}/{names.LOCK_FILE}", _UNASKED)
        if task.checkpoint_problem is not None:
            found.setdefault(f"{task.path}/{names.CHECKPOINT_FILE}", task.checkpoint_problem)
        for database in task.databases:
            if database.lock in (LockState.UNKNOWN, None):
                found.setdefault(f"{database.path}/{names.STORE_LOCK_FILE}", _UNASKED)
    return dict(sorted(found.items()))


def is_undated(task: Task) -> bool:
    """Return whether its checkpoint cannot be compared with its stores: its file's time is that of a copy."""
    fact = task.checkpoint
    return (
        fact is not None
        and any(map(is_real, fact.offsets.values()))
        and times_are_copied(task, fact.written_us)
    )


def is_ahead(task: Task, now_us: int) -> bool:
    """Return whether a file's time is in the future: another clock dated it, and which came first is not sure."""
    times = [0 if task.checkpoint is None else task.checkpoint.written_us]
    for one in task.databases:
        times += (one.born_us, one.touched_us, *(at_us for _, at_us in one.flushed))
    return max(times) > now_us + AHEAD_US


def how_much(inventory: Inventory, places: Mapping[str, str]) -> str:
    """Say how much could not be read: `1 of 2 tasks could not be read`; empty = all was."""
    if not places:
        return ""
    hit = {x for x in (classify(place).task_path for place in places) if x is not None}
    total = len({task.path for task in tasks_of(inventory)} | hit)
    above = len([x for x in places if classify(x).task is None])
    said = [f"{len(hit)} of {total} task{'' if total == 1 else 's'}"] if hit else []
    said += [f"{above} director{'y' if above == 1 else 'ies'}"] if above else []
    return f"{' and '.join(said)} could not be read"


def which(places: Mapping[str, str]) -> str:
    """Name the places and why, the first few."""
    shown = [f"{place or 'the state directory'} ({why})" for place, why in list(places.items())[:SHOWN]]
    more = f", and {len(places) - SHOWN} more" if len(places) > SHOWN else ""
    return f"not read: {', '.join(shown)}{more}"


def tasks_of(inventory: Inventory) -> list[Task]:
    """List the tasks that are there."""
    return [
        task for x in inventory.applications.values() if x.exists for task in x.tasks.values() if task.exists
    ]


UNUSED_US = 30 * 86_400_000_000
"""Longer than any stop that is planned; what is in a state directory by then is restored from its changelog anyway."""

_MAY_BE_HELD = (LockState.HELD, LockState.UNKNOWN)
_MIB = 1024 * 1024


def unused(inventory: Inventory, now_us: int) -> str:
    """Say which applications are unused, and how much they take; empty = none is."""
    found = [x for x in inventory.applications.values() if x.exists and _is_unused(x, now_us)]
    if not found:
        return ""
    size = sum(size_of(task) for x in found for task in x.tasks.values() if task.exists)
    one = len(found) == 1
    return (
        f"{len(found)} application{'' if one else 's'} unused for {UNUSED_US // 86_400_000_000} days,"
        f" {size / _MIB:.0f} MiB: {named(sorted(x.id for x in found))}"
    )


def _is_unused(application: Application, now_us: int) -> bool:
    tasks = [task for task in application.tasks.values() if task.exists]
    if application.lock in _MAY_BE_HELD or application.processes or any(task.held for task in tasks):
        return False
    written = (task.checkpoint.written_us for task in tasks if task.checkpoint is not None)
    opened = (x.options_written_us for task in tasks for x in task.databases)
    newest_us = max((application.mtime_us, *(task.mtime_us for task in tasks), *written, *opened))
    return 0 < newest_us < now_us - UNUSED_US
