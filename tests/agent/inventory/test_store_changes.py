"""Store level of the reducer: incarnations, flushes, remains, and who deleted a store."""

from __future__ import annotations

from dataclasses import replace

import pytest

from agent.inventory.disk import LockState, Unseen
from agent.inventory.stores import FLUSHES_KEPT, Shape
from tests.support.scenario_case import at
from tests.support.scenario_looks import (
    DATABASE,
    FREE,
    GONE,
    HELD,
    TASK,
    Reducing,
    database_look,
    flush,
    lock_look,
    removal,
    task_look,
)


def opened() -> Reducing:
    """A store that is held since 1 s."""
    one = Reducing()
    one.see(task_look(0.5), database_look(1, born=1))
    return one


def test_first_reading_makes_an_incarnation():
    """A database that is new to the dossier is a created store with its identity and birth."""
    one = Reducing()
    assert one.see(task_look(0.5), database_look(1, born=0.7))[-2:] == ["store-created", "task-held"]
    assert (one.store.incarnation, one.store.identity) == (1, "identity-1")
    assert one.store.databases[""].born_us == at(0.7)


def test_the_oldest_data_is_remembered():
    """A compaction or a look without counters does not make a store younger; another store starts again."""
    one = Reducing()
    one.see(task_look(0.5))
    for seconds, oldest_us in ((1, 0), (2, at(40)), (3, at(30)), (4, at(50)), (5, 0)):
        one.see(replace(database_look(seconds, born=1), oldest_data_us=oldest_us))
    assert one.store.databases[""].oldest_data_us == at(30)
    one.see(database_look(9, "identity-2", born=8))
    assert one.store.databases[""].oldest_data_us == 0


def test_same_reading_twice_changes_nothing():
    """Looking again is no event."""
    one = opened()
    assert one.see(database_look(2, born=1)) == []


def test_other_identity_is_another_incarnation():
    """Another IDENTITY ends the old incarnation at the birth of the new one."""
    one = opened()
    assert one.see(database_look(9, "identity-2", born=8))[:2] == ["store-deleted", "store-created"]
    assert one.store.incarnation == 2
    assert (one.store.past[-1].identity, one.store.past[-1].ended_us) == ("identity-1", at(8))


def test_smaller_manifest_is_another_incarnation():
    """RocksDB 5 keeps an IDENTITY that a torn deletion left; its manifest numbers start again."""
    one = opened()
    assert "store-deleted" in one.see(database_look(9, born=1, manifest=1))
    assert one.store.incarnation == 2


@pytest.mark.parametrize("manifest", [5, 6, None])
def test_same_incarnation_for_a_later_manifest(manifest):
    """Each reopen has a higher manifest; one that cannot be read says nothing."""
    one = opened()
    assert "store-deleted" not in one.see(database_look(9, born=1, manifest=manifest))


def test_past_keeps_what_it_was():
    """Puts, size and release of an ended incarnation stay known."""
    one = opened()
    one.see(database_look(2, born=1, puts=700, flushes=(flush(6, 700, 2),)))
    one.see(database_look(3, born=1, puts=700, lock=FREE))
    one.see(database_look(60, unseen=GONE))
    past = one.store.past[-1]
    assert (past.puts, past.released_us, past.born_us) == (700, at(3), at(1))
    assert one.store.databases == {}


# -- flushes ------------------------------------------------------------------------------------------------


def test_flush_is_reported_with_its_puts():
    """More puts on disk than before are a flush."""
    one = opened()
    assert one.see(database_look(2, born=1, puts=100, flushes=(flush(6, 100, 1.9),))) == ["store-flushed"]
    facts = one.changes[0].facts
    assert (facts["puts"], facts["puts_before"]) == (100, 0)
    assert one.store.databases[""].puts_at(at(1.9)) == 100


def test_compaction_is_no_flush():
    """A compacted file without sequence numbers adds nothing, and the high-water mark stays."""
    one = opened()
    one.see(database_look(2, born=1, puts=100, flushes=(flush(6, 100, 2),)))
    assert one.see(database_look(3, born=1, puts=0, flushes=(flush(7, 0, 3, compacted=True),))) == []
    assert one.store.puts == 100


def test_file_that_is_gone_is_dated_to_the_last_reading():
    """A flush that was compacted away before it was seen is dated as early as it can have been."""
    one = opened()
    one.see(database_look(5, born=1, puts=100, flushes=(flush(6, 100, 4),)))
    one.see(database_look(9, born=1, puts=300, flushes=(flush(6, 100, 4), flush(7, 300))))
    assert list(one.store.databases[""].flushed) == [(100, at(4)), (300, at(5))]


def test_timeline_never_goes_back():
    """Files with older times than their predecessors do not turn the timeline around."""
    one = opened()
    one.see(database_look(5, born=1, puts=200, flushes=(flush(6, 100, 4), flush(7, 200, 3))))
    assert list(one.store.databases[""].flushed) == [(100, at(4)), (200, at(4))]


def test_puts_without_files():
    """A sequence that the manifest tells without a file still counts."""
    one = opened()
    one.see(database_look(5, born=1, puts=50))
    assert one.store.puts == 50


def test_long_timelines_drop_their_beginning():
    """What falls out of the timeline stays as its floor."""
    one = opened()
    for number in range(1, FLUSHES_KEPT + 3):
        one.see(
            database_look(
                number + 1, born=1, puts=number * 10, flushes=(flush(number, number * 10, number + 1),)
            )
        )
    files = one.store.databases[""]
    assert len(files.flushed) == FLUSHES_KEPT
    assert files.dropped_puts == 20
    assert files.puts_at(at(0)) == 20


# -- opens --------------------------------------------------------------------------------------------------


def test_reopen_is_reported_once():
    """A new LOG.old name is an open; names that were there before are not."""
    one = opened()
    assert one.see(database_look(5, born=1, reopened=(4,))) == ["store-opened"]
    assert one.changes[0].facts["occurred_at_us"] == at(4)
    assert one.see(database_look(6, born=1, reopened=(4,))) == []
    assert one.store.sessions[-1].reopens == 1


def test_reopens_of_the_first_reading_are_history():
    """What was there when the store was first seen is no event."""
    one = Reducing()
    assert "store-opened" not in one.see(task_look(5), database_look(6, born=1, reopened=(2, 3)))


# -- what is gone -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("unseen", [Unseen.DENIED, Unseen.RACED, Unseen.UNREADABLE])
def test_a_reading_that_failed_decides_nothing(unseen):
    """Only `vanished` says that something is gone."""
    one = opened()
    assert one.see(database_look(5, unseen=unseen)) == []
    assert one.store.identity == "identity-1"


def test_unknown_store_that_is_not_there():
    """A store nobody ever saw does not begin by being absent."""
    one = Reducing()
    one.see(task_look(1))
    assert one.see(database_look(2, unseen=GONE), database_look(3, None)) == []
    assert one.task.stores == {}


def test_remains_are_kept_until_they_are_gone():
    """Data files without CURRENT or IDENTITY are remains, dated to when they were first seen."""
    one = opened()
    one.see(database_look(2, born=1, lock=FREE))
    one.see(database_look(5, None, lock=FREE, leftovers=3), database_look(6, None, lock=FREE, leftovers=2))
    assert (one.store.remains[""].since_us, one.store.remains[""].files) == (at(5), 3)
    one.see(database_look(7, None, lock=FREE))
    assert one.store.remains == {}


def test_new_store_clears_remains():
    """A database recreated in the same place is whole."""
    one = opened()
    one.see(database_look(5, None, lock=FREE, leftovers=3))
    one.see(database_look(9, "identity-2", born=9))
    assert one.store.remains == {}


# -- shapes of a deletion -----------------------------------------------------------------------------------


def test_wipe_within_a_session():
    """Up to 2.5 the owner wipes under the task lock and goes on in the same holding."""
    one = Reducing()
    one.see(task_look(0.5, lock=HELD), database_look(1, born=1))
    one.see(database_look(5, "identity-2", born=5, puts=0))
    assert one.store.past[-1].shape is Shape.OWNER_WALK
    session = one.store.sessions[-1]
    assert len(one.store.sessions) == 1
    assert (session.wiped, session.first, session.reopens, session.offset_at_open) == (True, None, 0, None)
    assert session.released_us is None


def test_deletion_right_after_the_release():
    """From 2.6 on the owner closes first and deletes within milliseconds."""
    one = opened()
    one.see(database_look(10, born=1, lock=FREE))
    one.see(database_look(11.9, unseen=GONE))
    assert one.store.past[-1].shape is Shape.OWNER_WALK


def test_deletion_long_after_the_release_unseen():
    """Later, and without a walk that was seen, nobody knows who it was."""
    one = opened()
    one.see(database_look(10, born=1, lock=FREE))
    one.see(database_look(12.1, unseen=GONE))
    assert one.store.past[-1].shape is Shape.VANISHED_UNSEEN


def test_deletion_by_a_walk():
    """A walk that was seen in this store says by whom."""
    one = opened()
    one.see(database_look(10, born=1, lock=FREE), removal(60, f"{DATABASE}/CURRENT"))
    one.see(database_look(61, unseen=GONE))
    assert one.store.past[-1].shape is Shape.CLEANER_WALK


def test_deletion_of_a_held_store_without_a_task_lock():
    """A store that was held to its end was wiped by its owner; its session ends with it."""
    one = opened()
    one.see(database_look(20, unseen=GONE))
    assert one.store.past[-1].shape is Shape.OWNER_WALK
    assert one.store.sessions[-1].released_us == at(20)


# -- segments -----------------------------------------------------------------------------------------------


def segment(number: int) -> str:
    """Path of a segment."""
    return f"{TASK}/w/w.{number}"


def test_expired_segment_keeps_its_puts():
    """A dropped segment's puts stay counted as long as the store has others."""
    one = Reducing()
    one.see(
        task_look(0.5),
        database_look(1, "a", born=1, path=segment(0), puts=100),
        database_look(2, "b", born=2, path=segment(60), puts=10),
    )
    store = one.task.stores["w"]
    assert (store.segmented, store.puts, store.incarnation) == (True, 110, 1)
    one.see(database_look(3, unseen=GONE, path=segment(0)))
    assert (store.puts, store.retired_puts, store.identities) == (110, 100, frozenset({"b"}))
    one.see(database_look(4, unseen=GONE, path=segment(60)))
    assert (store.puts, store.retired_puts) == (0, 0)


def test_new_segment_is_the_same_incarnation():
    """Segments come and go; the store is recreated only when none was left."""
    one = Reducing()
    one.see(task_look(0.5), database_look(1, "a", born=1, path=segment(0)))
    one.see(database_look(2, "b", born=2, path=segment(60)))
    assert one.task.stores["w"].incarnation == 1
    one.see(database_look(3, unseen=GONE, path=segment(0)), database_look(3, unseen=GONE, path=segment(60)))
    one.see(database_look(4, "c", born=4, path=segment(120)))
    assert one.task.stores["w"].incarnation == 2


def test_layout_of_the_newest_options():
    """RocksDB versions and the offsets family are remembered with the time of their options file."""
    one = opened()
    look = database_look(5, born=1)
    object.__setattr__(look, "rocksdb_version", "10.1.3")
    object.__setattr__(look, "families", ("default", "offsets"))
    object.__setattr__(look, "options_written_us", at(4))
    one.see(look)
    assert one.application.rocksdb_versions == {"10.1.3": at(4)}
    assert one.application.offsets_family_us == at(4)
    assert one.store.databases[""].lock is LockState.HELD


def test_task_lock_probe_does_not_hold_the_store():
    """A free store beside a locked task lock opens no session."""
    one = Reducing()
    one.see(task_look(0.5, lock=FREE), database_look(1, born=1, lock=FREE), lock_look(2, HELD))
    assert not one.store.sessions
