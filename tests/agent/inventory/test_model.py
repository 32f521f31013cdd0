"""What the inventory itself answers: puts over time, locks of a store, entries of a checkpoint, bounds, changelogs."""

from __future__ import annotations

from dataclasses import fields

import pytest

from agent.contract.events import Source
from agent.inventory.disk import LockState
from agent.inventory.model import Application, Inventory, ProcessLife, Task
from agent.inventory.observations import DatabaseReading, LockReading
from agent.inventory.recent import KEPT, recent
from agent.inventory.stores import FLUSHES_KEPT, Database, Store
from agent.inventory.timeline import Timeline
from agent.layout.checkpoint import OffsetEntry
from agent.layout.paths import classify
from tests.support.scenario_case import at, checkpoint, database, session, store, task

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
        ("__top__/0_3", OffsetEntry("app-other-s-changelog", 3, 1), None),
        ("__top__/0_3", OffsetEntry("app-top-s-changelog", 1, 1), None),
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


def test_life_that_lasts():
    """Only the newest life without an end lasts."""
    app = Application("app")
    assert app.life is None
    app.lives += (ProcessLife(at(0), at(1)),)
    assert app.life is None
    lasting = Application("app")
    lasting.lives += (*app.lives, ProcessLife(at(2), at(3)), ProcessLife(at(4)))
    assert lasting.life is lasting.lives[-1]


def test_session_that_lasts():
    """Only the newest session without a release lasts."""
    one = Store("s", segmented=False)
    assert one.session is None
    open_one = Store("s", segmented=False)
    open_one.sessions += (session(-2, -1), session(0))
    assert open_one.session is open_one.sessions[-1]
    open_one.sessions += (session(0, 1),)
    assert open_one.session is None


def test_checkpoint_on_disk():
    """The newest content, unless it was replaced or deleted."""
    assert task().checkpoint is None
    one = task(checkpoints=[checkpoint(0, 4, ended=1), checkpoint(1, 5, ended=2), checkpoint(2, 6)])
    assert one.checkpoint is one.checkpoints[-1]
    assert task(checkpoints=[checkpoint(1, 5), checkpoint(2, 6, ended=3)]).checkpoint is None


def test_checkpoint_at_a_time():
    """The newest one written before that time, not at it."""
    one = task(checkpoints=[checkpoint(1, 5, ended=3), checkpoint(3, 6)])
    assert [x and x.written_us for x in map(one.checkpoint_at, (at(1), at(2), at(3), at(4)))] == [
        None,
        at(1),
        at(1),
        at(3),
    ]


def test_nothing_is_claimed_before_it_was_seen():
    """No lock was held, no positions, no session closed, no store free until a look says so."""
    app, one, held = Application("app"), task(), session(0)
    assert (app.lock_ever_held, app.task_lock_ever_held, app.task_ever_held, app.exists) == (False,) * 4
    assert (one.held, one.lock, one.released_us) == (None, None, None)
    assert (held.closed, held.attached, held.wiped, held.outlived) == (None, False, False, None)
    assert held.closed_with_offset  # only a 4.3 store can lack it
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


def test_session_of_an_incarnation():
    """By what it opened or what it left; after a wipe that goes on it is of whatever is there."""
    one = session(0, 1, identity="a")
    assert one.is_of(frozenset({"a"}))
    assert not one.is_of(frozenset({"b"}))
    assert not session(0, identity="a").is_of(frozenset({"b"}))
    one.final_identities = frozenset({"b"})
    assert one.is_of(frozenset({"b"}))
    wiping = session(0, identity="a")
    wiping.wiped = True
    assert wiping.is_of(frozenset({"c"}))
    wiping.released_us = at(1)
    assert not wiping.is_of(frozenset({"c"}))


def test_identity_of_a_windowed_store():
    """That of its oldest segment; one without an identity has none."""
    segments = [
        database(segment="w.1", identity="young", born=5),
        database(segment="w.0", identity="old", born=1),
        database(segment="w.2", identity="", born=0),
    ]
    one = Store("w", segmented=True, databases={x.segment or "": x for x in segments})
    assert one.identity == "old"
    assert one.identities == {"young", "old"}
    assert Store("w", segmented=True).identity is None


UNLOGGED = "u"


def passed_over(
    written: float, *, released: float | None = 20, offset: int | None = 99, **flushed: float
) -> Task:
    """A store that is held from 2 s on, has data from 5 s on, and that a checkpoint of its sibling does not name."""
    files = database(puts=600, flushed=[(600, flushed.get("data", 5))])
    one = store([files], [session(2, released, puts=600)], name=UNLOGGED)
    return task(store([database()]), one, checkpoints=[checkpoint(written, offset)])


@pytest.mark.parametrize("released", [20, None])
@pytest.mark.parametrize("written", [5, 10, 20, 20.5])
def test_has_no_changelog(written, released):
    """Held, with data, and not named beside its siblings; up to 2.1 exactly-once writes after the close."""
    assert not passed_over(written, released=released).names_changelog_of(UNLOGGED)


def test_checkpoint_before_its_data():
    """Up to 2.5 a store without data may be left out; from 2.6 on none is."""
    one = passed_over(4)
    assert one.names_changelog_of(UNLOGGED)
    assert not one.names_changelog_of(UNLOGGED, lists_all=True)


@pytest.mark.parametrize("written", [1, 2, 20.6])
def test_checkpoint_of_another_session(written):
    """A checkpoint from before it was opened or after it was let go may be of a topology without it."""
    one = passed_over(written, data=0)
    assert one.names_changelog_of(UNLOGGED)
    assert one.names_changelog_of(UNLOGGED, lists_all=True)


def test_nothing_said_of_anyone():
    """No checkpoint at all, or a store that nobody knows."""
    assert task(store([database()])).names_changelog_of("s", lists_all=True)
    assert passed_over(10).names_changelog_of("stranger", lists_all=True)


def test_empty_checkpoint():
    """Up to 2.6 a task none of whose stores has a changelog leaves a checkpoint without entries."""
    assert not passed_over(10, offset=None).names_changelog_of(UNLOGGED)
    assert passed_over(4, offset=None).names_changelog_of(UNLOGGED)


def test_one_entry_is_enough():
    """Named once: it has a changelog, whatever a later checkpoint leaves out."""
    one = passed_over(10)
    one.checkpoints += (checkpoint(12, 5, name=UNLOGGED),)
    assert one.names_changelog_of(UNLOGGED, lists_all=True)
    assert one.names_changelog_of("s", lists_all=True)
