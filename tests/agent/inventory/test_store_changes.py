"""Store level of the reducer: incarnations, flushes, opens, remains, and who deleted a store."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from agent.inventory.disk import Unseen
from agent.inventory.stores import FLUSHES_KEPT, Shape
from tests.support.scenario_case import at
from tests.support.scenario_looks import (
    DATABASE,
    FREE,
    GONE,
    HELD,
    TASK,
    Reducing,
    checkpoint_look,
    database_look,
    flush,
    known,
    lock_look,
    removal,
    task_look,
)

STAND_IN = "unnamed-20-5-1"
OTHER = f"{TASK}/rocksdb/t"


def db(seconds: float, *identity, born: float = 1, **more):
    """A look at the store, born at 1 s."""
    return database_look(seconds, *identity, born=born, **more)


def seen(*looks) -> Reducing:
    """An inventory after these looks; its `changes` are those of the last one."""
    one = Reducing()
    for look in looks:
        one.see(look)
    return one


def opened(*looks) -> Reducing:
    """A store that is held since 1 s, then these looks."""
    return seen(task_look(0.5), db(1), *looks)


def wiped_under_a_lock(*looks) -> Reducing:
    """The same up to 2.8, under the task's own lock."""
    return seen(task_look(0.5, lock=HELD), db(1), *looks)


def said(one: Reducing) -> list[str]:
    """What the last look changed."""
    return [x.change.value for x in one.changes]


def facts(one: Reducing, *names: str) -> tuple[object, ...]:
    """Facts of the first change of the last look."""
    return tuple(one.changes[0].facts[x] for x in names)


def files(one: Reducing):
    """The database of the store."""
    return one.store.databases[""]


def segment(number: int) -> str:
    """Path of a segment."""
    return f"{TASK}/w/w.{number}"


def ended(one: Reducing) -> bool:
    """Whether the last look ended an incarnation."""
    return "store-deleted" in said(one)


def shape(one: Reducing) -> Shape:
    """How the newest incarnation that ended was deleted."""
    return one.store.past[-1].shape


# fmt: off
INCARNATIONS: dict[str, Any] = {
    "a database that is new is a created store, with its identity and birth":
        (lambda: seen(task_look(0.5), db(1, born=0.7)),
         lambda x: (said(x), x.store.incarnation, x.store.identity, files(x).born_us),
         (["store-created", "task-held"], 1, "identity-1", at(0.7))),
    "looking again is no event": (lambda: opened(db(2)), said, []),
    "another IDENTITY ends the incarnation at its own birth":
        (lambda: opened(db(9, "identity-2", born=8)),
         lambda x: (said(x)[:2], x.store.incarnation, x.store.past[-1].identity, x.store.past[-1].ended_us),
         (["store-deleted", "store-created"], 2, "identity-1", at(8))),
    "a created store shows the newest incarnation before it":
        (lambda: opened(db(9, "identity-2", born=8), db(19, "identity-3", born=18)),
         lambda x: [(y.facts["identity_before"], y.facts["identity"]) for y in x.changes[1:2]],
         [("identity-2", "identity-3")]),
    "a first one has none before it": (lambda: opened(), lambda x: facts(x, "identity_before"), (None,)),
    "a smaller manifest is another incarnation: RocksDB 5 keeps an IDENTITY that a torn deletion left":
        (lambda: opened(db(9, manifest=1)), lambda x: (ended(x), x.store.incarnation), (True, 2)),
    "the same manifest is the same": (lambda: opened(db(9, manifest=5)), ended, False),
    "a later manifest is a reopening": (lambda: opened(db(9, manifest=6)), ended, False),
    "a manifest that cannot be read says nothing": (lambda: opened(db(9, manifest=None)), ended, False),
    "puts, size and release of what ended stay known":
        (lambda: opened(db(2, puts=700, flushes=(flush(6, 700, 2),)), db(3, puts=700, lock=FREE), db(60, unseen=GONE)),
         lambda x: (x.store.past[-1].puts, x.store.past[-1].released_us, x.store.past[-1].born_us, x.store.databases),
         (700, at(3), at(1), {})),
    "a store nobody ever saw does not begin by being absent":
        (lambda: seen(task_look(1), db(2, unseen=GONE), db(3, None)), lambda x: (said(x), x.task.stores), ([], {})),
    "a free store beside a locked task lock opens no session":
        (lambda: seen(task_look(0.5, lock=FREE), db(1, lock=FREE), lock_look(2, HELD)),
         lambda x: x.store.sessions, ()),
    "the same answer about a lock is no change": (lambda: opened(db(5)), lambda x: files(x).lock_since_us, at(1)),
    "a lock is dated to its change":
        (lambda: opened(db(5), db(6, lock=FREE), lock_look(7, FREE)), lambda x: files(x).lock_since_us, at(6)),
    # IDENTITY alone goes: CURRENT and manifest make it the store that it was
    "under a held lock somebody else swept the IDENTITY away":
        (lambda: opened(db(9, STAND_IN, unnamed=True)),
         lambda x: (ended(x), x.store.identity, files(x).unnamed, [y for _, y in x.task.swept]),
         (False, "identity-1", True, [f"{DATABASE}/IDENTITY"])),
    "a swept file is reported once":
        (lambda: opened(db(9, STAND_IN, unnamed=True), db(10, STAND_IN, unnamed=True)),
         lambda x: list(x.task.swept), [(at(9), f"{DATABASE}/IDENTITY")]),
    "of a free store it is no sweep":
        (lambda: opened(db(9, STAND_IN, lock=FREE, unnamed=True)),
         lambda x: (ended(x), x.store.identity, x.task.swept), (False, "identity-1", ())),
    "with a later manifest it is no sweep":
        (lambda: opened(db(9, STAND_IN, manifest=6, unnamed=True)),
         lambda x: (ended(x), x.store.identity, x.task.swept), (False, "identity-1", ())),
    "in another directory it is another store":
        (lambda: opened(db(9, STAND_IN, lock=FREE, inode=21, unnamed=True)),
         lambda x: (ended(x), x.store.identity), (True, STAND_IN)),
    "with an earlier manifest it is another store":
        (lambda: opened(db(9, STAND_IN, lock=FREE, manifest=4, unnamed=True)),
         lambda x: (ended(x), x.store.identity), (True, STAND_IN)),
    "what stood in for an IDENTITY goes at the next open, the store and its sessions stay":
        (lambda: seen(task_look(0.5), db(1, STAND_IN, unnamed=True), db(5, STAND_IN, lock=FREE, unnamed=True),
                      db(9, "identity-2", born=8, manifest=9)),
         lambda x: (ended(x), x.store.identity, files(x).unnamed, {z for y in x.store.sessions for z in y.identities}),
         (False, "identity-2", False, {"identity-2"})),
    "after that another IDENTITY is another store":
        (lambda: seen(task_look(0.5), db(1, STAND_IN, unnamed=True), db(9, "identity-2", born=8, manifest=9),
                      db(19, "identity-3", born=18, manifest=12)), ended, True),
    "without IDENTITY and manifest nothing is left of a held store":
        (lambda: opened(db(9, None, manifest=None)), ended, True),
    "nor of a free one": (lambda: opened(db(9, None, lock=FREE, manifest=None)), ended, True),
    "a successor has a first manifest already, and no IDENTITY yet":
        (lambda: seen(db(1, manifest=1), db(1.2, None, manifest=1)),
         lambda x: (ended(x), x.task.swept), (True, ())),
}

FLUSHES: dict[str, Any] = {
    "more puts on disk than before are a flush":
        (lambda: opened(db(2, puts=100, flushes=(flush(6, 100, 1.9),))),
         lambda x: (said(x), *facts(x, "puts", "puts_before"), files(x).puts_at(at(1.9))),
         (["store-flushed"], 100, 0, 100)),
    "a compacted file without sequence numbers adds nothing, and the high-water mark stays":
        (lambda: opened(db(2, puts=100, flushes=(flush(6, 100, 2),)),
                        db(3, manifest=6, flushes=(flush(7, 0, 3, compacted=True),))),
         lambda x: (said(x), x.store.puts), ([], 100)),
    "what went into a compaction's output was written before it":
        (lambda: opened(db(5), db(9, puts=100, flushes=(flush(7, 100, 8, compacted=True),))),
         lambda x: (list(files(x).flushed), files(x).newest_flush), ([(100, at(5))], 0)),
    "a file that is gone was written some time since the look before; an older time is lifted to the last":
        (lambda: opened(db(5, puts=100, flushes=(flush(6, 100, 4),)),
                        db(9, puts=300, flushes=(flush(6, 100, 4), flush(7, 200), flush(8, 300, 3)))),
         lambda x: list(files(x).flushed), [(100, at(4)), (200, at(5)), (300, at(5))]),
    "a manifest that names less than it did was put back, whoever held the store":
        (lambda: opened(db(2, puts=100, flushes=(flush(6, 100, 2),)),
                        db(3, lock=FREE, puts=40, flushes=(flush(5, 40, 1),))),
         lambda x: (x.store.puts, x.store.sessions), (40, ())),
    "a sequence that the manifest says without a file still counts":
        (lambda: opened(db(5, puts=50)), lambda x: x.store.puts, 50),
    "what falls out of a long timeline stays as its floor":
        (lambda: opened(*(db(n, puts=n * 10, flushes=(flush(n, n * 10, n),)) for n in range(2, FLUSHES_KEPT + 4))),
         lambda x: (len(files(x).flushed), files(x).dropped_puts, files(x).puts_at(at(0))), (FLUSHES_KEPT, 30, 30)),
    "a flush that is seen after its checkpoint, and came before, counts for both claims of the session":
        (lambda: opened(checkpoint_look(5, {"s": 100}), db(6, puts=100, flushes=(flush(6, 100, 4.9),)),
                        db(8, puts=300, flushes=(flush(6, 100, 4.9), flush(7, 300, 7)))),
         lambda x: (known(x.store.sessions[-1].first).puts, known(x.store.sessions[-1].last).puts), (100, 100)),
    "a new LOG.old name is an open":
        (lambda: opened(db(5, reopened=(4,))),
         lambda x: (said(x), *facts(x, "occurred_at_us"), x.store.sessions[-1].reopens), (["store-opened"], at(4), 1)),
    "a name that was there before is none":
        (lambda: opened(db(5, reopened=(4,)), db(6, reopened=(4,))),
         lambda x: (said(x), x.store.sessions[-1].reopens), ([], 1)),
    "an open from before the session is not in it":
        (lambda: opened(db(5, reopened=(4,)), db(7, reopened=(0.5, 4))), lambda x: x.store.sessions[-1].reopens, 1),
    "what was there when the store was first seen is history":
        (lambda: seen(task_look(5), db(6, reopened=(2, 3))), lambda x: "store-opened" in said(x), False),
}

GOING: dict[str, Any] = {
    "remains are dated to the look that found them first":
        (lambda: opened(db(2, lock=FREE), db(5, None, lock=FREE, leftovers=3), db(6, None, lock=FREE, leftovers=2)),
         lambda x: (x.store.remains[""].since_us, x.store.remains[""].files), (at(5), 3)),
    "also of a store that was never whole":
        (lambda: seen(task_look(0.5), db(3, None, leftovers=2), db(5, None, leftovers=1)),
         lambda x: (x.store.remains[""].since_us, x.store.remains[""].files), (at(3), 2)),
    "they go with their files":
        (lambda: opened(db(5, None, lock=FREE, leftovers=3), db(7, None, lock=FREE)), lambda x: x.store.remains, {}),
    "a database recreated in the same place is whole":
        (lambda: opened(db(5, None, lock=FREE, leftovers=3), db(9, "identity-2", born=9)),
         lambda x: x.store.remains, {}),
    "a database with an identity but without CURRENT has remains too":
        (lambda: opened(db(5, lock=FREE, leftovers=2)), lambda x: x.store.remains[""].since_us, at(5)),
    "until it is whole":
        (lambda: opened(db(5, lock=FREE, leftovers=2), db(6, lock=FREE)), lambda x: x.store.remains, {}),
    "up to 2.5 the owner wipes under the task lock and goes on in the same holding":
        (lambda: wiped_under_a_lock(db(5, "identity-2", born=5)),
         lambda x: [(shape(x), y.wiped, y.first, y.reopens, y.offset_at_open, y.released_us) for y in x.store.sessions],
         [(Shape.OWNER_WALK, True, None, 0, None, None)]),
    "claims of before the wipe are none of the session that goes on":
        (lambda: wiped_under_a_lock(checkpoint_look(3, {"s": 100}), db(9, "identity-2", born=8)),
         lambda x: [(y.wiped, y.first, y.last, y.puts_at_open) for y in x.store.sessions], [(True, None, None, 0)]),
    "all reopens of what a wipe made are of its session, read late, or after the clock was set back":
        (lambda: wiped_under_a_lock(db(9, "identity-2", born=8, reopened=(8.4,)),
                                    db(10, "identity-2", born=8, reopened=(0.2, 8.4))),
         lambda x: (x.store.sessions[-1].wiped, x.store.sessions[-1].reopens), (True, 2)),
    "an ended incarnation keeps the last release, not the first":
        (lambda: opened(db(10, lock=FREE), db(20, manifest=6, reopened=(20,)),
                        db(30, manifest=6, reopened=(20,), lock=FREE), db(90, unseen=GONE)),
         lambda x: x.store.past[-1].released_us, at(30)),
    "later releases end the session with the store":
        (lambda: opened(db(5, puts=70, flushes=(flush(6, 70, 4),)), db(9, "identity-2", born=8)),
         lambda x: [(y.wiped, y.released_us, y.puts_at_release, y.final_identities) for y in x.store.sessions[:1]],
         [(False, at(8), 70, {"identity-1"})]),
    "a store that was held to its end was wiped by its owner, and its session ends with it":
        (lambda: opened(db(20, unseen=GONE)),
         lambda x: (shape(x), x.store.sessions[-1].released_us), (Shape.OWNER_WALK, at(20))),
    "one that was never held vanished unseen":
        (lambda: seen(task_look(0.5), db(1, lock=FREE), db(9, unseen=GONE)), shape, Shape.VANISHED_UNSEEN),
    "within two seconds of the release it was the owner":
        (lambda: opened(db(10, lock=FREE), db(12, unseen=GONE)), shape, Shape.OWNER_WALK),
    "later, without a walk, nobody was seen":
        (lambda: opened(db(10, lock=FREE), db(12.1, unseen=GONE)), shape, Shape.VANISHED_UNSEEN),
    "a walk that was seen in this store says by whom":
        (lambda: opened(db(10, lock=FREE), removal(60, f"{DATABASE}/CURRENT"), db(61, unseen=GONE)),
         shape, Shape.CLEANER_WALK),
    "a walk that was never in this store says nothing of its end":
        (lambda: opened(db(2, "identity-2", path=OTHER), db(10, lock=FREE), db(10, "identity-2", lock=FREE, path=OTHER),
                        removal(60, f"{OTHER}/CURRENT"), db(61, unseen=GONE), db(61, unseen=GONE, path=OTHER)),
         lambda x: (shape(x), x.task.stores["t"].past[-1].shape), (Shape.VANISHED_UNSEEN, Shape.CLEANER_WALK)),
    "a dropped segment's puts stay counted as long as the store has others":
        (lambda: seen(task_look(0.5), db(1, "a", path=segment(0), puts=100), db(2, "b", path=segment(60), puts=10),
                      db(3, unseen=GONE, path=segment(0))),
         lambda x: [(y.segmented, y.puts, y.retired_puts, y.identities, y.incarnation) for y in x.task.stores.values()],
         [(True, 110, 100, {"b"}, 1)]),
    "the store is recreated only when no segment was left":
        (lambda: seen(task_look(0.5), db(1, "a", path=segment(0), puts=100), db(2, unseen=GONE, path=segment(0)),
                      db(4, "c", born=4, path=segment(120))),
         lambda x: (x.task.stores["w"].retired_puts, x.task.stores["w"].incarnation), (0, 2)),
}
# fmt: on
ALL = INCARNATIONS | FLUSHES | GOING


@pytest.mark.parametrize(("one", "ask", "expected"), ALL.values(), ids=ALL)
def test_what_looks_leave(one, ask, expected):
    """Each row says what it is about."""
    assert ask(one()) == expected


@pytest.mark.parametrize("unseen", [x for x in Unseen if x is not GONE])
def test_reading_that_failed_ends_nothing(unseen):
    """Not being able to look is no deletion, also of a store nobody knew."""
    one = opened(db(9, unseen=unseen))
    assert (said(one), one.store.identity) == ([], "identity-1")
    assert one.see(db(9, unseen=unseen, path=OTHER)) == []
    assert set(one.task.stores) == {"s"}


def test_the_oldest_data_is_remembered():
    """A compaction or a look without counters does not make a store younger; another store starts again."""
    one = seen(task_look(0.5))
    for seconds, oldest_us in ((1, 0), (2, at(40)), (3, at(30)), (4, at(50)), (5, 0)):
        one.see(replace(db(seconds), oldest_data_us=oldest_us))
    assert files(one).oldest_data_us == at(30)
    one.see(db(9, "identity-2", born=8))
    assert files(one).oldest_data_us == 0


def test_layout_of_the_newest_options():
    """RocksDB versions and the offsets family are remembered with the time of their options file."""
    one = opened(
        replace(db(5), rocksdb_version="10.1.3", families=("default", "offsets"), options_written_us=at(4))
    )
    assert one.application.rocksdb_versions == {"10.1.3": at(4)}
    assert one.application.offsets_family_us == at(4)
