"""How long a store has been unused at least, by the file times below its application: for one that no agent watched."""

from __future__ import annotations

from bisect import bisect_right

from agent.inventory.disk import LockState
from agent.inventory.model import Application, Store, Task
from agent.inventory.sessions import offset_in_force
from agent.judging.base import TaskCase
from agent.layout.facts import Fact
from agent.layout.profile import Truth


def unused_until_read(case: TaskCase, store: Store) -> tuple[int, int] | None:
    """Return (since when, until when) no process used a store that was free at every reading; None = not known.

    While any process of the application is alive, it writes to what it has open, sooner or later: what was written last
    below the application bounds the pause of all its tasks.
    """
    application = case.application
    if store.sessions or store.lock is not LockState.FREE or case.once(_is_alive, application):
        return None
    until_us = max(database.seen_us for database in store.databases.values())
    return case.once(_times, application)[-1], until_us


def unused_until_opened(case: TaskCase, store: Store) -> tuple[int, int] | None:
    """Return the same of a store of which no session before the first one that is known was seen; None = not known.

    What an opening and the work after it overwrite no longer shows when the session before it ended. So the store was
    read while it was free, or the checkpoint that a close writes is still known; from 4.3 on a close writes none.
    """
    session = store.session
    if session is None or len(store.sessions) > 1 or session.created or store.forgotten_us:
        return None
    was_free = all(x.touched_us for x in store.databases.values())
    by_checkpoint = (
        case.says(Fact.OFFSETS_IN_STORE) is Truth.NO
        and offset_in_force(case.task, store.name, session.opened_us, 0) is not None
    )
    opened = {x for database in store.databases.values() for x in database.reopened_us}
    if not was_free and not (by_checkpoint and session.opened_us in opened):
        return None
    own = [x for x in _times_of(case.task, store) if x < session.opened_us]
    times = case.once(_times, case.application)
    before = bisect_right(times, case.once(_began_us, case.application) - 1)
    return max(*own, times[before - 1] if before else 0, 0), session.opened_us


def _is_alive(application: Application) -> bool:
    """Return whether a process of the application shows: by its lock, by that of a task, or by itself."""
    shown = application.life is not None or application.lock is LockState.HELD or bool(application.processes)
    return shown or any(task.held for task in application.tasks.values())


def _began_us(application: Application) -> int:
    """When the process began to open stores: what is older was written before it."""
    sessions = [
        x.sessions[0] for task in application.tasks.values() for x in task.stores.values() if x.sessions
    ]
    return min(session.opened_us for session in sessions)


def _times(application: Application) -> list[int]:
    """List all times below an application that are known, oldest first."""
    tasks = application.tasks.values()
    return sorted({x for task in tasks for store in task.stores.values() for x in _times_of(task, store)})


def _times_of(task: Task, store: Store) -> list[int]:
    times = [task.mtime_us, *(fact.written_us for fact in task.checkpoints)]
    for database in store.databases.values():
        times += [database.born_us, database.touched_us, database.options_written_us, *database.reopened_us]
        times += [written_us for _, written_us in database.flushed]
        times += [database.offsets.written_us] if database.offsets is not None else []
    return times
