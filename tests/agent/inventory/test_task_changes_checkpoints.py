"""Task level of the reducer: contents of the checkpoint, and the marks that they leave in sessions."""

from __future__ import annotations

import pytest

from agent.inventory.disk import Unseen
from agent.inventory.model import CHECKPOINTS_KEPT
from agent.layout.checkpoint import OffsetEntry
from tests.support.scenario_case import at
from tests.support.scenario_looks import (
    GONE,
    TASK,
    Reducing,
    checkpoint_look,
    database_look,
    flush,
    known,
    removal,
    task_look,
    working,
)


def test_checkpoint_is_reported_with_the_puts_of_its_time():
    """Offsets before and after, and what was on disk when it was written."""
    one = working()
    one.see(database_look(8, born=1, puts=300, flushes=(flush(7, 300, 7),)))
    assert one.see(checkpoint_look(9, {"s": 250}, written=6)) == ["checkpoint-written"]
    facts = one.changes[0].facts
    assert (facts["offset_before"], facts["offset_after"], facts["puts"], facts["held"]) == (
        100,
        250,
        100,
        True,
    )
    assert facts["occurred_at_us"] == at(6)


def test_same_checkpoint_again():
    """The same content of the same time is no event; a rewrite is, even with the same offset."""
    one = working()
    assert one.see(checkpoint_look(9, {"s": 100}, written=3)) == []
    assert one.see(checkpoint_look(9, {"s": 100}, written=8)) == ["checkpoint-written"]
    assert one.task.checkpoints[0].ended_us == at(8)
    assert not one.task.checkpoints[0].deleted


def test_marks_of_a_session():
    """The first and the last checkpoint of a session, each with the puts of its time."""
    one = working()
    one.see(database_look(8, born=1, puts=300, flushes=(flush(7, 300, 7),)), checkpoint_look(9, {"s": 300}))
    session = one.store.sessions[-1]
    assert (known(session.first).offset, known(session.first).puts) == (100, 100)
    assert (known(session.last).offset, known(session.last).puts, known(session.last).at_us) == (
        300,
        300,
        at(9),
    )


def test_checkpoint_from_before_the_session():
    """A file that is older than the opening marks nothing in it."""
    one = Reducing()
    one.see(task_look(0.5), database_look(5, born=5), checkpoint_look(6, {"s": 9}, written=2))
    assert one.store.sessions[-1].first is None


def test_checkpoint_of_other_stores():
    """An entry of a store that is not there marks nothing, foreign entries are kept apart."""
    one = working()
    other = (OffsetEntry("app-s-changelog", 7, 5), OffsetEntry("source", 0, 6))
    one.see(checkpoint_look(9, {"x": 50}, foreign=other))
    assert known(one.store.sessions[-1].last).offset == 100
    assert known(one.task.checkpoint).offsets == {"x": 50}
    assert known(one.task.checkpoint).foreign == other


def test_vanished_checkpoint():
    """A look that finds none ends the one that was there, once."""
    one = working()
    assert one.see(checkpoint_look(9, unseen=GONE)) == ["checkpoint-deleted"]
    assert one.see(checkpoint_look(10, unseen=GONE)) == []
    assert one.task.checkpoint is None


def test_late_removal_of_an_older_checkpoint():
    """A removal announced before the present file was written speaks of another file."""
    one = working()
    assert one.see(removal(2.9, f"{TASK}/.checkpoint")) == []
    assert one.task.checkpoint is not None
    assert one.see(removal(3.1, f"{TASK}/.checkpoint")) == ["checkpoint-deleted"]


def test_denied_checkpoint():
    """Not being allowed to read it says nothing."""
    one = working()
    assert one.see(checkpoint_look(9, unseen=Unseen.DENIED)) == []
    assert one.task.checkpoint is not None


def test_malformed_checkpoint():
    """Told once per reason; a good one clears it; the last good content stays known."""
    one = working()
    assert one.see(checkpoint_look(9, problem="bad")) == ["checkpoint-malformed"]
    assert one.see(checkpoint_look(10, problem="bad")) == []
    assert one.see(checkpoint_look(11, problem="worse")) == ["checkpoint-malformed"]
    assert one.task.checkpoint_problem == "worse"
    one.see(checkpoint_look(12, {"s": 200}))
    assert one.task.checkpoint_problem is None


@pytest.mark.parametrize("gone", [checkpoint_look(10, unseen=GONE), removal(10, f"{TASK}/.checkpoint")])
def test_malformed_checkpoint_that_is_gone(gone):
    """A file that is no longer there has no problem."""
    one = working()
    one.see(checkpoint_look(9, problem="bad"), gone)
    assert one.task.checkpoint_problem is None


def test_malformed_checkpoint_of_another_life():
    """A directory recreated does not inherit the problem of the one before."""
    one = working()
    one.see(checkpoint_look(9, problem="bad"), task_look(20, unseen=GONE), task_look(21, inode=11))
    assert one.task.checkpoint_problem is None


def test_custom_stores_checkpoint_is_not_the_tasks():
    """`.checkpoint_<store>` is another file."""
    one = working()
    assert one.see(checkpoint_look(9, {"s": 1}, path=f"{TASK}/.checkpoint_s")) == []
    assert known(one.task.checkpoint).offsets == {"s": 100}


def test_history_is_bounded():
    """Old contents are forgotten."""
    one = working()
    for number in range(CHECKPOINTS_KEPT + 5):
        one.see(checkpoint_look(10 + number, {"s": number}))
    assert len(one.task.checkpoints) == CHECKPOINTS_KEPT
