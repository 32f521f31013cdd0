"""Task level of the reducer: malformed checkpoints, sessions that marks belong to, late removals."""

from __future__ import annotations

import pytest

from agent.inventory.disk import LockState
from agent.inventory.model import Shape
from tests.support.scenario_case import at
from tests.support.scenario_looks import (
    DATABASE,
    FREE,
    HELD,
    TASK,
    Reducing,
    checkpoint_look,
    database_look,
    known,
    removal,
    task_look,
    working,
)


def reopened() -> Reducing:
    """The same, let go at 10 s and opened again at 20 s."""
    one = working()
    one.see(database_look(10, born=1, puts=100, lock=FREE))
    one.see(database_look(20, born=1, puts=100, manifest=6, reopened=(20,)))
    return one


def test_problem_without_a_checkpoint():
    """The first content may be the malformed one."""
    one = Reducing()
    one.see(task_look(0.5))
    assert one.see(checkpoint_look(9, problem="bad")) == ["checkpoint-malformed"]
    assert (one.task.checkpoint, one.task.checkpoint_problem_us) == (None, at(9))


def test_problem_ends_the_content_before():
    """What was replaced by a malformed file is no longer on disk, since that file was written."""
    one = working()
    one.see(checkpoint_look(9, problem="bad", written=8))
    assert one.task.checkpoint is None
    assert one.task.checkpoints[-1].ended_us == at(8)
    assert not one.task.checkpoints[-1].deleted


def test_marks_belong_to_the_newest_session():
    """A checkpoint after the reopening is that session's first and last; the older session keeps its own."""
    one = reopened()
    one.see(checkpoint_look(25, {"s": 150}), checkpoint_look(26, {"s": 160}))
    before, after = one.store.sessions
    assert known(before.last).offset == 100
    assert (known(after.first).offset, known(after.last).offset) == (150, 160)
    assert known(after.first).at_us == at(25)


def test_mark_at_the_very_opening():
    """A checkpoint of the same moment as the opening is that session's; one from before is not."""
    one = reopened()
    one.see(checkpoint_look(21, {"s": 150}, written=19.9))
    assert one.store.sessions[-1].first is None
    one.see(checkpoint_look(22, {"s": 160}, written=20))
    assert known(one.store.sessions[-1].first).offset == 160


def test_mark_of_another_volume():
    """Two volumes changed places while no agent watched: the checkpoint of the one is no word about the other."""
    one = working()
    one.see(database_look(10, born=1, puts=100, lock=FREE))
    one.see(checkpoint_look(11, {"s": 120}, written=9.9))  # of the close, read late
    assert known(one.store.sessions[-1].last).offset == 120
    one.see(task_look(50, inode=11), database_look(50, "identity-2", born=1.1, puts=70, lock=FREE))
    one.see(checkpoint_look(50, {"s": 80}, written=9.8))
    assert known(one.store.sessions[-1].last).offset == 120


def test_same_content_written_again():
    """Same offsets at another time are another checkpoint; the same file looked at twice is not."""
    one = working()
    assert one.see(checkpoint_look(9, {"s": 100}, written=3)) == []
    assert one.see(checkpoint_look(10, {"s": 100}, written=9.5)) == ["checkpoint-written"]
    facts = one.changes[0].facts
    assert (facts["offset_before"], facts["offset_after"], facts["puts"]) == (100, 100, 100)
    assert [x.ended_us for x in one.task.checkpoints] == [at(9.5), None]


def test_offset_before_is_that_of_the_newest():
    """Of several contents the newest is what was replaced."""
    one = working()
    one.see(checkpoint_look(9, {"s": 200}), checkpoint_look(10, {"s": 300}))
    assert one.changes[-1].facts["offset_before"] == 200


@pytest.mark.parametrize(("name", "moves"), [("OPTIONS-000007", True), ("000009.log", True), ("LOG", False)])
def test_small_files_go_on_with_a_walk(name, moves):
    """Options and write-ahead logs belong to a walk that goes on; a rotated info log does not."""
    one = working()
    one.see(database_look(10, born=1, puts=100, lock=FREE), removal(60, f"{DATABASE}/CURRENT"))
    one.see(removal(61, f"{DATABASE}/{name}"))
    walk = known(one.task.walk)
    assert (walk.started_us, walk.last_us) == (at(60), at(61 if moves else 60))
    assert (walk.shape, walk.held, walk.stores) == (Shape.CLEANER_WALK, False, {"s"})


@pytest.mark.parametrize(("name", "begins"), [("OPTIONS-000007", True), ("000009.log", True), ("LOG", False)])
def test_small_files_begin_a_walk_where_no_process_runs(name, begins):
    """RocksDB drops them in normal operation, under its LOCK; an info log is renamed before that is taken."""
    one = working()
    one.see(removal(5, f"{DATABASE}/{name}"))
    assert one.task.walk is None
    one.see(database_look(10, born=1, puts=100, lock=FREE), removal(60, f"{DATABASE}/{name}"))
    assert (one.task.walk is not None) is begins


@pytest.mark.parametrize(("seconds", "walks"), [(9.9, False), (10, False), (10.1, True)])
def test_data_files_go_only_after_the_release(seconds, walks):
    """A running store drops data files itself; once nobody holds it only a deletion does."""
    one = working()
    one.see(database_look(10, born=1, puts=100, lock=FREE), removal(seconds, f"{DATABASE}/000006.sst"))
    assert (one.task.walk is not None) is walks


@pytest.mark.parametrize(("opened", "walks"), [(10, True), (10.1, False), (30, False), (30.1, True)])
def test_open_that_no_one_saw(opened, walks):
    """An open between the release and the removal explains it; one at the release or after it does not."""
    one = working()
    one.see(database_look(10, born=1, puts=100, lock=FREE))
    one.store.databases[""].reopened_us = (at(opened),)
    one.see(removal(30, f"{DATABASE}/000006.sst"))
    assert (one.task.walk is not None) is walks


def test_removal_of_a_task_that_came_again():
    """A late announcement speaks of the directory before: its successor lives on."""
    one = working()
    assert one.see(removal(0.4, TASK)) == []
    assert one.task.exists
    assert "task-deleted" in one.see(removal(5, TASK))
    assert one.see(removal(6, TASK)) == []


def test_end_of_the_directory():
    """What it was: released or held, with siblings or without, and its last offsets."""
    one = working()
    one.see(task_look(1, path="app/0_1"), database_look(1, "identity-2", path="app/0_1/rocksdb/s"))
    one.see(removal(5, TASK))
    past = one.task.past[-1]
    assert (past.held, past.siblings_held, past.released_us, past.offsets) == (True, True, None, {"s": 100})
    alone = working()
    alone.see(database_look(10, born=1, puts=100, lock=FREE), removal(60, TASK))
    past = alone.task.past[-1]
    assert (past.held, past.siblings_held, past.released_us) == (False, False, at(10))


def test_position_files_are_remembered():
    """A position file in any look tells the release."""
    one = Reducing()
    one.see(task_look(1, names=("rocksdb", ".checkpoint")))
    assert not one.application.positions_seen
    one.see(task_look(2, names=("rocksdb", "s.position")), task_look(3, names=("rocksdb",)))
    assert one.application.positions_seen


def test_lock_of_an_old_release_is_remembered():
    """A task lock that was held once tells the release, also when it is free again."""
    free = Reducing()
    free.see(task_look(1, lock=FREE))
    assert not free.application.task_lock_ever_held
    one = Reducing()
    one.see(task_look(1, lock=FREE), task_look(2, lock=HELD), task_look(3, lock=FREE))
    assert one.application.task_lock_ever_held
    assert (one.task.lock, one.task.lock_since_us) == (LockState.FREE, at(3))


@pytest.mark.parametrize(
    ("closed", "with_offset", "in_order"),
    [
        (True, True, True),
        (False, True, False),
        (None, True, False),
        (True, False, False),
        (True, None, False),  # no store that would have an offset says that it was in order
    ],
)
def test_how_a_task_was_closed(closed, with_offset, in_order):
    """What was done before its directory went: a wipe follows a close that was not in order, a cleaner one that was."""
    one = working()
    one.see(database_look(10, born=1, puts=100, lock=FREE))
    last = one.store.sessions[-1]
    last.closed, last.closed_with_offset = closed, with_offset
    one.see(removal(60, TASK))
    assert one.task.past[-1].closed_in_order is in_order


def test_how_long_an_unlink_takes():
    """The shortest time from one removal to the next, in this session; what goes later was another occasion."""
    one = working()
    session = one.store.session
    assert session is not None
    assert session.unlink_us == 0
    one.see(removal(5, f"{DATABASE}/000006.sst"))
    assert session.unlink_us == 0
    one.see(removal(5.5, f"{DATABASE}/MANIFEST-000004"), removal(5.8, f"{DATABASE}/000003.log"))
    one.see(removal(9, f"{DATABASE}/OPTIONS-000005"), removal(9.4, f"{DATABASE}/LOG.old.1"))
    assert session.unlink_us == 300_000
    again = reopened().store.session
    assert again is not None
    assert again.unlink_us == 0


def test_what_is_written_of_a_store_that_the_task_no_longer_opens():
    """2.0.1 writes what a thread restored into the checkpoints of all its tasks, also after a topology dropped it."""
    one = working()
    one.see(database_look(10, born=1, puts=100, lock=FREE), checkpoint_look(10, {"s": 120}))
    other = f"{TASK}/rocksdb/other"
    one.see(database_look(20, identity="other", born=20, path=other))
    one.see(checkpoint_look(30, {"s": 900, "other": 5}))
    assert known(one.store.sessions[-1].last).offset == 120
    assert known(one.task.stores["other"].sessions[-1].last).offset == 5


def test_what_was_written_before_the_task_was_held_again_and_is_read_after():
    """A busy machine: the close's checkpoint is of the session that ended, however late it is read."""
    one = working()
    one.see(database_look(10, born=1, puts=100, lock=FREE))
    one.see(database_look(20, identity="other", born=20, path=f"{TASK}/rocksdb/other"))
    one.see(checkpoint_look(21, {"s": 120}, written=10))
    assert known(one.store.sessions[-1].last).offset == 120
