"""(inventory, observation) -> transitions: the heart of the agent. Deterministic, no I/O, no clock.

The inventory is changed in place (a copy per observation would cost more than everything else), but only
here and in the three modules beside it; the same observations in the same order give the same inventory.
"""

from __future__ import annotations

from agent.contract.events import Change
from agent.inventory.application_changes import reduce_application, reduce_application_lock
from agent.inventory.closings import closings
from agent.inventory.disk import LockState
from agent.inventory.model import Application, Inventory, Task
from agent.inventory.observations import (
    ApplicationReading,
    CheckpointReading,
    DatabaseReading,
    LockReading,
    Observation,
    Removal,
    TaskReading,
)
from agent.inventory.sessions import close_sessions, open_sessions
from agent.inventory.store_changes import reduce_database
from agent.inventory.task_changes import (
    end_quiet_walk,
    reduce_checkpoint,
    reduce_removal,
    reduce_task,
    reduce_task_lock,
)
from agent.inventory.transitions import Transition, change_of
from agent.layout.names import GLOBAL_DIRECTORY, TASK_DIRECTORY
from agent.layout.paths import PathRole


def reduce_observation(inventory: Inventory, reading: Observation) -> list[Transition]:
    """Take one observation into the inventory, which is changed in place; return what to report, in order.

    Readings of the same path must come in time order; readings of different paths may come in any order.
    """
    place = reading.place
    if place.application is None:
        return []
    application = inventory.applications.get(place.application)
    if isinstance(reading, ApplicationReading):
        return reduce_application(inventory, reading)
    if isinstance(reading, Removal) and place.role is PathRole.APPLICATION:
        return []
    if application is None:
        application = inventory.applications[place.application] = Application(
            place.application, first_seen_us=reading.at_us
        )
    if place.task is None:
        if isinstance(reading, LockReading) and place.role is PathRole.APPLICATION_LOCK:
            return reduce_application_lock(application, reading)
        return []
    is_task = place.task == GLOBAL_DIRECTORY or TASK_DIRECTORY.fullmatch(place.task.rpartition("/")[2])
    if not isinstance(reading, Removal) and not is_task:
        return []
    return _reduce_in_task(application, reading)


def _reduce_in_task(application: Application, reading: Observation) -> list[Transition]:
    place = reading.place
    assert place.task is not None
    task = application.tasks.get(place.task)
    if task is None:
        if reading.unseen is not None or isinstance(reading, Removal):
            return []
        task = application.tasks[place.task] = Task(
            application.id, place.task, f"{application.id}/{place.task}", first_seen_us=reading.at_us
        )
    changes: list[Transition] = []
    if isinstance(reading, Removal):
        changes += reduce_removal(application, task, reading)
    elif isinstance(reading, TaskReading):
        changes += reduce_task(application, task, reading)
    elif isinstance(reading, CheckpointReading):
        changes += reduce_checkpoint(task, reading)
    elif isinstance(reading, DatabaseReading):
        changes += reduce_database(application, task, reading)
    elif isinstance(reading, LockReading) and place.role is PathRole.TASK_LOCK:
        reduce_task_lock(application, task, reading)
    if task.walk is not None:
        end_quiet_walk(task, reading.at_us)
    if _may_change_holder(reading):
        open_sessions(application, task, reading)
        changes += closings(task, close_sessions(task, reading), reading)
        changes += _settle_holder(application, task, reading)
    if changes:
        task.changed_us = reading.at_us
        application.last_activity_us = reading.at_us
    return changes


def _may_change_holder(reading: Observation) -> bool:
    """Return whether a reading can change who holds what.

    A checkpoint or the removal of a name, unless that is the task's own, says nothing of locks and databases: sessions
    and holder are as the reading before it left them. Of a busy application two thirds of all readings are of these.
    """
    if isinstance(reading, Removal):
        return reading.place.role is PathRole.TASK
    return not isinstance(reading, CheckpointReading)


def _settle_holder(application: Application, task: Task, reading: Observation) -> list[Transition]:
    held = task_is_held(task)
    if held is None or held == task.held:
        return []
    before = task.held
    task.held = held
    if held:
        task.held_since_us = reading.at_us
        application.task_ever_held = True
    elif before:
        task.released_us = reading.at_us
    if before is None and not held:
        return []
    change = Change.TASK_HELD if held else Change.TASK_RELEASED
    return [change_of(change, reading, held=held)]


def task_is_held(task: Task) -> bool | None:
    """Return whether a process holds the task: its `.lock` (up to 2.8) or a `LOCK` of a store; None = unknown."""
    states = {store.lock for store in task.stores.values()} | {task.lock}
    if LockState.HELD in states:
        return True
    if LockState.UNKNOWN in states:
        return None
    return False if LockState.FREE in states or task.held else None
