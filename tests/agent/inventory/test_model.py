"""What the inventory itself answers: puts over time, locks of a store, entries of a checkpoint, bounds, changelogs."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import pytest

from agent.contract.events import Source
from agent.inventory.disk import LockState
from agent.inventory.model import Application, Inventory, ProcessLife, Task
from agent.inventory.observations import DatabaseReading, LockReading
from agent.inventory.recent import KEPT
from agent.inventory.stores import Database, Session, Store
from agent.layout.checkpoint import OffsetEntry
from agent.layout.paths import classify
from tests.support.scenario_case import at, checkpoint, database, session, store, task

HELD, FREE, UNKNOWN = LockState.HELD, LockState.FREE, LockState.UNKNOWN


def locked(*locks: LockState | None) -> Store:
    """A store whose segments have these locks."""
    return store([database(lock=lock, segment=f"w.{n}") for n, lock in enumerate(locks)])


def flushed(*timeline: tuple[int, float], dropped: int = 0) -> Database:
    """A database with this timeline of (puts, seconds)."""
    one = database(puts=timeline[-1][0], flushed=timeline)
    one.dropped_puts = dropped
    return one


def windowed(*segments: tuple[str, str, float], retired: int = 0) -> Store:
    """A windowed store with segments (name, identity, birth)."""
    made = [database(segment=name, identity=identity, born=born) for name, identity, born in segments]
    one = Store("w", segmented=True, databases={x.segment or "": x for x in made})
    one.retired_puts = retired
    return one


def lived(*lives: ProcessLife) -> Application:
    """An application with these lives."""
    app = Application("app")
    app.lives += lives
    return app


def held(*sessions: Session) -> Store:
    """A store with these sessions."""
    return store([], sessions)


def wiping(released: float | None = None) -> Session:
    """A session that wiped its store, and goes on or not."""
    one = session(0, released, identity="a")
    one.wiped = True
    return one


def ended_as(identity: str) -> Session:
    """A session that began with identity `a`."""
    one = session(0, 1, identity="a")
    one.final_identities = frozenset({identity})
    return one


def of_two(*ends: float | None) -> Task:
    """A task whose checkpoints were written at 1 s, 2 s and so on, and ended then."""
    return task(checkpoints=[checkpoint(n, 5, ended=end) for n, end in enumerate(ends, start=1)])


TWO = store(
    [database(puts=5, segment="w.0", flushed=[(5, 1)]), database(puts=7, segment="w.1", flushed=[(7, 9)])]
)
TWO.retired_puts = 100
SEGMENTS = windowed(("w.1", "young", 5), ("w.0", "old", 1), ("w.2", "", 0))
ENDED, LASTS = ProcessLife(at(0), at(1)), ProcessLife(at(4))
ANSWERS: dict[str, tuple[Any, Any]] = {
    # what was on disk at a time: nothing before the first flush, the flush itself included
    "puts over time": (
        [flushed((100, 10), (300, 20)).puts_at(at(x)) for x in (9, 10, 19.9, 20, 100)], [0, 100, 100, 300, 300]),
    "where older flushes were dropped their count is the floor": (flushed((300, 20), dropped=200).puts_at(at(10)), 200),
    "segments add up, expired ones included": ((TWO.puts, TWO.puts_at(at(5))), (112, 105)),
    # held wins, then what could not be asked, then free
    "a held and a free segment": (locked(HELD, FREE).lock, HELD),
    "a free and an unknown one": (locked(FREE, UNKNOWN).lock, UNKNOWN),
    "an unknown and a held one": (locked(UNKNOWN, HELD).lock, HELD),
    "a free one, and one without a lock": (locked(FREE, None).lock, FREE),
    "none with a lock": (locked(None).lock, None),
    "no segment": (locked().lock, None),
    "the number after the underscore": (Task("app", "10_7", "p").partition, 7),
    "global stores have none": (Task("app", "global", "p").partition, None),
    "a global task": ([Task("app", x, "p").is_global for x in ("global", "0_0")], [True, False]),
    # only the newest without an end lasts
    "no life": (lived().life, None),
    "a life that ended": (lived(ENDED).life, None),
    "a life that lasts": (lived(ENDED, LASTS).life, LASTS),
    "no session": (held().session, None),
    "a session that lasts": (held(session(-2, -1), session(0)).session, session(0)),
    "one that ended after it": (held(session(0), session(0, 1)).session, None),
    "no checkpoint": (task().checkpoint, None),
    "the newest content": (of_two(2, None).checkpoint, checkpoint(2, 5)),
    "unless it was replaced or deleted": (of_two(2, 3).checkpoint, None),
    "the newest one that was written before that time, not at it": (
        [x and x.written_us for x in map(of_two(2, None).checkpoint_at, map(at, (1, 2, 3)))], [None, at(1), at(2)]),
    # by what it opened or what it left; after a wipe that goes on it is of whatever is there
    "a session is of what it opened": ([ended_as("a").is_of(frozenset({x})) for x in "ab"], [True, False]),
    "and of what it left": (ended_as("b").is_of(frozenset({"b"})), True),
    "a wipe that goes on is of whatever is there": (wiping().is_of(frozenset({"c"})), True),
    "one that ended is not": (wiping(1).is_of(frozenset({"c"})), False),
    "the identity of a windowed store is that of its oldest segment": (
        (SEGMENTS.identity, SEGMENTS.identities), ("old", {"young", "old"})),
    "without segments it has none": (windowed().identity, None),
}  # fmt: skip


@pytest.mark.parametrize(("answer", "expected"), ANSWERS.values(), ids=ANSWERS)
def test_answers(answer, expected):
    """Each row says what it is about."""
    assert answer == expected


@pytest.mark.parametrize(
    ("task_id", "topic", "partition", "name"),
    [
        ("0_3", "app-s-changelog", 3, "s"),
        ("0_3", "app-s-changelog", 2, None),
        ("0_3", "other-s-changelog", 3, None),
        ("0_3", "input", 3, None),
        ("global", "app-s-changelog", 5, "s"),
        ("__top__/0_3", "app-top-s-changelog", 3, "s"),
        ("__top__/0_3", "app-s-changelog", 3, None),
        ("__top__/0_3", "app-other-s-changelog", 3, None),
        ("__top__/0_3", "app-top-s-changelog", 1, None),
    ],
)
def test_store_of_an_entry(task_id, topic, partition, name):
    """An entry belongs to a store by its topic and partition; a named topology puts its name into the topic."""
    assert Task("app", task_id, f"app/{task_id}").store_of(OffsetEntry(topic, partition, 1)) == name


def test_nothing_is_claimed_before_it_was_seen():
    """No lock was held, no positions, no session closed, no store free until a look says so."""
    app, one, opened = Application("app"), task(), session(0)
    assert (app.lock_ever_held, app.task_lock_ever_held, app.task_ever_held, app.exists) == (False,) * 4
    assert (one.held, one.lock, one.released_us) == (None, None, None)
    assert (opened.closed, opened.attached, opened.wiped, opened.outlived) == (None, False, False, None)
    assert opened.closed_with_offset  # only a 4.3 store can lack it
    assert not Store("s", segmented=False).free_seen
    assert not Inventory().root_seen
    assert not LockReading(classify("app/.lock"), at(0), Source.TIMER).announced
    look = DatabaseReading(classify("app/0_0/rocksdb/s"), at(0), Source.TIMER)
    assert (look.identity, look.lock, look.leftovers, look.announced_us) == (None, None, 0, 0)


def test_memory_is_bounded():
    """A few dozen records per task at most, and some hundred blind intervals, however long the agent runs."""
    kept = [each.metadata.get(KEPT) for kind in (Task, Store, Application, Database) for each in fields(kind)]
    bounds = [bound for bound in kept if bound is not None]
    assert len(bounds) == 10
    assert all(2 <= bound <= 64 for bound in bounds)
    assert 64 <= Inventory().blind.maxlen <= 1024


UNLOGGED = "u"


def passed_over(
    written: float,
    *,
    released: float | None = 20,
    offset: int | None = 99,
    data: float = 5,
    named: bool = False,
    named_before: bool = False,
) -> Task:
    """A store that is held from 2 s on, has data from then on, and that a checkpoint of its sibling does not name."""
    files = database(puts=600, flushed=[(600, data)])
    one = store([files], [session(2, released, puts=600)], name=UNLOGGED)
    facts = [checkpoint(written, offset), *([checkpoint(12, 5, name=UNLOGGED)] if named else [])]
    facts = [*([checkpoint(1, 5, name=UNLOGGED)] if named_before else []), *facts]
    return task(store([database()]), one, checkpoints=facts)


HAS, HAS_NONE, MAY = (True, True), (False, False), (True, False)


@pytest.mark.parametrize(
    ("one", "store_name", "expected"),
    [
        # held, with data, and not named beside its siblings; up to 2.1 exactly-once writes after the close
        *((passed_over(x, released=y), UNLOGGED, HAS_NONE) for x in (5, 10, 20, 20.5) for y in (20, None)),
        (
            passed_over(4),
            UNLOGGED,
            MAY,
        ),  # up to 2.5 a store without data may be left out; from 2.6 on none is
        # a checkpoint from before it was opened or after it was let go may be of a topology without it
        *((passed_over(x, data=0), UNLOGGED, HAS) for x in (1, 2, 20.6)),
        (task(store([database()])), "s", HAS),  # no checkpoint
        (passed_over(10), "stranger", HAS),  # a store that nobody knows
        # up to 2.6 a task none of whose stores has a changelog leaves a checkpoint without entries
        (passed_over(10, offset=None), UNLOGGED, HAS_NONE),
        (passed_over(4, offset=None), UNLOGGED, MAY),
        # an upgrade switched logging off; up to 2.5 a store to which nothing was put is left out, too
        (passed_over(10, named_before=True), UNLOGGED, MAY),
        # an empty one is also what a corrupted task writes
        (passed_over(10, offset=None, named_before=True), UNLOGGED, HAS),
        # named once: it has a changelog, whatever an earlier checkpoint leaves out
        (passed_over(10, named=True), UNLOGGED, HAS),
        (passed_over(10, named=True), "s", HAS),
    ],
)
def test_whether_a_checkpoint_names_a_changelog(one, store_name, expected):
    """As it may leave some out, and as it lists all."""
    said = (one.names_changelog_of(store_name), one.names_changelog_of(store_name, lists_all=True))
    assert said == expected
