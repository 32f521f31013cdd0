"""Task level of the reducer: lives of a directory, checkpoints, the shape of a deletion."""

from __future__ import annotations

import pytest

from agent.inventory.disk import Unseen
from agent.inventory.model import Shape
from agent.inventory.task_changes import WALK_ENDS_AFTER_US
from tests.support.scenario_case import at
from tests.support.scenario_looks import (
    DATABASE,
    FREE,
    GONE,
    HELD,
    TASK,
    UNKNOWN,
    Reducing,
    database_look,
    known,
    lock_look,
    removal,
    task_look,
    working,
)


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
    assert (past.started_us, past.ended_us, past.held) == (at(60), at(62), False)
    assert (one.task.exists, one.task.lock, one.task.names, one.task.checkpoint) == (
        False,
        None,
        frozenset(),
        None,
    )


def test_end_is_reported_once():
    """A directory that is gone cannot go again."""
    one = released()
    one.see(task_look(60, unseen=GONE))
    assert one.see(task_look(61, unseen=GONE), removal(61, TASK)) == []
    assert len(one.task.past) == 1


@pytest.mark.parametrize("unseen", [Unseen.DENIED, Unseen.RACED])
def test_reading_that_failed_ends_nothing(unseen):
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


@pytest.mark.parametrize("name", ["000006.sst", "MANIFEST-000005", "OPTIONS-000007", "000004.log"])
def test_data_file_of_an_idle_store(name):
    """A compaction or reopening drops such files; of a store that nobody holds they are part of a walk."""
    busy = working()
    busy.see(removal(5, f"{DATABASE}/{name}"))
    assert busy.task.walk is None
    idle = released()
    idle.see(removal(60, f"{DATABASE}/{name}"))
    assert idle.task.walk is not None


def test_data_file_after_an_open_that_no_one_saw():
    """LOG.old tells of an open since the release: the file was dropped by that."""
    one = released()
    one.see(database_look(50, born=1, puts=100, lock=FREE, reopened=(40,)))
    one.see(removal(60, f"{DATABASE}/000006.sst"))
    assert one.task.walk is None


def test_data_file_where_opens_leave_no_trace():
    """RocksDB was told to keep its LOG elsewhere: an open that nobody saw may have dropped the file."""
    one = released()
    one.see(database_look(50, born=1, puts=100, lock=FREE, all_reopens=False))
    one.see(removal(60, f"{DATABASE}/000006.sst"))
    assert one.task.walk is None
    one.see(removal(61, f"{DATABASE}/CURRENT"))
    assert one.task.walk is not None


@pytest.mark.parametrize("name", ["LOG", "LOG.old.1"])
def test_files_that_say_nothing(name):
    """Info logs come and go: an open renames the one before it takes the LOCK."""
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
def test_two_seconds_distinguish_owner_from_cleaner(seconds, shape):
    """An owner deletes right after its close."""
    one = released()
    one.see(removal(seconds, f"{DATABASE}/CURRENT"))
    assert known(one.task.walk).shape is shape


def test_walk_of_a_held_task():
    """What goes while the task is held is its owner's work."""
    one = working(lock=True)
    one.see(removal(60, f"{DATABASE}/CURRENT"))
    assert (known(one.task.walk).shape, known(one.task.walk).held) == (Shape.OWNER_WALK, True)


def test_walk_of_a_task_that_no_one_was_seen_to_hold():
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


@pytest.mark.parametrize(("freed", "in_walk"), [(9.7, False), (9.8, True), (10.2, True)])
def test_walk_under_the_tasks_lock_that_is_free(freed, in_walk):
    """Up to 2.8: who goes on later is another one; a removal may be heard of just after the lock was let go."""
    one = working(lock=True)
    one.see(removal(9, f"{DATABASE}/CURRENT"), lock_look(freed, FREE), removal(10, f"{TASK}/.checkpoint"))
    assert one.task.checkpoints[-1].in_walk is in_walk


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
