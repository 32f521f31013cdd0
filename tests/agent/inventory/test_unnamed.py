"""Store directories that are there and have nothing of a database in them."""

from __future__ import annotations

import pytest

from agent.inventory.disk import Unseen
from tests.support.scenario_case import at
from tests.support.scenario_looks import FREE, GONE, Reducing, database_look, task_look

FOUND = database_look(1, None, lock=None, manifest=None)
AGAIN = database_look(5, None, lock=None, manifest=None)


@pytest.mark.parametrize(
    ("looks", "bare"),
    [
        ((FOUND, AGAIN), {"s": at(1)}),  # since the first look that found it so
        ((FOUND, database_look(7, unseen=Unseen.DENIED)), {"s": at(1)}),
        ((FOUND, database_look(9, born=9)), {}),  # until something of a database is in it
        ((FOUND, database_look(9, None, leftovers=2)), {}),
        ((FOUND, database_look(9, unseen=GONE)), {}),  # or it goes
        ((FOUND, task_look(5, unseen=GONE)), {}),
        (
            (database_look(1, None, path="app/0_0/w/w.0", lock=None, manifest=None),),
            {},
        ),  # a segment says nothing
        ((database_look(1, born=1, lock=FREE), AGAIN), {"s": at(5)}),  # a store that was emptied
    ],
)
def test_empty_directory(looks, bare):
    """Noted with its beginning; no store is made of it."""
    one = Reducing()
    one.see(task_look(0.5), *looks)
    assert one.task.bare == bare
    assert not any(x.databases for x in one.task.stores.values() if bare)
