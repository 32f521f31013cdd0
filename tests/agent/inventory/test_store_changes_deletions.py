"""Store level of the reducer: what goes from under a lock, walks that ended, marks that come late."""

from __future__ import annotations

import pytest

from agent.inventory.disk import Unseen
from agent.inventory.model import Shape
from tests.support.scenario_case import at
from tests.support.scenario_looks import (
    DATABASE,
    FREE,
    GONE,
    HELD,
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


def opened(*, old: bool = False) -> Reducing:
    """A store that is held since 1 s; up to 2.8 under the task's own lock."""
    one = Reducing()
    one.see(task_look(0.5, lock=HELD if old else None), database_look(1, born=1))
    return one


@pytest.mark.parametrize("unseen", [Unseen.DENIED, Unseen.RACED])
def test_reading_that_failed_ends_nothing(unseen):
    """Not being able to look is no deletion, also of a store nobody knew."""
    one = opened()
    assert one.see(database_look(9, unseen=unseen)) == []
    assert one.store.identity == "identity-1"
    assert one.see(database_look(9, unseen=unseen, path="app/0_0/rocksdb/t")) == []
    assert set(one.task.stores) == {"s"}


@pytest.mark.parametrize(("lock", "manifest", "swept"), [(HELD, 5, True), (FREE, 5, False), (HELD, 6, False)])
def test_identity_that_goes_alone(lock, manifest, swept):
    """CURRENT and manifest make it the store that it was; under a held lock somebody else swept the file away."""
    one = opened()
    told = one.see(database_look(9, STAND_IN, lock=lock, manifest=manifest, unnamed=True))
    assert "store-deleted" not in told
    assert (one.store.identity, one.store.databases[""].unnamed) == ("identity-1", True)
    assert [path for _, path in one.task.swept] == ([f"{DATABASE}/IDENTITY"] if swept else [])


@pytest.mark.parametrize(("inode", "manifest"), [(21, 5), (20, 4)])
def test_another_database_without_identity(inode, manifest):
    """Another directory, or an earlier manifest: it was put in the place of the one that is known."""
    one = opened()
    told = one.see(database_look(9, STAND_IN, lock=FREE, manifest=manifest, inode=inode, unnamed=True))
    assert "store-deleted" in told
    assert one.store.identity == STAND_IN


def test_identity_that_the_next_open_makes():
    """What stood in for it goes, the store and its sessions stay; a lower manifest is another store."""
    one = Reducing()
    one.see(task_look(0.5), database_look(1, STAND_IN, lock=HELD, unnamed=True))
    one.see(database_look(5, STAND_IN, lock=FREE, unnamed=True))
    told = one.see(database_look(9, "identity-2", born=8, lock=HELD, manifest=9))
    assert "store-deleted" not in told
    assert (one.store.identity, one.store.databases[""].unnamed) == ("identity-2", False)
    assert {x for session in one.store.sessions for x in session.identities} == {"identity-2"}
    assert "store-deleted" in one.see(database_look(19, "identity-3", born=18, manifest=12))


@pytest.mark.parametrize("lock", [HELD, FREE])
def test_identity_that_goes_with_the_manifest(lock):
    """Without both nothing is left of the store."""
    assert "store-deleted" in opened().see(database_look(9, None, lock=lock, manifest=None))


def test_first_manifest_comes_before_the_identity():
    """A wipe in the first second of a store's life: its successor has a CURRENT already, and no IDENTITY yet."""
    one = Reducing()
    one.see(database_look(1, born=1, lock=HELD, manifest=1))
    assert "store-deleted" in one.see(database_look(1.2, None, lock=HELD, manifest=1))
    assert list(one.task.swept) == []


def test_swept_file_is_reported_once():
    """A second look at the same gap is no second sweep."""
    one = opened()
    one.see(*(database_look(x, STAND_IN, unnamed=True) for x in (9, 10)))
    assert list(one.task.swept) == [(at(9), f"{DATABASE}/IDENTITY")]


@pytest.mark.parametrize(("born", "walks"), [(59, True), (60, True), (60.1, False)])
def test_store_that_is_born_after_a_walk_ends_it(born, walks):
    """A walk is over when a store is made after its last removal, not by one that was made before."""
    one = opened()
    one.see(database_look(10, born=1, lock=FREE), removal(60, f"{DATABASE}/CURRENT"))
    assert one.task.walk is not None
    one.see(database_look(61, "identity-2", born=born, lock=FREE, path="app/0_0/rocksdb/t"))
    assert (one.task.walk is not None) is walks


def test_created_store_shows_its_predecessor():
    """The newest incarnation before it; a first one has none."""
    one = opened()
    assert one.store.incarnation == 1
    one.see(database_look(9, "identity-2", born=8), database_look(19, "identity-3", born=18))
    created = next(x for x in one.changes if x.change.value == "store-created" and x.at_us == at(19))
    assert (created.facts["identity_before"], created.facts["identity"]) == ("identity-2", "identity-3")
    first = Reducing()
    first.see(task_look(0.5), database_look(1, born=1))
    assert (
        next(x for x in first.changes if x.change.value == "store-created").facts["identity_before"] is None
    )


def test_release_of_the_newest_session():
    """An ended incarnation keeps the last release, not the first."""
    one = opened()
    one.see(database_look(10, born=1, lock=FREE))
    one.see(database_look(20, born=1, manifest=6, reopened=(20,)))
    one.see(database_look(30, born=1, manifest=6, reopened=(20,), lock=FREE), database_look(90, unseen=GONE))
    assert one.store.past[-1].released_us == at(30)


def test_wipe_under_the_task_lock_goes_on():
    """Up to 2.5 an owner wipes one store and keeps the task: the same session starts again."""
    one = opened(old=True)
    one.see(checkpoint_look(3, {"s": 100}), database_look(9, "identity-2", born=8))
    assert len(one.store.sessions) == 1
    session = one.store.sessions[-1]
    assert (session.wiped, session.reopens, session.first, session.last) == (True, 0, None, None)
    assert (session.puts_at_open, session.offset_at_open, session.released_us) == (0, None, None)


def test_reopens_of_a_store_that_a_wipe_made():
    """Read late, or after the clock was set back: all of them are of the session that wiped (found by the hunt)."""
    one = opened(old=True)
    one.see(database_look(9, "identity-2", born=8, reopened=(8.4,)))
    assert (one.store.sessions[-1].wiped, one.store.sessions[-1].reopens) == (True, 1)
    one.see(database_look(10, "identity-2", born=8, reopened=(0.2, 8.4)))
    assert one.store.sessions[-1].reopens == 2


def test_wipe_without_the_task_lock_is_an_end():
    """Later releases end the session with the store."""
    one = opened()
    one.see(database_look(5, born=1, puts=70, flushes=(flush(6, 70, 4),)))
    one.see(database_look(9, "identity-2", born=8))
    first = one.store.sessions[0]
    assert (first.wiped, first.released_us, first.puts_at_release) == (False, at(8), 70)
    assert first.final_identities == {"identity-1"}


@pytest.mark.parametrize(
    ("seconds", "shape"),
    [(11.9, Shape.OWNER_WALK), (12, Shape.OWNER_WALK), (12.1, Shape.VANISHED_UNSEEN)],
)
def test_who_deleted_it_without_a_walk(seconds, shape):
    """Within two seconds of its release it was the owner; later nobody was seen."""
    one = opened()
    one.see(database_look(10, born=1, lock=FREE), database_look(seconds, unseen=GONE))
    assert one.store.past[-1].shape is shape


def test_who_deleted_a_held_store():
    """While it is held only its owner can; a store that was never held vanished unseen."""
    one = opened()
    one.see(database_look(9, unseen=GONE))
    assert one.store.past[-1].shape is Shape.OWNER_WALK
    free = Reducing()
    free.see(task_look(0.5), database_look(1, lock=FREE), database_look(9, unseen=GONE))
    assert free.store.past[-1].shape is Shape.VANISHED_UNSEEN


def test_walk_over_another_store():
    """A walk that was never in this store says nothing of its end."""
    one = opened()
    one.see(database_look(2, "identity-2", born=1, path="app/0_0/rocksdb/t"))
    one.see(database_look(10, born=1, lock=FREE))
    one.see(database_look(10, "identity-2", born=1, lock=FREE, path="app/0_0/rocksdb/t"))
    one.see(removal(60, "app/0_0/rocksdb/t/CURRENT"), database_look(61, unseen=GONE))
    assert one.store.past[-1].shape is Shape.VANISHED_UNSEEN
    one.see(database_look(61, unseen=GONE, path="app/0_0/rocksdb/t"))
    assert one.task.stores["t"].past[-1].shape is Shape.CLEANER_WALK


def test_flush_that_is_seen_after_its_checkpoint():
    """The file's time says that it came before: the newest session's marks count it, both of them."""
    one = opened()
    one.see(checkpoint_look(5, {"s": 100}))
    assert known(one.store.sessions[-1].first).puts == 0
    one.see(database_look(6, born=1, puts=100, flushes=(flush(6, 100, 4.9),)))
    session = one.store.sessions[-1]
    assert (known(session.first).puts, known(session.last).puts) == (100, 100)
    one.see(database_look(8, born=1, puts=300, flushes=(flush(6, 100, 4.9), flush(7, 300, 7))))
    assert known(session.last).puts == 100


def test_times_of_flushes_never_go_back():
    """A file without a time was written some time since the look before; an older time is lifted to the last."""
    one = opened()
    one.see(database_look(5, born=1, puts=100, flushes=(flush(6, 100, 4),)))
    one.see(database_look(9, born=1, puts=300, flushes=(flush(6, 100, 4), flush(7, 200), flush(8, 300, 3))))
    assert list(one.store.databases[""].flushed) == [(100, at(4)), (200, at(5)), (300, at(5))]


def test_output_of_a_compaction_is_as_old_as_the_reading_before():
    """What went into it was written before it."""
    one = opened()
    one.see(database_look(5, born=1))
    one.see(database_look(9, born=1, puts=100, flushes=(flush(7, 100, 8, compacted=True),)))
    assert list(one.store.databases[""].flushed) == [(100, at(5))]
    assert one.store.databases[""].newest_flush == 0


def test_remains_keep_their_first_time():
    """Remains are dated to the look that found them first, and go with their files."""
    one = Reducing()
    one.see(task_look(0.5), database_look(3, None, leftovers=2), database_look(5, None, leftovers=1))
    assert (one.store.remains[""].since_us, one.store.remains[""].files) == (at(3), 2)
    one.see(database_look(7, None))
    assert one.store.remains == {}


def test_remains_of_a_known_database():
    """A database with an identity but without CURRENT has remains too."""
    one = opened()
    one.see(database_look(5, born=1, lock=FREE, leftovers=2))
    assert one.store.remains[""].since_us == at(5)
    one.see(database_look(6, born=1, lock=FREE))
    assert one.store.remains == {}


def test_reopens_are_counted_once_and_inside_only():
    """A reopen that was told already is no new one; one from before the session is not in it."""
    one = opened()
    assert one.see(database_look(5, born=1, reopened=(4,))) == ["store-opened"]
    assert one.see(database_look(6, born=1, reopened=(4,))) == []
    assert one.store.sessions[-1].reopens == 1
    one.see(database_look(7, born=1, reopened=(0.5, 4)))
    assert one.store.sessions[-1].reopens == 1


def test_lock_is_dated_to_its_change():
    """The same answer again is no change."""
    one = opened()
    one.see(database_look(5, born=1, lock=HELD))
    assert one.store.databases[""].lock_since_us == at(1)
    one.see(database_look(6, born=1, lock=FREE), lock_look(7, FREE))
    assert one.store.databases[""].lock_since_us == at(6)
