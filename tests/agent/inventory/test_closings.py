"""Closes whose offset, files and number of entries are of one moment, and what may be compared with other copies."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from agent.contract.events import Change
from agent.inventory.closings import ended_exactly, is_comparable, is_exact, keeps_unbroken
from agent.inventory.model import Task
from agent.inventory.observations import DatabaseReading, StoreOffsets
from agent.inventory.stores import Session, Store
from tests.support.scenario_case import PLAIN, TIMESTAMPED, database, mark, session, store
from tests.support.scenario_looks import FREE, Reducing, checkpoint_look, database_look, task_look

OWN = "app-s-changelog-0"
WITH_OFFSETS = (*TIMESTAMPED, "offsets")


def family(
    *, status: int = 0, offset: int = 999, sequence: int = 1003, closed_at: int = 1005, topic: str = OWN
) -> StoreOffsets:
    """An `offsets` family: data up to 1000, the offset behind it, the status last."""
    return StoreOffsets(status=status, status_sequence=closed_at, offsets=((topic, offset, sequence),))


def closed(held: StoreOffsets | None, **given: object) -> Store:
    """A store of 4.3 with 1,000 puts."""
    one = database(puts=1000, **given)  # type: ignore[arg-type]
    one.offsets = held
    return store([one])


def look(seconds: float, **given: object) -> DatabaseReading:
    """A reading that counts the entries of a timestamped store."""
    entries = given.pop("entries", 900)
    families = given.pop("families", WITH_OFFSETS)
    reading = database_look(seconds, born=1, **given)  # type: ignore[arg-type]
    read = {
        "entries_low": entries,
        "entries_high": entries,
        "families": families,
        "rocksdb_version": "10.1.3",
    }
    return replace(reading, **read)  # type: ignore[arg-type]


OTHER = replace(family(), offsets=((OWN, 999, 1003), ("app-t-changelog-0", 5, 1004)))
ENDS: dict[str, tuple[StoreOffsets | None, bool]] = {
    "data, offset, status": (family(), True),
    "one after the other": (family(sequence=1001, closed_at=1002), True),
    "put with the last data or before: a dirty close, or a kill": (family(sequence=1000), False),
    "a compaction took the order away": (family(sequence=0), False),
    "and that of the status": (family(closed_at=0), False),
    "the status is older: opened again, or never closed": (family(closed_at=1003), False),
    "it says open": (family(status=1), False),
    "an unknown offset": (family(offset=-4), False),
    "no offset": (replace(family(), offsets=()), False),
    "two offsets": (OTHER, False),
    "no family": (None, False),
}


@pytest.mark.parametrize(("held", "exact"), ENDS.values(), ids=ENDS)
def test_what_the_order_of_the_last_writes_says(held, exact):
    """Only in this order the files hold what the offset says and nothing later; each segment flushes by itself."""
    assert is_exact(closed(held)) is exact
    parts = [database(puts=1000, segment=f"s.{n}") for n in range(2)]
    for part in parts:
        part.offsets = held
    assert not is_exact(store(parts, segmented=True))


def plain(*, version: str | None = "7.1.2", **fields: object) -> Store:
    """A store of the default family only."""
    one = database(families=PLAIN)
    one.rocksdb_version = version
    return store([replace(one, **fields)])  # type: ignore[arg-type]


COMPARABLE: dict[str, tuple[Store, bool]] = {
    "it follows its own changelog": (closed(family()), True),
    "up to 4.2": (closed(None), True),
    "a table on its source topic": (closed(family(topic="orders-0")), False),
    "another store's changelog": (closed(family(topic="app-t-changelog-0")), False),
    "it may be versioned": (closed(family(), families=(*PLAIN, "offsets")), False),
    "segments": (store([database(segment="s.1")], segmented=True), False),
    "versioned stores came with 3.5, which has RocksDB 7": (plain(version="6.29.4.1"), True),
    "plain, of RocksDB 7": (plain(), False),
    "plain, of a RocksDB that is not known": (plain(version=None), False),
    "its options let RocksDB drop live entries by itself": (plain(version="6.29.4.1", forgets=True), False),
}


@pytest.mark.parametrize(("one", "comparable"), COMPARABLE.values(), ids=COMPARABLE)
def test_stores_that_may_be_compared(one, comparable):
    """What else a store's content depends on makes copies at one offset differ with no fault anywhere.

    A global store follows a topic that others cut.
    """
    assert is_comparable(Task("app", "0_0", "app/0_0"), one) is comparable
    assert not is_comparable(Task("app", "global", "app/global"), one)


def ended(
    *, closes: bool | None = True, puts: int = 1000, unsure: bool = False, exact: bool = False
) -> Session:
    """A session whose last checkpoint covers 1,000 puts."""
    made = session(1, 10, puts=puts, last=replace(mark(9.9, 1000, 1000), unsure=unsure), created=True)
    made.closed, made.exact, made.unbroken = closes, exact, True
    return made


@pytest.mark.parametrize(
    ("before", "exactly"),
    [
        (ended(), True),
        (ended(puts=1001), False),
        (ended(unsure=True), False),
        (ended(closes=False), False),
        (ended(closes=None), False),
        (ended(closes=None, exact=True), True),
    ],
)
def test_sessions_that_ended_exactly(before, exactly):
    """The checkpoint of the close covers all that was flushed, or (4.3+) the order of the last writes shows it."""
    assert ended_exactly(before) is exactly


def broken() -> Session:
    """An orderly end after one that was none."""
    made = ended()
    made.unbroken = False
    return made


@pytest.mark.parametrize(
    ("before", "created", "goes_on", "opened_puts", "unbroken"),
    [
        (None, True, False, 0, True),
        (None, False, False, 1000, False),  # made before an agent watched
        (ended(), False, True, 1000, True),
        (ended(), False, True, 1001, False),  # something was flushed in between that no agent saw
        (ended(), False, False, 1000, False),  # another volume
        (ended(closes=False), False, True, 1000, False),
        (broken(), False, True, 1000, False),
        (broken(), True, False, 0, True),
    ],
)
def test_a_past_without_a_kill(before, created, goes_on, opened_puts, unbroken):
    """A new store has no past; an old one goes on with what each end left."""
    assert keeps_unbroken(before, created=created, goes_on=goes_on, opened_puts=opened_puts) is unbroken


def said(one: Reducing) -> list[tuple[object, ...]]:
    """List closes: offset, puts, entries, comparable."""
    names = ("offset_after", "puts", "entries_low", "entries_high", "comparable")
    changes = [x for x in one.changes if x.change is Change.STORE_CLOSED]
    return [tuple(x.facts[name] for name in names) for x in changes]


KILLED, LATER = family(status=1, sequence=500, closed_at=499), family(sequence=2003, closed_at=2005)
REOPENED = {"opened_puts": 1000, "manifest": 6, "reopened": (19.5,)}
PLAIN_LOOK = {"families": TIMESTAMPED}
# fmt: off
CLOSES: dict[str, Any] = {
    "a close of 4.3 is reported at the reading that finds the store let go":
        ([look(1), look(9, puts=1000, lock=FREE, offsets=family())], [(999, 1000, 900, 900, True)]),
    "and not again":
        ([look(1), look(9, puts=1000, lock=FREE, offsets=family()), look(12, puts=1000, lock=FREE,
         offsets=family())], []),
    "a store that was killed reports none": ([look(1), look(9, puts=1000, lock=FREE, offsets=KILLED)], []),
    "what was flushed beyond its offset may still be there after the next one, which is not comparable":
        ([look(1), look(9, puts=1000, lock=FREE, offsets=KILLED), look(20, puts=1000, offsets=KILLED, **REOPENED),
          look(29, puts=2000, lock=FREE, offsets=LATER, **REOPENED)], [(999, 2000, 900, 900, None)]),
    "up to 4.2 it is that of its checkpoint; of two stores each has its own offset and puts":
        ([look(1, **PLAIN_LOOK), look(1, path="app/0_0/rocksdb/t", **PLAIN_LOOK), look(8, puts=1000, **PLAIN_LOOK),
          checkpoint_look(9, {"s": 1000, "t": 7}), look(9.01, puts=1000, lock=FREE, **PLAIN_LOOK)],
         [(1000, 1000, 900, 900, True)]),
    "what is flushed after the checkpoint is no close: the files hold more than the offset says":
        ([look(1, **PLAIN_LOOK), checkpoint_look(9, {"s": 1000}), look(9.5, puts=1000, lock=FREE, **PLAIN_LOOK)], []),
    "deletions of key ranges, as versioned stores make them, leave no bounds":
        ([look(1), look(9, puts=1000, lock=FREE, offsets=family(), entries=None)], []),
}
# fmt: on


@pytest.mark.parametrize(("looks", "closes"), CLOSES.values(), ids=CLOSES)
def test_closes(looks, closes):
    """What the last look says of a close: offset, puts, entries, comparable."""
    one = Reducing()
    one.see(task_look(0.5), *looks[:-1])
    one.see(looks[-1])
    assert said(one) == closes
