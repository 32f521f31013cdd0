"""Task level of the reducer: lives of a directory, checkpoints, the shape of a deletion."""

from __future__ import annotations

import pytest

from agent.inventory.disk import Unseen
from agent.inventory.model import CHECKPOINTS_KEPT, Shape
from agent.inventory.task_changes import WALK_ENDS_AFTER_US
from agent.layout.checkpoint import OffsetEntry
from tests.support.scenario_case import at
from tests.support.scenario_looks import (
    DATABASE,
    FREE,
    GONE,
    HELD,
    TASK,
    UNKNOWN,
    Reducing,
    checkpoint_look,
    database_look,
    flush,
    known,
    lock_look,
    removal,
    task_look,
)


def working(*, lock: bool = False) -> Reducing:
    """A task that is held since 1 s, with a checkpoint of 100 written at 3 s."""
    one = Reducing()
    one.see(task_look(0.5, lock=HELD if lock else None), database_look(1, born=1))
    one.see(database_look(2, born=1, puts=100, flushes=(flush(6, 100, 2),)))
    one.see(checkpoint_look(3, {"s": 100}))
    return one


def released(**more) -> Reducing:
    """The same, let go at 10 s."""
    one = working(**more)
    one.see(database_look(10, born=1, puts=100, lock=FREE))
    return one


# -- lives --------------------------------------------------------------------------------------------------


def test_created_once():
    """The first look makes a life; the second is none."""
    one = Reducing()
    assert one.see(task_look(1)) == ["task-created"]
    assert one.see(task_look(2)) == []
    assert (one.task.incarnation, one.task.exists, one.task.first_seen_us) == (1, True, at(1))


def test_other_inode_is_another_life():
    """A directory that was replaced between two looks ended and began."""
    one = released()
    assert one.see(task_look(60, inode=11)) == [
        "store-deleted",
        "checkpoint-deleted",
        "task-deleted",
        "task-created",
    ]
    assert one.task.incarnation == 2
    assert one.task.past[-1].incarnation == 1


def test_end_keeps_what_was():
    """A deleted directory leaves its last offsets, its release and its shape."""
    one = released()
    one.see(removal(60, f"{DATABASE}/CURRENT"), task_look(62, unseen=GONE))
    past = one.task.past[-1]
    assert (past.offsets, past.released_us, past.shape) == ({"s": 100}, at(10), Shape.CLEANER_WALK)
    assert (past.begun_us, past.ended_us, past.held) == (at(60), at(62), False)
    assert (one.task.exists, one.task.lock, one.task.names, one.task.checkpoint) == (
        False,
        None,
        frozenset(),
        None,
    )


def test_end_is_told_once():
    """A directory that is gone cannot go again."""
    one = released()
    one.see(task_look(60, unseen=GONE))
    assert one.see(task_look(61, unseen=GONE), removal(61, TASK)) == []
    assert len(one.task.past) == 1


@pytest.mark.parametrize("unseen", [Unseen.DENIED, Unseen.RACED])
def test_look_that_failed_ends_nothing(unseen):
    """Not being allowed to look is not absence."""
    one = released()
    assert one.see(task_look(60, unseen=unseen)) == []
    assert one.task.exists


def test_late_announcement_of_the_old_life():
    """A removal that is read after its successor was met has been taken into account already."""
    one = released()
    one.see(task_look(60, inode=11))
    assert one.see(removal(59, TASK)) == []
    assert (one.task.exists, one.task.incarnation) == (True, 2)
    assert "task-deleted" in one.see(removal(61, TASK))


def test_wipes_are_counted():
    """Only the owner's own deletion is a wipe."""
    wiped = released()
    wiped.see(removal(10.1, f"{DATABASE}/CURRENT"), task_look(10.2, unseen=GONE))
    assert list(wiped.task.wiped_us) == [at(10.2)]
    cleaned = released()
    cleaned.see(removal(60, f"{DATABASE}/CURRENT"), task_look(61, unseen=GONE))
    assert not cleaned.task.wiped_us


def test_siblings_at_the_end():
    """Whether another task was held when this one went."""
    one = released()
    one.see(
        task_look(20, path="app/0_1", inode=30),
        database_look(21, "other", born=21, path="app/0_1/rocksdb/s"),
        task_look(60, unseen=GONE),
    )
    assert one.task.past[-1].siblings_held
    alone = released()
    alone.see(task_look(60, unseen=GONE))
    assert not alone.task.past[-1].siblings_held


# -- walks --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["CURRENT", "IDENTITY", "LOCK"])
def test_essential_file_begins_a_walk(name):
    """What no running store removes is part of a recursive deletion."""
    one = released()
    one.see(removal(60, f"{DATABASE}/{name}"))
    assert one.task.walk is not None
    assert (known(one.task.walk).shape, known(one.task.walk).held, known(one.task.walk).stores) == (
        Shape.CLEANER_WALK,
        False,
        {"s"},
    )


@pytest.mark.parametrize("name", ["000006.sst", "MANIFEST-000005"])
def test_data_file_of_an_idle_store(name):
    """A compaction or reopening drops such files; of a store that nobody holds they are part of a walk."""
    busy = working()
    busy.see(removal(5, f"{DATABASE}/{name}"))
    assert busy.task.walk is None
    idle = released()
    idle.see(removal(60, f"{DATABASE}/{name}"))
    assert idle.task.walk is not None


def test_data_file_after_an_open_that_nobody_saw():
    """LOG.old tells of an open since the release: the file was dropped by that."""
    one = released()
    one.see(database_look(50, born=1, puts=100, lock=FREE, reopened=(40,)))
    one.see(removal(60, f"{DATABASE}/000006.sst"))
    assert one.task.walk is None


@pytest.mark.parametrize("name", ["LOG", "LOG.old.1", "OPTIONS-000007", "000004.log"])
def test_files_that_say_nothing(name):
    """Info logs, options and empty logs come and go."""
    one = released()
    one.see(removal(60, f"{DATABASE}/{name}"))
    assert one.task.walk is None


def test_expired_segment_is_no_walk():
    """A held windowed store drops whole segments."""
    one = Reducing()
    path = f"{TASK}/w/w.0"
    one.see(task_look(0.5), database_look(1, "a", born=1, path=path))
    one.see(removal(5, f"{path}/CURRENT"), removal(5, path))
    assert one.task.walk is None
    one.see(database_look(10, "a", born=1, path=path, lock=FREE), removal(60, f"{path}/CURRENT"))
    assert one.task.walk is not None


@pytest.mark.parametrize(("seconds", "shape"), [(12, Shape.OWNER_WALK), (12.1, Shape.CLEANER_WALK)])
def test_two_seconds_tell_owner_from_cleaner(seconds, shape):
    """An owner deletes right after its close."""
    one = released()
    one.see(removal(seconds, f"{DATABASE}/CURRENT"))
    assert known(one.task.walk).shape is shape


def test_walk_of_a_held_task():
    """What goes while the task is held is its owner's work."""
    one = working(lock=True)
    one.see(removal(60, f"{DATABASE}/CURRENT"))
    assert (known(one.task.walk).shape, known(one.task.walk).held) == (Shape.OWNER_WALK, True)


def test_walk_of_a_task_that_nobody_was_seen_to_hold():
    """Without a session there is nobody to name."""
    one = Reducing()
    one.see(task_look(1), database_look(2, born=1, lock=FREE), removal(60, f"{DATABASE}/CURRENT"))
    assert known(one.task.walk).shape is Shape.UNKNOWN


def test_walk_goes_on_and_ends():
    """Each removal prolongs it; a quiet minute ends it."""
    one = released()
    one.see(removal(60, f"{DATABASE}/CURRENT"), removal(90, f"{DATABASE}/000006.sst"))
    assert known(one.task.walk).last_us == at(90)
    limit = 90 + WALK_ENDS_AFTER_US / 1_000_000
    one.see(task_look(limit))
    assert one.task.walk is not None
    one.see(task_look(limit + 0.1))
    assert one.task.walk is None


def test_new_store_ends_a_walk():
    """A store made after the last removal shows that the walk is over; one made before does not."""
    one = released()
    one.see(removal(60, f"{DATABASE}/CURRENT"))
    one.see(database_look(61, "identity-2", born=59, lock=FREE))
    assert one.task.walk is not None
    one.see(database_look(63, "identity-3", born=62, lock=FREE))
    assert one.task.walk is None


def test_checkpoint_in_a_walk():
    """A checkpoint that goes during a walk is part of it, one that goes by itself is not."""
    alone = released()
    alone.see(removal(60, f"{TASK}/.checkpoint"))
    assert (alone.task.checkpoints[-1].deleted, alone.task.checkpoints[-1].in_walk) == (True, False)
    walked = released()
    walked.see(removal(60, f"{DATABASE}/CURRENT"), removal(61, f"{TASK}/.checkpoint"))
    assert walked.task.checkpoints[-1].in_walk


@pytest.mark.parametrize(("seconds", "in_walk"), [(62, True), (62.1, False)])
def test_checkpoint_just_before_a_cleaners_walk(seconds, in_walk):
    """A checkpoint that went up to two seconds before was the walk's first victim."""
    one = released()
    one.see(removal(60, f"{TASK}/.checkpoint"), removal(seconds, f"{DATABASE}/CURRENT"))
    assert one.task.checkpoints[-1].in_walk is in_walk


def test_checkpoint_just_before_an_owners_walk():
    """An owner deletes the checkpoint at its initialization: that is no part of the wipe."""
    one = working(lock=True)
    one.see(removal(5, f"{TASK}/.checkpoint"), removal(5.1, f"{DATABASE}/CURRENT"))
    assert not one.task.checkpoints[-1].in_walk


# -- checkpoints --------------------------------------------------------------------------------------------


def test_checkpoint_is_told_with_the_puts_of_its_time():
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
    """A directory made anew does not inherit the problem of the one before."""
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


# -- locks --------------------------------------------------------------------------------------------------


def test_task_lock():
    """A held task lock holds the task, however its stores are."""
    one = Reducing()
    assert one.see(task_look(1, lock=HELD)) == ["task-created", "task-held"]
    assert one.application.task_lock_ever_held
    assert one.see(lock_look(5, FREE)) == ["task-released"]
    assert (one.task.released_us, one.task.held) == (at(5), False)


def test_never_seen_held():
    """A task that was free when the agent came was released nobody knows when."""
    one = Reducing()
    one.see(task_look(1), database_look(2, born=1, lock=FREE))
    assert (one.task.held, one.task.released_us) == (False, None)
    one.see(task_look(60, unseen=GONE))
    assert one.task.past[-1].released_us is None


def test_checkpoint_long_after_a_walks_last_removal():
    """A walk removes a file a second; a checkpoint that goes much later goes by the next owner's hand."""
    one = released()
    one.see(removal(60, f"{DATABASE}/CURRENT"), removal(66, f"{TASK}/.checkpoint"))
    assert not one.task.checkpoints[-1].in_walk


def test_unknown_lock_keeps_what_is_known():
    """A query that failed does not free a task."""
    one = Reducing()
    one.see(task_look(1, lock=HELD))
    assert one.see(lock_look(5, UNKNOWN)) == []
    assert one.task.held


def test_probe_is_remembered():
    """Somebody tried the lock and let go: a sign of life, not a holding."""
    one = released(lock=True)
    one.see(lock_look(11, FREE))
    one.see(lock_look(50, FREE, announced=True))
    assert one.task.lock_probed_us == at(50)
    one.see(lock_look(51, FREE))
    assert one.task.lock_probed_us == at(50)
