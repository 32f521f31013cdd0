"""Task level of the reducer: lives of a directory, its checkpoint, its lock, the shape of a deletion."""

from __future__ import annotations

from typing import Any

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
    working,
)

CURRENT, SST, CHECKPOINT = f"{DATABASE}/CURRENT", f"{DATABASE}/000006.sst", f"{TASK}/.checkpoint"
LIMIT_S = WALK_ENDS_AFTER_US / 1_000_000


def db(seconds: float, *identity, born: float = 1, puts: int = 100, **more):
    """A look at the store, born at 1 s, with 100 puts."""
    return database_look(seconds, *identity, born=born, puts=puts, **more)


def after(one: Reducing, *looks) -> Reducing:
    """What is known after these looks; its `changes` are those of the last one."""
    for look in looks:
        one.see(look)
    return one


def new(*looks) -> Reducing:
    """Nothing but these looks."""
    return after(Reducing(), *looks)


def busy(*looks, lock: bool = False) -> Reducing:
    """A task at work, then these looks."""
    return after(working(lock=lock), *looks)


def released(*looks) -> Reducing:
    """The same, let go at 10 s."""
    return busy(db(10, lock=FREE), *looks)


def reopened(*looks) -> Reducing:
    """And opened again at 20 s."""
    return released(db(20, manifest=6, reopened=(20,)), *looks)


def said(one: Reducing) -> list[str]:
    """What the last look changed."""
    return [x.change.value for x in one.changes]


def facts(one: Reducing, *names: str) -> tuple[object, ...]:
    """Facts of the first change of the last look."""
    return tuple(one.changes[0].facts[x] for x in names)


def walk(one: Reducing) -> Any:
    """The walk that goes on."""
    return one.task.walk


def walks(one: Reducing) -> bool:
    """Whether there is one."""
    return one.task.walk is not None


def in_walk(one: Reducing) -> bool:
    """Whether the checkpoint went in one."""
    return one.task.checkpoints[-1].in_walk


def newest(one: Reducing) -> Any:
    """First and last claim of the newest session."""
    session = one.store.sessions[-1]
    return session.first and session.first.offset, session.last and session.last.offset


# fmt: off
LIVES: dict[str, Any] = {
    "the first look makes a life":
        (lambda: new(task_look(1)),
         lambda x: (said(x), x.task.incarnation, x.task.exists, x.task.first_seen_us), (["task-created"], 1, True,
          at(1))),
    "the second is none": (lambda: new(task_look(1), task_look(2)), said, []),
    "a directory that was replaced between two looks ended and began":
        (lambda: released(task_look(60, inode=11)),
         lambda x: (said(x), x.task.incarnation, x.task.past[-1].incarnation),
         (["store-deleted", "checkpoint-deleted", "task-deleted", "task-created"], 2, 1)),
    "a deleted directory leaves its last offsets, its release and its shape":
        (lambda: released(removal(60, CURRENT), task_look(62, unseen=GONE)),
         lambda x: [(y.offsets, y.released_us, y.shape, y.started_us, y.ended_us, y.held) for y in x.task.past],
         [({"s": 100}, at(10), Shape.CLEANER_WALK, at(60), at(62), False)]),
    "and nothing else": (lambda: released(task_look(62, unseen=GONE)),
        lambda x: (x.task.exists, x.task.lock, x.task.names, x.task.checkpoint), (False, None, frozenset(), None)),
    "what is gone cannot go again": (lambda: released(task_look(60, unseen=GONE), task_look(61, unseen=GONE)),
         said, []),
    "nor is it announced again":
        (lambda: released(removal(60, TASK), removal(61, TASK)), lambda x: (said(x), len(x.task.past)), ([], 1)),
    "not being allowed to look is not absence":
        (lambda: released(task_look(60, unseen=Unseen.DENIED)), lambda x: (said(x), x.task.exists), ([], True)),
    "a reading that raced is not absence":
        (lambda: released(task_look(60, unseen=Unseen.RACED)), lambda x: (said(x), x.task.exists), ([], True)),
    "a removal that is read after its successor was met is of the old life":
        (lambda: released(task_look(60, inode=11), removal(59, TASK)),
         lambda x: (said(x), x.task.exists, x.task.incarnation), ([], True, 2)),
    "a later one is of the new": (lambda: released(task_look(60, inode=11), removal(61, TASK)), said, ["task-deleted"]),
    "a held task that went, beside one that is held":
        (lambda: busy(task_look(1, path="app/0_1"), db(1, "identity-2", path="app/0_1/rocksdb/s"), removal(5, TASK)),
         lambda x: [(y.held, y.siblings_held, y.released_us, y.offsets) for y in x.task.past],
         [(True, True, None, {"s": 100})]),
    "a free one that went alone": (lambda: released(removal(60, TASK)),
        lambda x: [(y.held, y.siblings_held, y.released_us) for y in x.task.past], [(False, False, at(10))]),
    "what was free when the agent came was released nobody knows when":
        (lambda: new(task_look(1), db(2, lock=FREE), task_look(60, unseen=GONE)),
         lambda x: (x.task.held, x.task.released_us, x.task.past[-1].released_us), (False, None, None)),
    "no position file": (lambda: new(task_look(1, names=("rocksdb", ".checkpoint"))),
        lambda x: x.application.positions_seen, False),
    "a position file in any look shows the release": (lambda: new(task_look(2, names=("s.position",)), task_look(3)),
        lambda x: x.application.positions_seen, True),
}

LOCKS: dict[str, Any] = {
    "a held task lock holds the task, however its stores are":
        (lambda: new(task_look(1, lock=HELD)),
         lambda x: (said(x), x.application.task_lock_ever_held), (["task-created", "task-held"], True)),
    "a free one lets it go": (lambda: new(task_look(1, lock=HELD), lock_look(5, FREE)),
        lambda x: (said(x), x.task.released_us, x.task.held), (["task-released"], at(5), False)),
    "a query that failed does not": (lambda: new(task_look(1, lock=HELD), lock_look(5, UNKNOWN)),
        lambda x: (said(x), x.task.held), ([], True)),
    "a lock that was free is none that was held": (lambda: new(task_look(1, lock=FREE)),
        lambda x: x.application.task_lock_ever_held, False),
    "one that was held once shows the release, also when it is free again":
        (lambda: new(task_look(1, lock=FREE), task_look(2, lock=HELD), task_look(3, lock=FREE)),
         lambda x: (x.application.task_lock_ever_held, x.task.lock, x.task.lock_since_us), (True, FREE, at(3))),
    "who tried the lock and let go is a sign of life, not a holding":
        (lambda: busy(db(10, lock=FREE), lock_look(11, FREE), lock_look(50, FREE, announced=True), lock_look(51, FREE),
                      lock=True), lambda x: x.task.lock_probed_us, at(50)),
}

WALKS: dict[str, Any] = {
    **{f"{name} is what no running store removes":
        (lambda name=name: released(removal(60, f"{DATABASE}/{name}")),
         lambda x: (walk(x).shape, walk(x).held, walk(x).stores), (Shape.CLEANER_WALK, False, {"s"}))
       for name in ("CURRENT", "IDENTITY", "LOCK")},
    **{f"a running store drops {name} itself": (lambda name=name: busy(removal(5, f"{DATABASE}/{name}")), walks, False)
       for name in ("000006.sst", "MANIFEST-000005", "OPTIONS-000007", "000004.log", "LOG")},
    **{f"of a store that nobody holds {name} is part of a walk: {is_it}":
        (lambda name=name: released(removal(60, f"{DATABASE}/{name}")), walks, is_it)
       for name, is_it in {"000006.sst": True, "MANIFEST-000005": True, "OPTIONS-000007": True, "000004.log": True,
                           "LOG": False, "LOG.old.1": False}.items()},
    **{f"{name} belongs to a walk that goes on: {is_it}":
        (lambda name=name: released(removal(60, CURRENT), removal(61, f"{DATABASE}/{name}")),
         lambda x: (walk(x).started_us, walk(x).last_us), (at(60), at(61 if is_it else 60)))
       for name, is_it in {"OPTIONS-000007": True, "000009.log": True, "LOG": False}.items()},
    **{f"a data file that goes at {seconds} s, released at 10 s: {is_it}":
        (lambda seconds=seconds: released(removal(seconds, SST)), walks, is_it)
       for seconds, is_it in {9.9: False, 10: False, 10.1: True}.items()},
    **{f"a data file that goes at 30 s, opened at {opened} s with nobody looking: {is_it}":
        (lambda opened=opened: released(db(50, lock=FREE, reopened=(opened,)), removal(30, SST)), walks, is_it)
       for opened, is_it in {10: True, 10.1: False, 30: False, 30.1: True}.items()},
    "where opens leave no trace one may have dropped the file":
        (lambda: released(db(50, lock=FREE, all_reopens=False), removal(60, SST)), walks, False),
    "but not CURRENT": (lambda: released(db(50, lock=FREE, all_reopens=False), removal(60, CURRENT)), walks, True),
    "a held windowed store drops whole segments":
        (lambda: new(task_look(0.5), db(1, "a", path=f"{TASK}/w/w.0"), removal(5, f"{TASK}/w/w.0/CURRENT"),
                     removal(5, f"{TASK}/w/w.0")), walks, False),
    "a free one drops none":
        (lambda: new(task_look(0.5), db(1, "a", path=f"{TASK}/w/w.0"), db(10, "a", path=f"{TASK}/w/w.0", lock=FREE),
                     removal(60, f"{TASK}/w/w.0/CURRENT")), walks, True),
    "an owner deletes right after its close":
        (lambda: released(removal(12, CURRENT)), lambda x: walk(x).shape, Shape.OWNER_WALK),
    "a cleaner later": (lambda: released(removal(12.1, CURRENT)), lambda x: walk(x).shape, Shape.CLEANER_WALK),
    "what goes while the task is held is its owner's work":
        (lambda: busy(removal(60, CURRENT), lock=True), lambda x: (walk(x).shape, walk(x).held), (Shape.OWNER_WALK,
         True)),
    "without a session there is nobody to name":
        (lambda: new(task_look(1), db(2, lock=FREE), removal(60, CURRENT)), lambda x: walk(x).shape, Shape.UNKNOWN),
    "each removal prolongs it": (lambda: released(removal(60, CURRENT), removal(90, SST)),
        lambda x: walk(x).last_us, at(90)),
    "a minute does not end it": (lambda: released(removal(60, CURRENT), task_look(60 + LIMIT_S)), walks, True),
    "more than a minute does": (lambda: released(removal(60, CURRENT), task_look(60.1 + LIMIT_S)), walks, False),
    "a checkpoint that goes by itself is in no walk": (lambda: released(removal(60, CHECKPOINT)),
        lambda x: (x.task.checkpoints[-1].deleted, in_walk(x)), (True, False)),
    "one that goes during a walk is": (lambda: released(removal(60, CURRENT), removal(61, CHECKPOINT)), in_walk, True),
    "one that goes much later goes by the next owner's hand":
        (lambda: released(removal(60, CURRENT), removal(66, CHECKPOINT)), in_walk, False),
    "one that went up to two seconds before a cleaner's walk was its first victim":
        (lambda: released(removal(60, CHECKPOINT), removal(62, CURRENT)), in_walk, True),
    "not one that went before that":
        (lambda: released(removal(60, CHECKPOINT), removal(62.1, CURRENT)), in_walk, False),
    "an owner deletes it at its initialization: that is no part of the wipe":
        (lambda: busy(removal(5, CHECKPOINT), removal(5.1, CURRENT), lock=True), in_walk, False),
    **{f"up to 2.8 a lock that was let go at {freed} s, a checkpoint that goes at 10 s: {is_it}":
        (lambda freed=freed: busy(removal(9, CURRENT), lock_look(freed, FREE), removal(10, CHECKPOINT), lock=True),
         in_walk, is_it) for freed, is_it in {9.7: False, 9.8: True, 10.2: True}.items()},
}

CHECKPOINTS: dict[str, Any] = {
    "a checkpoint is reported with the puts of its time":
        (lambda: busy(db(8, puts=300, flushes=(flush(7, 300, 7),)), checkpoint_look(9, {"s": 250}, written=6)),
         lambda x: (said(x), *facts(x, "offset_before", "offset_after", "puts", "held", "occurred_at_us")),
         (["checkpoint-written"], 100, 250, 100, True, at(6))),
    "the same content of the same time is no event": (lambda: busy(checkpoint_look(9, {"s": 100}, written=3)),
         said, []),
    "nor read again where the volume keeps whole seconds":
        (lambda: busy(*(checkpoint_look(9 + n, {"s": 200}, written=8 + n) for n in (0.7, 0))), said, []),
    "a rewrite is, even with the same offset":
        (lambda: busy(checkpoint_look(9, {"s": 100}, written=8)),
         lambda x: (said(x), [(y.ended_us, y.deleted) for y in x.task.checkpoints]),
         (["checkpoint-written"], [(at(8), False), (None, False)])),
    "of several contents the newest is what was replaced":
        (lambda: busy(checkpoint_look(9, {"s": 200}), checkpoint_look(10, {"s": 300})),
         lambda x: facts(x, "offset_before"), (200,)),
    "an entry of a store that is not there marks nothing, foreign entries are kept apart":
        (lambda: busy(checkpoint_look(9, {"x": 50}, foreign=(OffsetEntry("source", 0, 6),))),
         lambda x: (newest(x)[1], x.task.checkpoint.offsets, x.task.checkpoint.foreign),
         (100, {"x": 50}, (OffsetEntry("source", 0, 6),))),
    "an entry of another partition is foreign": (lambda: busy(checkpoint_look(9, {}, foreign=(
        OffsetEntry("app-s-changelog", 7, 5),))), lambda x: x.task.checkpoint.offsets, {}),
    "a look that finds none ends the one that was there": (lambda: busy(checkpoint_look(9, unseen=GONE)),
        lambda x: (said(x), x.task.checkpoint), (["checkpoint-deleted"], None)),
    "once": (lambda: busy(checkpoint_look(9, unseen=GONE), checkpoint_look(10, unseen=GONE)), said, []),
    "a removal that was announced before the present file was written is of another":
        (lambda: busy(removal(2.9, CHECKPOINT)), lambda x: (said(x), x.task.checkpoint is None), ([], False)),
    "a later one is of this": (lambda: busy(removal(3.1, CHECKPOINT)), said, ["checkpoint-deleted"]),
    "not being allowed to read it says nothing": (lambda: busy(checkpoint_look(9, unseen=Unseen.DENIED)),
        lambda x: (said(x), x.task.checkpoint is None), ([], False)),
    "`.checkpoint_<store>` is another file": (lambda: busy(checkpoint_look(9, {"s": 1}, path=f"{CHECKPOINT}_s")),
        lambda x: (said(x), x.task.checkpoint.offsets), ([], {"s": 100})),
    "old contents are forgotten": (lambda: busy(*(checkpoint_look(10 + n,
         {"s": n}) for n in range(2 * CHECKPOINTS_KEPT))),
        lambda x: len(x.task.checkpoints), CHECKPOINTS_KEPT),
    "the first content may be the malformed one": (lambda: new(task_look(0.5),
        checkpoint_look(9, problem="bad", written=8)),
        lambda x: (said(x), x.task.checkpoint, x.task.checkpoint_problem_us), (["checkpoint-malformed"], None, at(8))),
    "the content before it ended when that file was written":
        (lambda: busy(checkpoint_look(9, problem="bad", written=8)),
         lambda x: [(y.ended_us, y.deleted) for y in x.task.checkpoints], [(at(8), False)]),
    "it is reported once per reason":
        (lambda: busy(checkpoint_look(9, problem="bad"), checkpoint_look(10, problem="bad")), said, []),
    "another reason is another": (lambda: busy(checkpoint_look(9, problem="bad"), checkpoint_look(11, problem="worse")),
        lambda x: (said(x), x.task.checkpoint_problem), (["checkpoint-malformed"], "worse")),
    **{f"{name} clears it": (lambda looks=looks: busy(checkpoint_look(9, problem="bad"), *looks),
        lambda x: x.task.checkpoint_problem, None) for name, looks in {
            "a good one": (checkpoint_look(12, {"s": 200}),), "its end": (checkpoint_look(10, unseen=GONE),),
            "its removal": (removal(10, CHECKPOINT),),
            "another directory": (task_look(20, unseen=GONE), task_look(21, inode=11))}.items()},
}

CLAIMS: dict[str, Any] = {
    "the first and the last checkpoint of a session, each with the puts of its time":
        (lambda: busy(db(8, puts=300, flushes=(flush(7, 300, 7),)), checkpoint_look(9, {"s": 300})),
         lambda x: [(y.offset, y.puts, y.at_us) for y in (x.store.sessions[-1].first, x.store.sessions[-1].last)],
         [(100, 100, at(3)), (300, 300, at(9))]),
    "a file that is older than the opening claims nothing in it":
        (lambda: new(task_look(0.5), db(5, born=5), checkpoint_look(6, {"s": 9}, written=2)), newest, (None, None)),
    "a checkpoint after a reopening is of that session":
        (lambda: reopened(checkpoint_look(25, {"s": 150}), checkpoint_look(26, {"s": 160})),
         lambda x: (newest(x), x.store.sessions[0].last.offset), ((150, 160), 100)),
    "one from before it is not": (lambda: reopened(checkpoint_look(21, {"s": 150}, written=19.9)), newest, (None,
         None)),
    "one of the same moment is": (lambda: reopened(checkpoint_look(22, {"s": 160}, written=20)), newest, (160, 160)),
    "one of the close may be read late":
        (lambda: released(checkpoint_look(11, {"s": 120}, written=9.9)), newest, (100, 120)),
    "one that another volume brought is not of what was there before":
        (lambda: released(task_look(50, inode=11), db(50, "identity-2", born=1.1, puts=70, lock=FREE),
                          checkpoint_look(50, {"s": 80}, written=9.8)), newest, (100, 100)),
    "up to 2.0.1 one speaks of a store that the task no longer opens":
        (lambda: released(checkpoint_look(10, {"s": 120}), db(20, "other", born=20, path=f"{TASK}/rocksdb/other"),
                          checkpoint_look(30, {"s": 900, "other": 5})),
         lambda x: (newest(x)[1], x.task.stores["other"].sessions[-1].last.offset), (120, 5)),
    "what was written before the task was held again is of the session that ended, however late it is read":
        (lambda: released(db(20, "other", born=20, path=f"{TASK}/rocksdb/other"),
                          checkpoint_look(21, {"s": 120}, written=10)), lambda x: newest(x)[1], 120),
}
# fmt: on
ALL = LIVES | LOCKS | WALKS | CHECKPOINTS | CLAIMS


@pytest.mark.parametrize(("one", "ask", "expected"), ALL.values(), ids=ALL)
def test_what_looks_leave(one, ask, expected):
    """Each row says what it is about."""
    assert ask(one()) == expected


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
    one = released()
    last = one.store.sessions[-1]
    last.closed, last.closed_with_offset = closed, with_offset
    one.see(removal(60, TASK))
    assert one.task.past[-1].closed_in_order is in_order


def test_how_long_an_unlink_takes():
    """The shortest time from one removal to the next, in this session; what goes later was another occasion."""
    one = busy(removal(5, SST))
    session = known(one.store.session)
    assert session.unlink_us == 0
    one.see(removal(5.5, f"{DATABASE}/MANIFEST-000004"), removal(5.8, f"{DATABASE}/000003.log"))
    one.see(removal(9, f"{DATABASE}/OPTIONS-000005"), removal(9.4, f"{DATABASE}/LOG.old.1"))
    assert session.unlink_us == 300_000
    assert known(reopened().store.session).unlink_us == 0
