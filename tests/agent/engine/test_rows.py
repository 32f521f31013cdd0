"""How tasks and stores stand: what is claimed, what is held, what is worst; and which release has written them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from agent.contract.events import Severity
from agent.engine.profiles import Profiles
from agent.engine.rows import is_held, offset_of, size_of, store_rows, worst_by_task
from agent.inventory.disk import LockState
from agent.inventory.model import Application, CheckpointFact, Database, Store, Task
from agent.inventory.observations import StoreOffsets
from agent.inventory.settings import SettingsBook
from tests.agent.cli.test_output import FINDING
from tests.support.scenario_case import at, database, store, task

INSIDE = StoreOffsets(None, 0, (("app-s-changelog", 7, 1), ("app-s-position", 3, 2)), 0, 0, 0)


def segmented(**offsets: int) -> Task:
    """A task with one store of two segments, and a checkpoint if there are offsets."""
    task = Task("app", "0_0", "app/0_0", exists=True)
    store = Store("s", segmented=True)
    for number, size in enumerate((100, 20)):
        name = f"s.{number}"
        store.databases[name] = Database(f"app/0_0/s/{name}", name, size_bytes=size, files=number + 1)
    store.databases["s.1"].offsets = INSIDE
    task.stores["s"] = store
    if offsets:
        task.checkpoints = (CheckpointFact(1, 1, offsets, (), 1, True),)
    return task


@pytest.mark.parametrize(
    ("lock", "held"),
    [(LockState.HELD, True), (LockState.FREE, False), (LockState.UNKNOWN, None), (None, None)],
)
def test_what_is_not_known_is_neither_held_nor_free(lock: LockState | None, held: bool | None) -> None:
    """A lock that nobody could ask about is None, as one that is not there."""
    assert is_held(lock) is held


def test_the_checkpoint_claims_before_the_store_itself() -> None:
    """What the checkpoint says of a store counts; without it the highest offset that is kept inside; else None."""
    task = segmented(s=42)
    databases = task.stores["s"].databases.values()
    assert offset_of(task, "s", databases) == 42
    assert offset_of(segmented(other=42), "s", databases) == 7
    assert offset_of(segmented(), "s", databases) == 7
    assert offset_of(segmented(), "s", [task.stores["s"].databases["s.0"]]) is None


def test_segments_are_one_row() -> None:
    """Sizes and files of a store's segments are added up; a store without any database has no row."""
    task = segmented()
    task.stores["gone"] = Store("gone", segmented=False)
    (row,) = store_rows(task)
    assert (row.store, row.offset, row.bytes, row.files) == ("s", 7, 120, 3)
    assert size_of(task) == 120


def test_the_worst_finding_of_a_task_and_of_its_application() -> None:
    """The order of findings does not matter; what concerns the application itself stands under no task."""
    loud = replace(FINDING, severity=Severity.CRITICAL)
    own = replace(FINDING, severity=Severity.INFO, task_id=None)
    for findings in ([FINDING, loud, own], [own, loud, FINDING]):
        assert worst_by_task(findings) == {
            ("orders", "0_3"): Severity.CRITICAL,
            ("orders", ""): Severity.INFO,
        }


PLAIN, OFFSETS = ("default",), ("default", "offsets")


@pytest.mark.parametrize(
    ("families", "plain", "has"),
    [
        pytest.param((), 0, "4.3.0 or later", id="wiped, and nothing came after it"),
        pytest.param((OFFSETS,), 10, "4.3.0 or later", id="upgraded"),
        pytest.param((OFFSETS, PLAIN), 30, "4.3.0 or later", id="beside a store of another making"),
        pytest.param((PLAIN,), 30, "any release", id="recreated by an older release"),
    ],
)
def test_family_that_is_gone(families, plain, has):
    """The family was last written at 20 s; newer stores without it, and none with it, show that it is gone."""
    app = Application("app", offsets_family_us=at(20), plain_us=at(plain) if plain else 0)
    app.tasks["0_0"] = task(*(store([database(families=x)], name=str(i)) for i, x in enumerate(families)))
    assert str(Profiles(SettingsBook({}, {})).of(app).range) == has
