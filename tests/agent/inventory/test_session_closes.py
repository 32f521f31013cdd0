"""Sessions: opened twice within a second, closes that wrote no offset, stored offsets."""

from __future__ import annotations

import pytest

from agent.inventory.observations import StoreOffsets
from agent.inventory.sessions import stored_offset, wrote_offset
from agent.inventory.stores import Store
from tests.support.scenario_case import at, database, store
from tests.support.scenario_looks import FREE, Reducing, checkpoint_look, database_look, task_look


@pytest.mark.parametrize(("again", "sessions"), [(6, 1), (6.001, 2)])
def test_new_store_is_opened_twice(again, sessions):
    """Within a second of its release the second open of a new store is the same session; later it is another."""
    one = Reducing()
    one.see(task_look(0.5), database_look(1, born=1), database_look(5, born=1, lock=FREE))
    one.see(database_look(again, born=1, manifest=6))
    assert len(one.store.sessions) == sessions
    assert one.store.sessions[-1].released_us is None


def test_worked_with_before_it_was_opened_again():
    """A session that wrote a checkpoint was no first half."""
    one = Reducing()
    one.see(task_look(0.5), database_look(1, born=1), checkpoint_look(4, {"s": 5}))
    one.see(database_look(5, born=1, lock=FREE), database_look(5.5, born=1, manifest=6))
    assert len(one.store.sessions) == 2


def test_given_to_another_thread():
    """A new store that holds data when it is let go was worked with, even if it is opened again at once."""
    one = Reducing()
    one.see(task_look(0.5), database_look(1, born=1), database_look(5, born=1, puts=100, lock=FREE))
    one.see(database_look(5.6, born=1, puts=100, manifest=6))
    assert [x.puts_at_release for x in one.store.sessions] == [100, 0]


def test_only_a_new_store_is_opened_twice():
    """The second session of an older store, however soon, is a session."""
    one = Reducing()
    one.see(task_look(0.5), database_look(1, born=1), database_look(5, born=1, lock=FREE))
    one.see(database_look(9, born=1, manifest=6), database_look(10, born=1, manifest=6, lock=FREE))
    one.see(database_look(10.5, born=1, manifest=7))
    assert len(one.store.sessions) == 3


def closing(*offsets: StoreOffsets | None, puts: int = 3006, newest_flush: int = 9) -> Store:
    """A store of 4.3 with these families."""
    files = [database(segment=f"w.{n}", puts=puts) for n in range(len(offsets))]
    for one, held in zip(files, offsets, strict=True):
        one.offsets, one.newest_flush = held, newest_flush
    return store(files, segmented=True, name="w")


def family(
    status: int | None = 0, *, offset: int = 2999, sequence: int = 3000, file: int = 9
) -> StoreOffsets:
    """Status 3010, an offset entry of this sequence in this file."""
    entries = () if sequence < 0 else (("t-0", offset, sequence),)
    return StoreOffsets(status=status, status_sequence=3010, offsets=entries, offset_file=file)


@pytest.mark.parametrize(
    ("held", "with_it"),
    [
        ([family(sequence=3005)], False),
        ([family(sequence=3006)], True),
        ([family(sequence=3007)], True),
        ([family(sequence=-1)], None),  # no changelog, or exactly-once wipes it
        ([family(sequence=0, file=9)], True),
        ([family(sequence=0, file=8)], False),
        ([family(None, sequence=3005)], True),
        (
            [StoreOffsets(0, 0, (("t-0", 2999, 5),), None, 9)],
            True,
        ),  # the status lost its number: no order is known
        ([None], True),
        ([family(), family(sequence=3005)], False),  # one segment without its offset is enough
        ([None, family(sequence=3005)], False),
        ([family(), family(sequence=-1)], False),
    ],
)
def test_close_with_its_offset(held, with_it):
    """The offset entry must be newer than the newest data, as far as the order is known."""
    assert wrote_offset(closing(*held)) is with_it


@pytest.mark.parametrize(
    ("held", "offset"), [((-4, None), None), ((0, None), 0), ((5, 9), 9), ((9, 5), 9), ((None, None), None)]
)
def test_stored_offset(held, offset):
    """The highest that any segment holds; zero is one, unknown is none."""
    families = [None if x is None else family(offset=x) for x in held]
    assert stored_offset(closing(*families)) == offset


def test_offset_that_was_there_before():
    """Only an offset written above what was known at the opening was stored in the session."""
    one = Reducing()
    clean = StoreOffsets(status=0, status_sequence=110, offsets=(("app-s-changelog-0", 99, 108),))
    one.see(task_look(0.5), database_look(1, born=1))
    one.see(database_look(5, born=1, puts=100, lock=FREE, offsets=clean))
    one.see(database_look(20, born=1, puts=100, manifest=6, reopened=(20,), offsets=clean))
    session = one.store.sessions[-1]
    assert (session.stored_offset_at_open, session.stored_offset) == (99, None)
    same = StoreOffsets(status=0, status_sequence=112, offsets=(("app-s-changelog-0", 99, 110),))
    one.see(database_look(30, born=1, puts=100, manifest=6, reopened=(20,), lock=FREE, offsets=same))
    assert one.store.sessions[-1].stored_offset is None
    assert one.store.sessions[-1].released_us == at(30)


@pytest.mark.parametrize(
    ("puts", "status", "closed"),
    [
        (120, (0, 0), True),
        (100, (0, 0), None),
        (120, (1, 0), False),
        (120, (0, 111), False),
        (120, (0, 125), True),
    ],
)
def test_close_whose_status_was_compacted(puts, status, closed):
    """A compaction right after the close zeroes the order; what was flushed took "open" along (seen live, 4.3.0)."""
    one = Reducing()
    clean = StoreOffsets(status=0, status_sequence=111, offsets=(("app-s-changelog-0", 99, 108),))
    one.see(task_look(0.5), database_look(1, born=1))
    one.see(database_look(5, born=1, puts=100, lock=FREE, offsets=clean))
    one.see(database_look(20, born=1, puts=100, manifest=6, reopened=(20,), offsets=clean))
    ended = StoreOffsets(
        status=status[0], status_sequence=status[1], offsets=(("app-s-changelog-0", 119, 0),)
    )
    one.see(database_look(30, born=1, puts=puts, manifest=6, reopened=(20,), lock=FREE, offsets=ended))
    assert one.store.sessions[-1].closed is closed
