"""After an absence: whether a task directory is the one that is known."""

from __future__ import annotations

import pytest

from agent.contract.events import Source
from agent.inventory.absence import Absence
from agent.inventory.disk import LockState
from agent.inventory.model import Application, Inventory, Task
from agent.inventory.observations import TaskReading
from agent.layout.paths import classify
from tests.support.scenario_case import at, checkpoint, database, session, store, task
from tests.support.scenario_looks import FREE, database_look

INODE = 10


def known(*, deleted: bool = False) -> Task:
    """A task with two stores and the checkpoint of 10 s."""
    one = task(
        store([database()]),
        store([database(identity="identity-2", segment="w.0")], name="w", segmented=True),
        checkpoints=[checkpoint(10, 3000, ended=20 if deleted else None, deleted=deleted)],
    )
    one.inode = INODE
    return one


class Files:
    """Identities in the places of the databases that are known, and the time of the checkpoint."""

    def __init__(self, one: Task, identities: list[str | None], written: float | None) -> None:
        self.identities = dict(zip(one.database_paths, identities, strict=False))
        self.written = written

    def identity(self, path: str) -> str | None:
        return self.identities.get(path)

    def written_us(self, path: str) -> int | None:
        assert path == "app/0_0/.checkpoint"
        return None if self.written is None else at(self.written)


def is_recognised(one: Task, identities: list[str | None], written: float | None) -> bool:
    """Whether the directory is taken for the one that is known; its inode number is the same."""
    inventory = Inventory({"app": Application("app", tasks={"0_0": one})})
    look = TaskReading(classify("app/0_0"), at(40), Source.BASELINE, inode=INODE)
    Absence(inventory, at(30)).prepare(look, Files(one, identities, written))
    forgotten = {each.forgotten_us for each in one.stores.values()}
    assert forgotten == ({0} if one.inode == INODE else {at(30)})
    return one.inode == INODE


@pytest.mark.parametrize("written", [None, 10, 40])
@pytest.mark.parametrize(
    "identities", [["identity-1", "identity-2"], ["identity-1", "new"], [None, None], []]
)
def test_one_store_that_stayed_identifies_the_directory(identities, written):
    """A wipe of single stores, segments that expired, and a directory that was emptied make no other directory."""
    assert is_recognised(known(), identities, written)


@pytest.mark.parametrize("identities", [["new", "newer"], ["new", None]])
@pytest.mark.parametrize(("written", "same"), [(None, False), (40, False), (10, True)])
def test_only_new_stores_and_another_checkpoint_make_another_directory(identities, written, same):
    """The checkpoint that was known, still there, says that the directory was not deleted."""
    assert is_recognised(known(), identities, written) is same


@pytest.mark.parametrize("segments", [("",), ("w.0", "w.60000")])
@pytest.mark.parametrize(("written", "is_known"), [(10, True), (35, False)])
@pytest.mark.parametrize("held", [True, False])
def test_what_the_first_opening_found(
    segments: tuple[str, ...], written: float, held: bool, is_known: bool
) -> None:
    """It was opened and let go: a session that had ended left that, or one that no close followed; once a store."""
    of = [database(identity=f"id-{x}", segment=x or None) for x in segments]
    before = session(5, None if held else 20, identity="id-" + segments[0], puts=7)
    name = "w" if len(of) > 1 else "s"
    one = task(store(of, [before], name=name, segmented=name == "w"), checkpoints=[checkpoint(10, 3000)])
    known_store = one.stores[name]
    for x in of:
        x.lock = LockState.HELD if held else LockState.FREE
    absence = Absence(Inventory({"app": Application("app", tasks={"0_0": one})}), at(30))
    for x in of:
        absence.prepare(
            database_look(50, x.identity, lock=FREE, reopened=(40, 45), path=x.path, puts=9),
            Files(one, [], written),
        )
    left = known_store.unwatched
    assert (left is not None) == (is_known or not held)
    assert left is None or (known_store.unwatched_us, left.opened_us) == (at(40), at(5))
    assert known_store.sessions == ()
