"""Sessions: who holds a store from when to when, what it found and what it left."""

from __future__ import annotations

from dataclasses import replace

import pytest

from agent.inventory.observations import DatabaseReading, StoreOffsets
from tests.support.scenario_case import at
from tests.support.scenario_looks import (
    FREE,
    HELD,
    TASK,
    UNKNOWN,
    Reducing,
    application_look,
    checkpoint_look,
    database_look,
    flush,
    lock_look,
    removal,
    task_look,
)


def test_made_by_the_opening():
    """A store that was born under the agent's eyes began with its session, at its birth."""
    one = Reducing()
    one.see(task_look(1), database_look(2, born=1.5))
    session = one.store.sessions[-1]
    assert (session.created, session.opened_us, session.puts_at_open) == (True, at(1.5), 0)
    assert session.identities == {"identity-1"}


def test_found_open():
    """Of a store that was there before the agent looked nobody can say that this session made it."""
    one = Reducing()
    one.see(task_look(100), database_look(100.1, born=1, puts=500, opened_puts=400, reopened=(20, 50)))
    session = one.store.sessions[-1]
    assert (session.created, session.opened_us, session.puts_at_open) == (False, at(50), 400)


@pytest.mark.parametrize(("written", "puts"), [(49.9, 500), (50.1, 400)])
def test_found_before_its_manifest_was_renewed(written, puts):
    """The old manifest ends with what the opening found; OPTIONS comes after the new one."""
    one = Reducing()
    found = database_look(50.2, born=1, puts=500, opened_puts=400, reopened=(20, 50))
    renewed = replace(found, rocksdb_version="9.7.3", options_written_us=at(written))
    one.see(task_look(40), renewed)
    assert one.store.sessions[-1].puts_at_open == puts


def segment_look(seconds: float, name: str, **more) -> DatabaseReading:
    """A look at a segment that begins with 100 puts on disk, and ends with 500."""
    fields = {"born": 1, "puts": 500, "opened_puts": 100, "path": f"{TASK}/w/{name}", **more}
    return database_look(seconds, f"id-{name}", **fields)


def test_segments_are_not_read_at_once():
    """What a segment holds that is not read again yet is what it was left with."""
    one = Reducing()
    one.see(task_look(9), *(segment_look(10, name, lock=FREE) for name in ("w.0", "w.60")))
    for name in ("w.0", "w.60"):
        one.see(segment_look(20.1, name, opened_puts=500, manifest=9, reopened=(20,)))
    (session,) = one.task.stores["w"].sessions
    assert (session.attached, session.puts_at_open) == (False, 1000)


@pytest.mark.parametrize(("born", "puts"), [(1, 1000), (21, 500)])
def test_segments_that_are_found_later(born, puts):
    """A segment from before the session was there when it began; a younger one was not."""
    one = Reducing()
    one.see(task_look(19), segment_look(20, "w.0", opened_puts=500, reopened=(10,)))
    one.see(segment_look(22, "w.60", born=born, opened_puts=500, reopened=(10,)))
    assert one.task.stores["w"].sessions[-1].puts_at_open == puts


@pytest.mark.parametrize(("known", "created"), [(True, True), (False, False)])
def test_found_open_and_never_opened_again(known, created):
    """Without a trace of a reopening it is as its session made it, if reopenings leave traces."""
    one = Reducing()
    one.see(task_look(100), database_look(100.1, born=1, puts=500, opened_puts=400, all_reopens=known))
    session = one.store.sessions[-1]
    assert (session.created, session.attached) == (created, not created)


def test_opened_again():
    """The second session begins at its LOG.old, with what the first one left."""
    one = Reducing()
    one.see(task_look(1), database_look(2, born=1.5))
    one.see(database_look(5, born=1.5, puts=700, flushes=(flush(6, 700, 4),), lock=FREE))
    one.see(database_look(20.3, born=1.5, puts=700, reopened=(20,)))
    first, second = one.store.sessions
    assert (first.released_us, first.puts_at_release, first.final_identities) == (
        at(5),
        700,
        frozenset({"identity-1"}),
    )
    assert (second.created, second.opened_us, second.puts_at_open, second.reopens) == (False, at(20), 700, 0)


def test_bulk_load_pair():
    """Reopens after the opening are counted within the session."""
    one = Reducing()
    one.see(task_look(1, lock=HELD), database_look(2, born=1.5))
    one.see(database_look(3, born=1.5, reopened=(2.5,)), database_look(4, born=1.5, reopened=(2.5, 3.5)))
    assert one.store.sessions[-1].reopens == 2


def test_pair_before_the_first_reading():
    """A pair that was over when the store was first seen held is counted from the names alone."""
    one = Reducing()
    one.see(task_look(1, lock=HELD), database_look(4, born=1.5, reopened=(2.5, 3.5)))
    assert one.store.sessions[-1].reopens == 2


def test_task_lock_holds_the_session():
    """Up to 2.8 a store that is closed for a moment under the task lock was not released."""
    one = Reducing()
    one.see(task_look(1, lock=HELD), database_look(2, born=1.5))
    one.see(database_look(3, born=1.5, lock=FREE))
    assert one.store.session is not None
    one.see(lock_look(4, FREE))
    assert one.store.sessions[-1].released_us == at(4)


def test_unknown_lock_ends_nothing():
    """A lock that could not be asked is no release."""
    one = Reducing()
    one.see(task_look(1), database_look(2, born=1.5), database_look(5, born=1.5, lock=UNKNOWN))
    assert one.store.session is not None


def test_identity_changes_within_a_holding():
    """The identity that was there at the release is the one that counts."""
    one = Reducing()
    one.see(task_look(1, lock=HELD), database_look(2, born=1.5), database_look(5, "identity-2", born=4))
    one.see(database_look(6, "identity-2", born=4, lock=FREE), lock_look(7, FREE))
    session = one.store.sessions[-1]
    assert (session.identities, session.final_identities) == (
        frozenset({"identity-1"}),
        frozenset({"identity-2"}),
    )


# -- the offset in force --------------------------------------------------------------------------------------


def reopened(*between) -> Reducing:
    """Released at 10 s at offset 500; looks in between; opened at 30 s."""
    one = Reducing()
    one.see(task_look(1), database_look(2, born=1.5), checkpoint_look(9, {"s": 500}))
    one.see(database_look(10, born=1.5, lock=FREE), *between)
    one.see(database_look(30.2, born=1.5, reopened=(30,)))
    return one


def offset_at_open(*between) -> int | None:
    """What the second session trusts."""
    return reopened(*between).store.sessions[-1].offset_at_open


def test_checkpoint_on_disk_is_trusted():
    """The file that is there when the store is opened."""
    assert offset_at_open() == 500


def test_checkpoint_deleted_before_the_open():
    """Up to 2.5 exactly-once deletes it between release and open, having read it."""
    assert offset_at_open(removal(20, f"{TASK}/.checkpoint")) == 500


def test_checkpoint_deleted_while_it_was_held():
    """A file that the former holder deleted itself was not there to be read."""
    one = Reducing()
    one.see(task_look(1), database_look(2, born=1.5), checkpoint_look(3, {"s": 500}))
    one.see(removal(9, f"{TASK}/.checkpoint"), database_look(10, born=1.5, lock=FREE))
    one.see(database_look(30.2, born=1.5, reopened=(30,)))
    assert one.store.sessions[-1].offset_at_open is None


def test_checkpoint_deleted_by_a_walk():
    """What a cleaner took is trusted by nobody."""
    assert offset_at_open(removal(20, f"{TASK}/rocksdb/s/LOCK"), removal(21, f"{TASK}/.checkpoint")) is None


def test_checkpoint_written_after_the_open():
    """A file of the session itself was not trusted at its opening."""
    one = Reducing()
    one.see(task_look(1), database_look(2, born=1.5), checkpoint_look(1.9, {"s": 5}, written=1.8))
    assert one.store.sessions[-1].offset_at_open is None


def test_no_entry():
    """A checkpoint without this store."""
    one = Reducing()
    one.see(task_look(1), checkpoint_look(1.2, {"other": 5}), database_look(2, born=1.5))
    assert one.store.sessions[-1].offset_at_open is None


# -- how it ended -------------------------------------------------------------------------------------------


def test_process_went_on():
    """The application lock stays held for long after the release: an orderly close."""
    one = Reducing()
    one.see(application_look(0.5, HELD), task_look(1), database_look(2, born=1.5))
    one.see(database_look(10, born=1.5, lock=FREE), database_look(60, born=1.5, reopened=(60,)))
    assert one.store.sessions[0].outlived is True


def test_process_ended_with_it():
    """The application lock went with the store: an end of the process."""
    one = Reducing()
    one.see(application_look(0.5, HELD), task_look(1), database_look(2, born=1.5))
    one.see(database_look(10, born=1.5, lock=FREE), application_look(10.2, FREE))
    one.see(application_look(50, HELD), database_look(60, born=1.5, reopened=(60,)))
    assert one.store.sessions[0].outlived is False


@pytest.mark.parametrize(("freed", "outlived"), [(15.1, True), (15, False), (10, False)])
def test_sibling_went_on(freed, outlived):
    """Without an application lock a sibling that stays held for more than five seconds tells the same."""
    one = Reducing()
    other = "app/0_1/rocksdb/s"
    one.see(task_look(1), database_look(2, born=1.5))
    one.see(task_look(1, path="app/0_1", inode=30), database_look(2, "other", born=1.5, path=other))
    one.see(
        database_look(10, born=1.5, lock=FREE), database_look(freed, "other", born=1.5, lock=FREE, path=other)
    )
    one.see(database_look(60, born=1.5, reopened=(60,)))
    assert one.store.sessions[0].outlived is outlived


def test_known_only_from_the_next_session_on():
    """Until the store is opened again nobody asked."""
    one = Reducing()
    one.see(task_look(1), database_look(2, born=1.5), database_look(10, born=1.5, lock=FREE))
    assert one.store.sessions[0].outlived is None


def test_what_sessions_have_in_common_is_held_once():
    """One set of identities for all sessions of an incarnation; what only a close needs goes with the next session."""
    one = Reducing()
    for start in (10, 20, 30):
        reopened = tuple(range(10, start + 1, 10))
        one.see(task_look(start), database_look(start, born=1, puts=500, lock=HELD, reopened=reopened))
        one.see(database_look(start + 5, born=1, puts=500, lock=FREE, reopened=reopened))
    first, second, last = one.store.sessions
    assert first.identities == {"identity-1"}
    sets = {id(x) for session in one.store.sessions for x in (session.identities, session.final_identities)}
    assert len(sets) == 1
    assert (first.status_floors, second.status_floors, last.status_floors) == ({}, {}, {"": 500})


# -- 4.3: offsets in the store --------------------------------------------------------------------------------


def family(
    status: int, status_sequence: int, offset: int | None, sequence: int = 0, *, file: int = 9
) -> StoreOffsets:
    """Entries of the offsets family."""
    entries = () if offset is None else (("app-s-changelog-0", offset, sequence),)
    return StoreOffsets(status, status_sequence, entries, None, file)


def closed_with(offsets: StoreOffsets, *, puts: int = 3005, file: int = 8) -> bool | None:
    """Whether a close that left this wrote its offset."""
    one = Reducing()
    one.see(task_look(1), database_look(2, born=1.5, offsets=family(1, 2, None)))
    one.see(
        database_look(10, born=1.5, lock=FREE, puts=puts, flushes=(flush(file, puts, 10),), offsets=offsets)
    )
    return one.store.sessions[-1].closed_with_offset


def test_order_of_a_clean_close():
    """Data, offset, status: recorded 3005 < 3008 < 3010."""
    assert closed_with(family(0, 3010, 2999, 3008))


def test_order_of_a_dirty_close():
    """The status right after the data, the offset from before it."""
    assert closed_with(family(0, 8014, 1999, 2003), puts=8013) is False


def test_store_without_any_offset():
    """A store without a changelog never has one: nothing can be said of its close."""
    assert closed_with(family(0, 8014, None), puts=8013) is None


def test_compacted_order_is_unknown():
    """With a zeroed status nothing can be told; with a zeroed offset a data file flushed later is newer."""
    assert closed_with(family(0, 0, 1999, 2003), puts=8013)
    assert closed_with(family(0, 8014, 1999, 0, file=9), puts=8013, file=8)
    assert not closed_with(family(0, 8014, 1999, 0, file=7), puts=8013, file=8)


def test_stored_offsets_of_a_session():
    """The offset that was there at the open, and the one that was stored since."""
    one = Reducing()
    one.see(task_look(1), database_look(2, born=1.5, offsets=family(1, 2, None)))
    one.see(database_look(5, born=1.5, lock=FREE, puts=90, offsets=family(0, 95, 500, 93)))
    one.see(database_look(9, born=1.5, puts=90, reopened=(8.9,), offsets=family(0, 95, 500, 93)))
    one.see(database_look(12, born=1.5, lock=FREE, puts=90, offsets=family(0, 97, 500, 93)))
    first, second = one.store.sessions
    assert (first.stored_offset_at_open, first.stored_offset) == (None, 500)
    assert (second.stored_offset_at_open, second.stored_offset) == (500, None)


def test_opened_on_another_volume():
    """A store that was put in place of the former one begins with what it holds itself."""
    one = Reducing()
    one.see(task_look(1), database_look(2, born=1.5, puts=300), lock_look(3, FREE))
    one.see(database_look(50, identity="identity-2", born=1.2, puts=900, opened_puts=900, lock=FREE))
    one.see(
        lock_look(60, HELD), database_look(61, identity="identity-2", born=1.2, puts=900, opened_puts=900)
    )
    session = one.store.sessions[-1]
    assert session.identities == {"identity-2"}
    assert (session.created, session.puts_at_open) == (False, 900)
