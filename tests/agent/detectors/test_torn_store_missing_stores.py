"""Detector `torn-store`: a checkpoint names stores that are not on disk, on dossiers built by hand."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from agent.inventory.blindness import note_blind
from agent.inventory.model import Application, Deletion, ProcessLife, Remains, Shape, Store
from agent.judging.base import Remedy, TaskCase
from agent.layout.checkpoint import OffsetEntry
from tests.support.scenario_case import at, case, checkpoint, database, judge, past, store, task
from tests.support.tables import LIKELY, PROVED, QUIET, SUSPECTED, UNKNOWN, WARNED, said, table

ID = "torn-store"
CLAIMS_NOTHING = "the entry of a checkpoint claims nothing"
DELETING = "a deletion may go on"
MAY_COME = "the store may be about to be made, or copied to its place"


def gone(
    *ended: float,
    offset: int | None = 999,
    held: bool = False,
    release: str | None = "3.9.2",
    known: bool = True,
    clock_set: tuple[float, float] | None = None,
    blind: str = "clock-step",
    walk: tuple[float, float] | None = None,
    lives: tuple[ProcessLife, ...] = (),
    removed: float | None = None,
    changed: float = 0,
) -> TaskCase:
    """The checkpoint names `s`, which has no directory; its incarnations ended at these times.

    `walk`: a deletion that was seen between these; `removed`: when the checkpoint went; `changed`: its time.
    """
    one, app = store(), Application("app", exists=True)
    one.past += tuple(past(x) for x in ended)
    app.lives += lives
    judged = task(*([one] if known else []), checkpoints=[checkpoint(10, offset, ended=removed)])
    judged.held, judged.mtime_us = held, at(changed)
    if walk is not None:
        judged.walk = Deletion(at(walk[0]), at(walk[1]), Shape.OWNER_WALK, held=False)
    made = case(judged, release=release, application=app)
    if clock_set is not None:
        note_blind(made.inventory, at(clock_set[0]), at(clock_set[1]), blind)
    return made


WALK: dict[str, Any] = {"clock_set": (69, 99), "walk": (60, 68)}
LIVES = (ProcessLife(at(0), at(97)), ProcessLife(at(97.5)))


@table(ID, "one, expected", {
    "it was there until a moment ago": (gone(20, 30, 50), WARNED),
    # the last moment: nobody has taken it, and a start would trust the offset
    "for less than a minute": (gone(20, 30, 41), WARNED),
    "for a minute": (gone(20, 30, 40), PROVED),
    "by a clock that was ahead": (gone(20, 30, 40, changed=500), PROVED),
    "the clock was set forward since: 40 s": (gone(20, 30, 40, clock_set=(50, 70)), WARNED),
    "it was set before": (gone(20, 30, 40, clock_set=(10, 35)), PROVED),
    "it was set beyond now": (gone(20, 30, 40, clock_set=(90, 110)), PROVED),
    "it was never seen": (gone(), UNKNOWN),
    "nothing of it is known": (gone(known=False), UNKNOWN),
    "no entry": (gone(50, offset=None), QUIET),
    "offset 0": (gone(50, offset=0), CLAIMS_NOTHING),
    "an unknown offset": (gone(50, offset=-4), CLAIMS_NOTHING),
    "a holder may be about to make it": (
        gone(50, held=True), "a process holds the task, and may be about to make the store"),
    "the checkpoint went": (gone(50, removed=60), QUIET),
    "4.3 moves what 4.2 left into an empty store": (gone(50, release="4.3.1"), SUSPECTED),
    "any release": (gone(50, release=None), WARNED),
    # five seconds without a removal end a deletion, or the end of its process
    "the clock was set in a deletion": (gone(68, **WALK), DELETING),
    "the agent was stalled in it": (gone(68, **WALK, blind="agent-stalled"), WARNED),
    "its process ended": (gone(walk=(96, 96.5), lives=LIVES), UNKNOWN),
    "the next one is at it": (gone(walk=(97.6, 98), lives=LIVES), DELETING),
    "the next one ended": (gone(walk=(97.6, 98), lives=(LIVES[0], ProcessLife(at(97.5), at(98)))), UNKNOWN),
})  # fmt: skip
def test_store_that_was_there(one, expected):
    assert said(ID, one) == expected


def test_what_was_not_read_is_not_removed():
    (verdict,) = judge(ID, alone("rocksdb", unread=True))
    assert (verdict.remedy, "remove" in verdict.next_action) == (Remedy.OTHER, False)


def windowed(shape: Shape, task_incarnation: int = 1) -> TaskCase:
    """The checkpoint names a windowed store that has no segment any more; its last one ended so."""
    one = store(segmented=True)
    one.past += (replace(past(20, shape=shape, segment="0"), task_incarnation=task_incarnation),)
    return case(task(one, checkpoints=[checkpoint(10, 999)]), release="2.0.1")


@table(ID, "one, expected", {
    # seen live on 2.0.1: the task came back, every record of its windows had expired, and the close wrote the end
    "its owner took the last segment": (windowed(Shape.OWNER_WALK), UNKNOWN),
    "a cleaner, in an earlier life of the task": (windowed(Shape.CLEANER_WALK, 0), UNKNOWN),
    "a cleaner": (windowed(Shape.CLEANER_WALK), PROVED),
})  # fmt: skip
def test_windowed_store_may_have_no_segment(one, expected):
    assert said(ID, one) == expected
    assert ("expired" in judge(ID, one)[0].summary) == (expected == UNKNOWN)


def test_entries_in_order_hide_no_other():
    """A store that is there, remains of one, and an empty entry stand before the one that is gone."""
    fact = checkpoint(10, 999, name="z")
    fact.offsets.clear()
    fact.offsets.update({"there": 5, "left": 5, "empty": 0, "z": 999})
    left, there = store(name="left"), store([database()], name="there")
    left.remains[""] = Remains("app/0_0/rocksdb/left", at(99), 2)
    assert [x.store for x in judge(ID, case(task(there, left, checkpoints=[fact]), release="3.9.2"))] == ["z"]
    left.remains[""] = Remains("app/0_0/rocksdb/left", at(50), 2)
    found = judge(ID, case(task(there, left, checkpoints=[fact]), release="3.9.2"))
    assert sorted((x.store, "2 data files are left" in x.summary) for x in found) == [
        ("left", True),
        ("z", False),
    ]


# -- one reading, and what its neighbours show ------------------------------------------------------------------


def beside(*stores: Store, task_id: str = "0_1", exists: bool = True) -> Application:
    """An application with another task that has these stores."""
    app, other = Application("app", exists=True), task(*stores, task_id=task_id, exists=exists)
    app.tasks[task_id] = other
    return app


def alone(
    *in_task: str,
    bare: float | None = None,
    application: Application | None = None,
    now: float = 100,
    unread: bool = False,
    touched: float | None = None,
    other: Store | None = None,
) -> TaskCase:
    """The checkpoint names `s`, of which nothing was ever seen; `in_task`: names in the task's directory.

    `touched`: when one of these was made; `other`: a store that is there.
    """
    one = task(*([other] if other else []), checkpoints=[checkpoint(10, 999)])
    one.mtime_us = at(touched) if touched is not None else 0
    one.names = frozenset({".checkpoint", *in_task})
    if bare is not None:
        one.bare = {"s": at(bare)}
    made = case(one, application=application, release="3.9.2", now=now)
    if unread:
        note_blind(made.inventory, at(5), at(5), "denied", "app", "0_0").ended_us = None
    return made


def after_a_walk(made: TaskCase) -> TaskCase:
    """The same, with a deletion whose process is gone: it can't go on, but a reading may still be late."""
    made.task.walk = Deletion(at(5), at(8), Shape.OWNER_WALK, held=True)
    made.application.lives += (ProcessLife(at(0), at(12)),)
    return made


def global_task(
    *stores: Store,
    in_task: tuple[str, ...] = (),
    offset: int = 4999,
    bare: str = "",
    unread: bool = False,
    touched: float | None = None,
) -> TaskCase:
    """The directory of the global stores; its checkpoint names topics."""
    fact = checkpoint(10, None)
    fact.foreign = (OffsetEntry("customers", 0, offset), OffsetEntry("customers", 1, min(offset, 7)))
    one = task(*stores, checkpoints=[fact], task_id="global")
    one.path, one.names = "app/global", frozenset({".checkpoint", ".lock", *in_task})
    one.bare = {bare: at(10)} if bare else {}
    one.mtime_us = at(touched) if touched is not None else 0
    made = case(one, release="3.9.2")
    if unread:
        note_blind(made.inventory, at(5), at(5), "denied", "app", "global").ended_us = None
    return made


KEY_VALUE, WINDOWED = store([database()]), store([database(segment="s.0")], segmented=True)
OTHER, GLOBAL, REMOVED = (store([database()], name=x) for x in "thg")
REMOVED.databases.clear()
REMOVED.past += (past(20),)
COPIED, HALF = store([database()], name="t"), store(name="t")
COPIED.databases[""].touched_us = at(70)
HALF.remains[""] = Remains("app/0_0/rocksdb/t", at(80), 1, touched_us=at(70))
PUT_TO = "s.position shows that records were put into it"


@table(ID, "one, says, expected", {
    # the start would make an empty store and trust the offset: nothing else will ever say so
    "another task has it": (
        alone(application=beside(KEY_VALUE)), "has no directory, and task 0_1 has that store", LIKELY),
    "another task has it, this one others": (
        alone("rocksdb", application=beside(KEY_VALUE)), "task 0_1 has that store", LIKELY),
    "another task has its segments": (alone(application=beside(WINDOWED)), "task 0_1 has that store", LIKELY),
    "all of its own may have expired": (
        alone("s", application=beside(WINDOWED)), "unless all of its records have expired", LIKELY),
    "its position": (alone("s.position"), f"has no directory, and {PUT_TO}", LIKELY),
    "its position, and no segment": (alone("s", "s.position"), f"has no segment, and {PUT_TO}", LIKELY),
    "its empty directory": (alone("rocksdb", bare=10), "has an empty directory", PROVED),
    # a copy may be being made: what makes directories first fills them later
    "its empty directory, in a task that is being written": (
        alone("rocksdb", bare=80, touched=20.1, now=200), "if a copy is being made, look again", LIKELY),
    "an agent that looks while it is written": (
        alone("rocksdb", bare=80, touched=139.9, now=200), "if a copy is being made, look again", LIKELY),
    "written to a minute before": (
        alone("rocksdb", bare=80, touched=20, now=200), "has an empty directory", PROVED),
    "written to a minute later, as by a start that failed": (
        alone("rocksdb", bare=80, touched=140, now=200), "has an empty directory", PROVED),
    "beside a store that is being copied": (
        alone("rocksdb", bare=80, now=200, other=COPIED), "if a copy is being made, look again", LIKELY),
    "beside what is there of a store that is being copied": (
        alone("rocksdb", bare=80, now=200, other=HALF), "if a copy is being made, look again", LIKELY),
    # neither another store, nor a task that is gone, shows what this one is kept in
    "a directory": (alone("s"), "custom store", UNKNOWN),
    "another task has another store": (alone("s", application=beside(OTHER)), "custom store", UNKNOWN),
    "the position of another store": (
        alone("t.position", "rocksdb", application=beside(OTHER)), "custom store", UNKNOWN),
    "another task lacks it, too": (alone(application=beside(store())), "custom store", UNKNOWN),
    "a task that is gone had it": (alone(application=beside(KEY_VALUE, exists=False)), "custom store", UNKNOWN),
    "a global store of the name": (alone(application=beside(KEY_VALUE, task_id="global")), "custom store", UNKNOWN),
    # a link that is not followed, a directory that may not be listed
    "what could not be read": (
        alone("rocksdb", application=beside(KEY_VALUE), unread=True), "was not read", UNKNOWN),
    # it may be about to be made, or copied to its place
    "seconds after the checkpoint": (alone(application=beside(KEY_VALUE), now=14.9), "", MAY_COME),
    "seconds after the checkpoint, and its process is gone": (
        after_a_walk(alone(application=beside(KEY_VALUE), now=14.9)), "", MAY_COME),
    "five seconds after it, and its process is gone": (
        after_a_walk(alone(application=beside(KEY_VALUE), now=15)), "task 0_1 has that store", SUSPECTED),
    "seconds after the directory": (alone("rocksdb", bare=12, now=16.9), "", MAY_COME),
    "five seconds": (alone("rocksdb", bare=12, now=17), "has an empty directory", WARNED),
    # a global checkpoint names a topic, and the next start reads on from there
    "no global store": (global_task(), "a global store, which is not on disk, and nothing else is", LIKELY),
    "an empty directory of global stores": (global_task(in_task=("rocksdb",)), "nothing else is", LIKELY),
    "the position of a global store": (
        global_task(in_task=("g.position",)), "store g, which has no directory, and g.position", LIKELY),
    "one of two global stores": (
        global_task(GLOBAL, in_task=("rocksdb", "g.position", "h.position")),
        "store g, which has no directory, and g.position", LIKELY),
    "a global store that was seen": (global_task(REMOVED), "store g, which has no directory: ", PROVED),
    "an empty directory of one": (
        global_task(in_task=("rocksdb",), bare="g"), "store g, which has an empty directory", PROVED),
    "an empty directory of one that may be being copied": (
        global_task(in_task=("rocksdb",), bare="g", touched=9), "if a copy is being made, look again", LIKELY),
    "a global store that was seen, in a directory that was written to": (
        global_task(REMOVED, touched=19), "store g, which has no directory: ", PROVED),
    "a global store of another kind": (global_task(in_task=("lucene",)), "custom store", UNKNOWN),
    "the global store is there": (global_task(GLOBAL, in_task=("rocksdb", "h.position")), "", QUIET),
    "nothing was read of the topic yet": (global_task(offset=0), "", QUIET),
    "global stores that cannot be read": (
        global_task(unread=True), "", "the directory of the global stores cannot be read now"),
})  # fmt: skip
def test_neighbours_show_that_it_was_there(one, says, expected):
    found = [x for x in judge(ID, one) if x.store != "t"]
    assert [(x.severity, x.confidence) for x in found] == expected
    assert all(
        says in x.summary and ("trust that offset" in x.summary) == (expected != UNKNOWN) for x in found
    )
