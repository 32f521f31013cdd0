"""The reducer's doorstep: which observations are taken at all, and who holds a task."""

from __future__ import annotations

import pytest

from agent.inventory.disk import Unseen
from agent.inventory.model import Inventory
from agent.inventory.reduce import reduce_observation, task_is_held
from tests.support.scenario_case import at, database, store, task
from tests.support.scenario_looks import (
    FREE,
    HELD,
    TASK,
    UNKNOWN,
    Reducing,
    checkpoint_look,
    database_look,
    lock_look,
    removal,
    task_look,
)


def test_application_of_a_task_that_is_seen_first():
    """A look at a task makes the dossier of its application, dated to it."""
    inventory = Inventory()
    reduce_observation(inventory, task_look(3))
    assert inventory.applications["app"].first_seen_us == at(3)
    assert inventory.applications["app"].tasks["0_0"].first_seen_us == at(3)


def test_only_tasks_are_tasks():
    """Another directory of the application, or a topology, gets no dossier."""
    one = Reducing()
    assert one.see(task_look(1, path="app/backup")) == []
    assert one.application.tasks == {}
    one.see(task_look(1, path="app/global"), task_look(1, path="app/__t__/0_1"))
    assert set(one.application.tasks) == {"global", "__t__/0_1"}


@pytest.mark.parametrize(
    "look",
    [
        task_look(1, unseen=Unseen.VANISHED),
        task_look(1, unseen=Unseen.DENIED),
        database_look(1, unseen=Unseen.VANISHED),
        removal(1, TASK),
        removal(1, f"{TASK}/.checkpoint"),
    ],
)
def test_absence_makes_no_task(look):
    """A task that was never there did not go."""
    one = Reducing()
    assert one.see(look) == []
    assert one.application.tasks == {}


def test_locks_by_their_place():
    """`.lock` of the application is not that of a task, and `LOCK` of a store is neither."""
    one = Reducing()
    assert one.see(lock_look(1, HELD, "app/.lock")) == ["process-started"]
    assert one.application.tasks == {}
    one.see(task_look(2), lock_look(3, HELD, f"{TASK}/rocksdb/s/LOCK"))
    assert one.task.lock is None
    assert one.see(lock_look(4, HELD)) == ["task-held"]


def test_first_answer_is_no_release():
    """A task that is free when it is first seen was not let go now; later it was, and is dated."""
    one = Reducing()
    assert one.see(task_look(1), lock_look(2, FREE)) == ["task-created"]
    assert (one.task.held, one.task.released_us, one.application.task_ever_held) == (False, None, False)
    assert one.see(lock_look(3, HELD)) == ["task-held"]
    assert one.application.task_ever_held
    assert one.task.held_since_us == at(3)
    assert one.see(lock_look(4, HELD)) == []
    assert one.see(lock_look(5, FREE)) == ["task-released"]
    assert (one.task.released_us, one.task.held_since_us) == (at(5), at(3))


def test_activity_is_dated_to_changes():
    """A look that changes nothing is no activity."""
    one = Reducing()
    one.see(task_look(1), checkpoint_look(2, {"s": 1}))
    assert (one.task.changed_us, one.application.last_activity_us) == (at(2), at(2))
    one.see(checkpoint_look(9, {"s": 1}, written=2))
    assert (one.task.changed_us, one.application.last_activity_us) == (at(2), at(2))


@pytest.mark.parametrize(
    ("own", "stores", "before", "held"),
    [
        (HELD, (), None, True),
        (FREE, (HELD,), None, True),
        (UNKNOWN, (HELD,), None, True),
        (FREE, (FREE, HELD), None, True),
        (FREE, (UNKNOWN,), None, None),
        (UNKNOWN, (FREE,), None, None),
        (FREE, (), None, False),
        (None, (FREE,), None, False),
        (None, (), None, None),
        (None, (), False, None),
        (None, (), True, False),
    ],
)
def test_holder(own, stores, before, held):
    """Any held lock holds the task; an unknown one leaves it open; without any lock a held task was let go."""
    one = task(*(store([database(lock=x)], name=f"s{n}") for n, x in enumerate(stores)))
    one.lock, one.held = own, before
    assert task_is_held(one) is held
