"""When a store is looked at again: how soon for which reason, and when not."""

from __future__ import annotations

from dataclasses import replace

import pytest

from agent.engine.rereads import (
    RACED_AGAIN_US,
    READ_ON_US,
    SETTLE_US,
    TORN_AGAIN_US,
    WAITS_US,
    database_at,
    databases,
    is_being_deleted,
    reread_us,
)
from agent.inventory.disk import Unseen
from agent.inventory.model import Deletion, Inventory, Shape
from agent.layout.paths import classify
from tests.support.scenario_case import at, case, database, store, task
from tests.support.scenario_looks import database_look

SHORT = "000007.sst: corrupt: file is too short"
LOOK = database_look(20)


@pytest.mark.parametrize(
    ("look", "again_us"),
    [
        (LOOK, 0),
        (database_look(20, unseen=Unseen.RACED), SETTLE_US),
        (database_look(20, unseen=Unseen.VANISHED), 0),
        (replace(LOOK, manifest_problem="raced"), RACED_AGAIN_US),
        (replace(LOOK, manifest_problem="vanished"), 0),
        (replace(LOOK, goes_on=True), READ_ON_US),
        (replace(LOOK, goes_on=True, waits=True), WAITS_US),
        (replace(LOOK, missing_files=("000004.sst",)), TORN_AGAIN_US),
        (replace(LOOK, leftovers=3), TORN_AGAIN_US),
        (replace(LOOK, problems=(SHORT,)), TORN_AGAIN_US),
    ],
)
def test_how_soon(look, again_us):
    """Each unsettled look has its time; a settled one none."""
    assert reread_us(look, None, is_deleted=False) == again_us


@pytest.mark.parametrize(
    ("since", "is_deleted", "again_us"),
    [(20, False, TORN_AGAIN_US), (15.1, False, TORN_AGAIN_US), (15, False, 0), (15, True, TORN_AGAIN_US)],
)
def test_twice_is_enough(since, is_deleted, again_us):
    """What two looks have found is settled, unless a deletion may be the reason."""
    one = database()
    one.problems, one.problem_since_us = (SHORT,), {SHORT: at(since)}
    look = replace(LOOK, problems=(SHORT,))
    assert reread_us(look, one, is_deleted=is_deleted) == again_us


def test_databases():
    """Stores, segments and what is not there."""
    plain, segment = database(), database(segment="w.60000")
    one = task(store([plain]), store([segment], name="w", segmented=True))
    inventory = case(one).inventory
    assert list(databases(inventory)) == [plain, segment]
    assert database_at(inventory, classify("app/0_0/rocksdb/s")) is plain
    assert database_at(inventory, classify("app/0_0/w/w.60000")) is segment
    for path in ("app/0_0/rocksdb/other", "app/0_0/w/w.0", "app/1_1/rocksdb/s", "other/0_0/rocksdb/s", "app"):
        assert database_at(inventory, classify(path)) is None
    assert list(databases(Inventory())) == []


def test_being_deleted():
    """A deletion is under way until nothing went for five seconds."""
    one = task()
    assert not is_being_deleted(None, at(20))
    assert not is_being_deleted(one, at(20))
    one.walk = Deletion(at(10), at(15.1), Shape.CLEANER_WALK, held=False)
    assert is_being_deleted(one, at(20))
    assert not is_being_deleted(one, at(20.1))
