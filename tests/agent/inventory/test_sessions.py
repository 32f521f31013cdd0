"""Sessions: who holds a store from when to when, what it found and what it left."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from agent.inventory.observations import DatabaseReading, StoreOffsets
from agent.inventory.sessions import stored_offset, took_offset, wrote_offset
from agent.inventory.stores import Session, Store
from tests.support.scenario_case import at, database, store
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

CHECKPOINT = f"{TASK}/.checkpoint"


def db(seconds: float, *identity, born: float = 1.5, **more) -> DatabaseReading:
    """A look at the store, born at 1.5 s."""
    return database_look(seconds, *identity, born=born, **more)


def seen(*looks) -> Reducing:
    """What is known after these looks."""
    one = Reducing()
    one.see(*looks)
    return one


def last(one: Reducing) -> Session:
    """The newest session."""
    return one.store.sessions[-1]


def segment_look(seconds: float, name: str, **more) -> DatabaseReading:
    """A look at a segment that begins with 100 puts on disk, and ends with 500."""
    fields = {"born": 1, "puts": 500, "opened_puts": 100, "path": f"{TASK}/w/{name}", **more}
    return database_look(seconds, f"id-{name}", **fields)


def found(seconds: float = 50, **more) -> Reducing:
    """A store that was there before the agent looked."""
    return seen(task_look(100), db(100.1, born=1, puts=500, opened_puts=400, **more))


def opened_at(offset: int | None, *looks):
    """Released at 10 s at offset 500; looks in between; opened at 30 s: what the second session trusts."""
    between = (task_look(1), db(2), checkpoint_look(9, {"s": 500}), db(10, lock=FREE), *looks)
    return lambda: seen(*between, db(30.2, reopened=(30,))), lambda x: last(x).offset_at_open, offset


SIBLING = "app/0_1/rocksdb/s"
# fmt: off
BEGIN: dict[str, Any] = {
    "a store that was born under the agent's eyes began with its session, at its birth":
        (lambda: seen(task_look(1), db(2)),
         lambda x: (last(x).created, last(x).opened_us, last(x).puts_at_open, last(x).identities),
         (True, at(1.5), 0, {"identity-1"})),
    "of one that was there before nobody can say that this session made it":
        (lambda: found(reopened=(20, 50)),
         lambda x: (last(x).created, last(x).opened_us, last(x).puts_at_open), (False, at(50), 400)),
    "without a trace of a reopening it is as its session made it":
        (lambda: found(), lambda x: (last(x).created, last(x).attached), (True, False)),
    "if reopenings leave traces":
        (lambda: found(all_reopens=False), lambda x: (last(x).created, last(x).attached), (False, True)),
    **{f"a manifest from before the opening ends with what that found: {written}":
        (lambda written=written: seen(task_look(40), replace(db(50.2, born=1, puts=500, opened_puts=400,
         reopened=(20, 50)),
                                      rocksdb_version="9.7.3", options_written_us=at(written))),
         lambda x: last(x).puts_at_open, puts) for written, puts in {49.9: 500, 50.1: 400}.items()},
    "what a segment holds that is not read again yet is what it was left with":
        (lambda: seen(task_look(9), *(segment_look(10, x, lock=FREE) for x in ("w.0", "w.60")),
                      *(segment_look(20.1, x, opened_puts=500, manifest=9, reopened=(20,)) for x in ("w.0", "w.60"))),
         lambda x: [(y.attached, y.puts_at_open) for y in x.task.stores["w"].sessions], [(False, 1000)]),
    **{f"a segment that is found later, born at {born} s":
        (lambda born=born: seen(task_look(19), segment_look(20, "w.0", opened_puts=500, reopened=(10,)),
                                segment_look(22, "w.60", born=born, opened_puts=500, reopened=(10,))),
         lambda x: x.task.stores["w"].sessions[-1].puts_at_open, puts) for born, puts in {1: 1000, 21: 500}.items()},
    "the second session begins at its LOG.old, with what the first one left":
        (lambda: seen(task_look(1), db(2), db(5, puts=700, flushes=(flush(6, 700, 4),), lock=FREE),
                      db(20.3, puts=700, reopened=(20,))),
         lambda x: [(y.created, y.opened_us, y.puts_at_open, y.reopens, y.released_us, y.puts_at_release,
                     set(y.final_identities)) for y in x.store.sessions],
         [(True, at(1.5), 0, 0, at(5), 700, {"identity-1"}), (False, at(20), 700, 0, None, 0, set())]),
    "reopens after the opening are counted within the session":
        (lambda: seen(task_look(1, lock=HELD), db(2), db(3, reopened=(2.5,)), db(4, reopened=(2.5, 3.5))),
         lambda x: last(x).reopens, 2),
    "a pair that was over when the store was first seen held is counted from the names alone":
        (lambda: seen(task_look(1, lock=HELD), db(4, reopened=(2.5, 3.5))), lambda x: last(x).reopens, 2),
    "a store that was put in place of the former one begins with what it holds itself":
        (lambda: seen(task_look(1), db(2, puts=300), lock_look(3, FREE),
                      db(50, "identity-2", born=1.2, puts=900, opened_puts=900, lock=FREE), lock_look(60, HELD),
                      db(61, "identity-2", born=1.2, puts=900, opened_puts=900)),
         lambda x: (last(x).identities, last(x).created, last(x).puts_at_open), ({"identity-2"}, False, 900)),
    "the checkpoint that is there is trusted": opened_at(500),
    "up to 2.5 exactly-once deletes it between release and open, having read it": opened_at(500, removal(20,
         CHECKPOINT)),
    "what a cleaner took is trusted by nobody":
        opened_at(None, removal(20, f"{TASK}/rocksdb/s/LOCK"), removal(21, CHECKPOINT)),
    "a file that the former holder deleted itself was not there to be read":
        (lambda: seen(task_look(1), db(2), checkpoint_look(3, {"s": 500}), removal(9, CHECKPOINT), db(10, lock=FREE),
                      db(30.2, reopened=(30,))), lambda x: last(x).offset_at_open, None),
    "a file of the session itself was not trusted at its opening":
        (lambda: seen(task_look(1), db(2), checkpoint_look(1.9, {"s": 5}, written=1.8)),
         lambda x: last(x).offset_at_open, None),
    "a checkpoint without this store":
        (lambda: seen(task_look(1), checkpoint_look(1.2, {"other": 5}), db(2)), lambda x: last(x).offset_at_open, None),
}

END: dict[str, Any] = {
    "up to 2.8 a store that is closed for a moment under the task lock was not released":
        (lambda: seen(task_look(1, lock=HELD), db(2), db(3, lock=FREE)), lambda x: last(x).released_us, None),
    "until that is let go": (lambda: seen(task_look(1, lock=HELD), db(2), db(3, lock=FREE), lock_look(4, FREE)),
        lambda x: last(x).released_us, at(4)),
    "a lock that could not be asked is no release":
        (lambda: seen(task_look(1), db(2), db(5, lock=UNKNOWN)), lambda x: last(x).released_us, None),
    "the identity that was there at the release is the one that counts":
        (lambda: seen(task_look(1, lock=HELD), db(2), db(5, "identity-2", born=4), db(6, "identity-2", born=4,
         lock=FREE),
                      lock_look(7, FREE)),
         lambda x: (last(x).identities, last(x).final_identities), ({"identity-1"}, {"identity-2"})),
    "the application lock stays held for long after the release: an orderly close":
        (lambda: seen(application_look(0.5, HELD), task_look(1), db(2), db(10, lock=FREE), db(60, reopened=(60,))),
         lambda x: x.store.sessions[0].outlived, True),
    "it went with the store: an end of the process":
        (lambda: seen(application_look(0.5, HELD), task_look(1), db(2), db(10, lock=FREE), application_look(10.2, FREE),
                      application_look(50, HELD), db(60, reopened=(60,))),
         lambda x: x.store.sessions[0].outlived, False),
    **{f"a sibling that is let go at {freed} s shows the same":
        (lambda freed=freed: seen(task_look(1), db(2), task_look(1, path="app/0_1", inode=30), db(2, "b", path=SIBLING),
                                  db(10, lock=FREE), db(freed, "b", lock=FREE, path=SIBLING), db(60, reopened=(60,))),
         lambda x: x.store.sessions[0].outlived, is_so) for freed, is_so in {15.1: True, 15: False, 10: False}.items()},
    "until the store is opened again nobody asked":
        (lambda: seen(task_look(1), db(2), db(10, lock=FREE)), lambda x: last(x).outlived, None),
    **{f"within a second of its release the second open of a new store is the same session: {again}":
        (lambda again=again: seen(task_look(0.5), db(1, born=1), db(5, born=1, lock=FREE), db(again, born=1,
         manifest=6)),
         lambda x: (len(x.store.sessions), last(x).released_us), (count, None))
       for again, count in {6: 1, 6.001: 2}.items()},
    "a session that wrote a checkpoint was no first half":
        (lambda: seen(task_look(0.5), db(1, born=1), checkpoint_look(4, {"s": 5}), db(5, born=1, lock=FREE),
                      db(5.5, born=1, manifest=6)), lambda x: len(x.store.sessions), 2),
    "nor one that left data":
        (lambda: seen(task_look(0.5), db(1, born=1), db(5, born=1, puts=100, lock=FREE),
                      db(5.6, born=1, puts=100, manifest=6)),
                       lambda x: [y.puts_at_release for y in x.store.sessions], [100, 0]),
    "the second session of an older store, however soon, is a session":
        (lambda: seen(task_look(0.5), db(1, born=1), db(5, born=1, lock=FREE), db(9, born=1, manifest=6),
                      db(10, born=1, manifest=6, lock=FREE), db(10.5, born=1, manifest=7)),
         lambda x: len(x.store.sessions), 3),
}
# fmt: on
ALL = BEGIN | END


@pytest.mark.parametrize(("one", "ask", "expected"), ALL.values(), ids=ALL)
def test_what_looks_leave(one, ask, expected):
    """Each row says what it is about."""
    assert ask(one()) == expected


# -- 4.3: offsets in the store --------------------------------------------------------------------------------


def family(
    status: int | None = 0,
    closed_at: int = 3010,
    offset: int | None = 2999,
    sequence: int = 3000,
    *,
    file: int = 9,
) -> StoreOffsets:
    """Entries of the offsets family."""
    entries = () if offset is None else (("app-s-changelog-0", offset, sequence),)
    return StoreOffsets(status, closed_at, entries, None, file)


@pytest.mark.parametrize(
    ("offsets", "puts", "wrote"),
    [
        (family(0, 3010, 2999, 3008), 3005, True),  # data, offset, status: recorded 3005 < 3008 < 3010
        (family(0, 8014, 1999, 2003), 8013, False),  # the status right after the data, the offset before it
        (family(0, 8014, None), 8013, None),  # no changelog, or the next start wipes it
        (family(0, 0, 1999, 2003), 8013, True),  # a zeroed status: the order is not known
        (family(0, 8014, 1999, 0, file=9), 8013, True),  # a zeroed offset, in a later file than the data
        (family(0, 8014, 1999, 0, file=7), 8013, False),
    ],
)
def test_whether_a_close_wrote_its_offset(offsets, puts, wrote):
    """By the order of the last writes."""
    closed = db(10, lock=FREE, puts=puts, flushes=(flush(8, puts, 10),), offsets=offsets)
    one = seen(task_look(1), db(2, offsets=family(1, 2, None)), closed)
    assert last(one).closed_with_offset is wrote


def test_stored_offsets_of_a_session():
    """The offset that was there at the open, and the one that was stored since."""
    stored = family(0, 95, 500, 93)
    one = seen(task_look(1), db(2, offsets=family(1, 2, None)), db(5, lock=FREE, puts=90, offsets=stored))
    one.see(db(9, puts=90, reopened=(8.9,), offsets=stored))
    one.see(db(12, lock=FREE, puts=90, offsets=family(0, 97, 500, 93)))
    offsets = [(x.stored_offset_at_open, x.stored_offset) for x in one.store.sessions]
    assert offsets == [(None, 500), (500, None)]


def closing(*offsets: StoreOffsets | None, puts: int = 3006, newest_flush: int = 9) -> Store:
    """A store of 4.3 with these families."""
    files = [database(segment=f"w.{n}", puts=puts) for n in range(len(offsets))]
    for one, held in zip(files, offsets, strict=True):
        one.offsets, one.newest_flush = held, newest_flush
    return store(files, segmented=True, name="w")


@pytest.mark.parametrize(
    ("held", "with_it"),
    [
        ([family(sequence=3005)], False),
        ([family(sequence=3006)], True),
        ([family(sequence=3007)], True),
        ([family(offset=None)], None),  # no changelog, or exactly-once wipes it
        ([family(sequence=0, file=9)], True),
        ([family(sequence=0, file=8)], False),
        ([family(None, sequence=3005)], True),
        ([family(closed_at=0, sequence=5)], True),  # the status lost its number: no order is known
        ([None], True),
        ([family(), family(sequence=3005)], False),  # one segment without its offset is enough
        ([None, family(sequence=3005)], False),
        ([family(), family(offset=None)], False),
    ],
)
def test_close_with_its_offset(held, with_it):
    """The offset entry must be newer than the newest data, as far as the order is known."""
    assert wrote_offset(closing(*held)) is with_it


@pytest.mark.parametrize("given_out", [3010, 3012])  # two more by a process that was killed
@pytest.mark.parametrize(("sequence", "with_it"), [(3008, True), (2000, False)])
def test_close_with_its_offset_before_the_data_was_zeroed(given_out, sequence, with_it):
    """Offset, position, status: of the data only what the next openings had given out is known (seen on 4.4.0)."""
    held = StoreOffsets(0, 3010, (("app-s-changelog-0", 2999, sequence),), sequence + 1, 9)
    zeroed = closing(held, puts=given_out)
    assert wrote_offset(zeroed) is with_it


OPENED = {"manifest": 8, "opened_puts": 2500, "opened_sequence": 2990}


@pytest.mark.parametrize(
    ("held", "known", "took"),
    [
        (family(sequence=2991), {}, True),
        (family(sequence=2990), {}, False),
        (family(sequence=0), {}, True),  # a compaction took the order, and the file is of this opening
        (family(sequence=0, file=7), {}, False),
        (family(sequence=2990), {"opened_sequence": None}, True),
        (family(sequence=2990), {"opened_puts": 3006}, True),  # nothing was flushed since
        (family(offset=None), {}, True),
    ],
)
def test_offset_of_its_opening(held, known, took):
    """An offset is of the last opening by its number, or by that of its file."""
    one = closing(held)
    for key, value in {**OPENED, **known}.items():
        setattr(one.databases["w.0"], key, value)
    assert took_offset(one) is took


@pytest.mark.parametrize(
    ("held", "offset"), [((-4, None), None), ((0, None), 0), ((5, 9), 9), ((9, 5), 9), ((None, None), None)]
)
def test_stored_offset(held, offset):
    """The highest that any segment holds; zero is one, unknown is none."""
    assert stored_offset(closing(*(None if x is None else family(offset=x) for x in held))) == offset


CLEAN = family(0, 111, 99, 108)


@pytest.mark.parametrize(
    ("puts", "left", "closed", "stored"),
    [
        (100, family(0, 112, 99, 110), True, None),  # not above what was known at the opening
        (
            120,
            family(0, 0, 119, 0),
            True,
            None,
        ),  # what was flushed took the status "open" along (seen live, 4.3.0)
        (100, family(0, 0, 119, 0), None, None),  # it may be the one from before
        (120, family(1, 0, 119, 0), False, None),
        (120, family(0, 111, 119, 0), False, None),
        (120, family(0, 125, 119, 0), True, None),
        (120, family(0, 125, 119, 123), True, 119),
    ],
)
def test_what_a_session_left(puts, left, closed, stored):
    """Only what was written above what was known at the opening is its own; a compaction zeroes the order."""
    one = seen(task_look(0.5), db(1, born=1), db(5, born=1, puts=100, lock=FREE, offsets=CLEAN))
    one.see(db(20, born=1, puts=100, manifest=6, reopened=(20,), offsets=CLEAN))
    assert last(one).stored_offset_at_open == 99
    one.see(db(30, born=1, puts=puts, manifest=6, reopened=(20,), lock=FREE, offsets=left))
    assert (last(one).released_us, last(one).closed, last(one).stored_offset) == (at(30), closed, stored)
