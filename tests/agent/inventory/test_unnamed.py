"""Store directories that are there and have nothing of a database in them."""

from __future__ import annotations

from typing import Any

from agent.inventory.disk import Unseen
from tests.support.scenario_case import at
from tests.support.scenario_looks import FREE, GONE, Reducing, database_look, task_look

EMPTY: dict[str, Any] = {"lock": None, "manifest": None}


def seen(*looks) -> Reducing:
    one = Reducing()
    one.see(task_look(0.5), *looks)
    return one


def test_empty_directory():
    """Since the first look that found it so, until something of a database is in it, or it goes."""
    one = seen(database_look(1, None, **EMPTY), database_look(5, None, **EMPTY))
    assert one.task.bare == {"s": at(1)}
    assert set(one.task.stores) == set()
    one.see(database_look(7, unseen=Unseen.DENIED))
    assert one.task.bare == {"s": at(1)}
    for look in (
        database_look(9, born=9),
        database_look(9, None, leftovers=2),
        database_look(9, unseen=GONE),
    ):
        one = seen(database_look(1, None, **EMPTY), look)
        assert one.task.bare == {}


def test_empty_segment():
    """A segment that is being made or deleted says nothing of its store."""
    assert seen(database_look(1, None, path="app/0_0/w/w.0", **EMPTY)).task.bare == {}


def test_the_task_goes():
    """And with it what was in it."""
    one = seen(database_look(1, None, **EMPTY))
    one.see(task_look(5, unseen=GONE))
    assert one.task.bare == {}


def test_a_store_that_was_emptied():
    """It ends, and its directory is empty."""
    one = seen(database_look(1, born=1, lock=FREE), database_look(5, None, **EMPTY))
    assert (one.task.bare, one.store.databases) == ({"s": at(5)}, {})
