"""The dossier's own questions: puts over time, locks of a store, entries of a checkpoint."""

from __future__ import annotations

import pytest

from agent.inventory.disk import LockState
from agent.inventory.model import Task
from agent.inventory.recent import recent
from agent.inventory.stores import FLUSHES_KEPT, Database
from agent.inventory.timeline import Timeline
from agent.layout.checkpoint import OffsetEntry
from tests.support.scenario_case import at, checkpoint, database, session, store, task
from tests.support.scenario_looks import known

HELD, FREE, UNKNOWN = LockState.HELD, LockState.FREE, LockState.UNKNOWN


def test_puts_at():
    """The timeline tells what was on disk at a time: nothing before the first flush, the flush itself included."""
    one = database(puts=300, flushed=[(100, 10), (300, 20)])
    assert [one.puts_at(at(x)) for x in (9, 10, 19.9, 20, 100)] == [0, 100, 100, 300, 300]


def test_puts_at_before_what_is_remembered():
    """Where older flushes were dropped, the last dropped count is the floor."""
    one = database(flushed=[(300, 20)])
    one.dropped_puts = 200
    assert one.puts_at(at(10)) == 200


def test_timeline_is_bounded():
    """A task's memory has an end."""
    one = Database("p", None)
    for puts in range(2 * FLUSHES_KEPT):
        one.flushed = Timeline(recent((*one.flushed,), (puts, at(puts)), FLUSHES_KEPT))
    assert len(one.flushed) == FLUSHES_KEPT
    assert one.flushed[-1] == (2 * FLUSHES_KEPT - 1, at(2 * FLUSHES_KEPT - 1))


def test_puts_of_a_store():
    """Segments add up, expired ones included."""
    one = store(
        [database(puts=5, segment="w.0", flushed=[(5, 1)]), database(puts=7, segment="w.1", flushed=[(7, 9)])]
    )
    one.retired_puts = 100
    assert one.puts == 112
    assert one.puts_at(at(5)) == 105


@pytest.mark.parametrize(
    ("locks", "answer"),
    [
        ([HELD, FREE], HELD),
        ([FREE, UNKNOWN], UNKNOWN),
        ([UNKNOWN, HELD], HELD),
        ([FREE, None], FREE),
        ([None], None),
        ([], None),
    ],
)
def test_lock_of_a_store(locks, answer):
    """Held wins, then what could not be asked, then free."""
    one = store([database(lock=lock, segment=f"w.{n}") for n, lock in enumerate(locks)])
    assert one.lock is answer


def test_identity_is_that_of_the_oldest_segment():
    """Of several databases the first born stands for the incarnation."""
    one = store(
        [database(segment="w.1", born=9, identity="b"), database(segment="w.0", born=1, identity="a")]
    )
    assert (one.identity, one.identities) == ("a", frozenset({"a", "b"}))
    assert store().identity is None


def test_session_is_the_one_that_lasts():
    """A released session is history."""
    assert store(sessions=[session(0, 5)]).session is None
    assert store(sessions=[session(0, 5), session(6)]).session is not None
    assert store().session is None


def test_checkpoint_on_disk():
    """Only the last content, and only while it has not ended."""
    assert task().checkpoint is None
    assert task(checkpoints=[checkpoint(1, 5, ended=2)]).checkpoint is None
    assert task(checkpoints=[checkpoint(1, 5, ended=2), checkpoint(2, 6)]).checkpoint is not None


def test_checkpoint_at():
    """The newest content written before a time, in any life of the directory; not one written at that very time."""
    one = task(checkpoints=[checkpoint(1, 5, ended=2), checkpoint(2, 6)])
    assert one.checkpoint_at(at(1)) is None
    assert known(one.checkpoint_at(at(2))).offsets == {"s": 5}
    assert known(one.checkpoint_at(at(2.1))).offsets == {"s": 6}


@pytest.mark.parametrize(
    ("task_id", "entry", "name"),
    [
        ("0_3", OffsetEntry("app-s-changelog", 3, 1), "s"),
        ("0_3", OffsetEntry("app-s-changelog", 2, 1), None),
        ("0_3", OffsetEntry("other-s-changelog", 3, 1), None),
        ("0_3", OffsetEntry("input", 3, 1), None),
        ("global", OffsetEntry("app-s-changelog", 5, 1), "s"),
        ("__top__/0_3", OffsetEntry("app-top-s-changelog", 3, 1), "s"),
        ("__top__/0_3", OffsetEntry("app-s-changelog", 3, 1), None),
    ],
)
def test_store_of_an_entry(task_id, entry, name):
    """An entry belongs to a store by its topic and partition; a named topology puts its name into the topic."""
    assert Task("app", task_id, f"app/{task_id}").store_of(entry) == name


def test_partition():
    """The number after the underscore; global stores have none."""
    assert Task("app", "10_7", "p").partition == 7
    assert Task("app", "global", "p").partition is None
    assert Task("app", "global", "p").is_global
    assert not Task("app", "0_0", "p").is_global
