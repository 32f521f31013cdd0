"""The dossier's defaults and bounds: what nobody saw is not claimed, and memory has an end."""

from __future__ import annotations

from dataclasses import fields

from agent.contract.events import Source
from agent.inventory.model import Application, Inventory, ProcessLife, Task
from agent.inventory.observations import DatabaseReading, LockReading
from agent.inventory.recent import KEPT
from agent.inventory.stores import Database, Store
from agent.layout.checkpoint import OffsetEntry
from agent.layout.paths import classify
from tests.support.scenario_case import at, checkpoint, database, session, task


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


def test_entry_of_a_topology():
    """In a named topology only its own changelogs are a task's; a topic that is none belongs to no store."""
    one = task(task_id="__inner__/0_0")
    assert one.store_of(OffsetEntry("app-inner-s-changelog", 0, 5)) == "s"
    assert one.store_of(OffsetEntry("app-other-s-changelog", 0, 5)) is None
    assert one.store_of(OffsetEntry("orders", 0, 5)) is None
    assert one.store_of(OffsetEntry("app-inner-s-changelog", 1, 5)) is None
