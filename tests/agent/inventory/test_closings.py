"""Closes whose offset, files and number of entries are of one moment, and what may be compared with other copies."""

from __future__ import annotations

from dataclasses import replace

import pytest

from agent.contract.events import Change
from agent.inventory.closings import ended_exactly, is_comparable, is_exact, keeps_unbroken
from agent.inventory.model import Task
from agent.inventory.observations import DatabaseReading, StoreOffsets
from agent.inventory.stores import Session, Store
from agent.layout.checkpoint import OffsetEntry
from tests.support.scenario_case import PLAIN, TIMESTAMPED, database, mark, session, store
from tests.support.scenario_looks import FREE, HELD, Reducing, checkpoint_look, database_look, task_look

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


@pytest.mark.parametrize(
    ("held", "exact"),
    [
        (family(), True),
        (family(sequence=1001, closed_at=1002), True),
        (family(sequence=1000), False),  # put with the last data or before: a dirty close, or a kill
        (family(sequence=0), False),  # a compaction took the order away
        (family(closed_at=0), False),
        (family(closed_at=1003), False),  # the status is older: opened again, or never closed
        (family(status=1), False),
        (family(offset=-4), False),
        (replace(family(), offsets=()), False),
        (replace(family(), offsets=((OWN, 999, 1003), ("app-t-changelog-0", 5, 1004))), False),
        (None, False),
    ],
)
def test_what_the_order_of_the_last_writes_says(held, exact):
    """Data, offset, status: only then the files hold what the offset says and nothing later."""
    assert is_exact(closed(held)) is exact


def test_segments_are_not_exact_together():
    """Each segment flushes by itself."""
    parts = [database(puts=1000, segment=f"s.{n}") for n in range(2)]
    for part in parts:
        part.offsets = family()
    assert not is_exact(store(parts, segmented=True))


@pytest.mark.parametrize(
    ("one", "comparable"),
    [
        (closed(family()), True),
        (closed(None), True),
        (closed(family(topic="orders-0")), False),  # a table on its source topic
        (closed(family(topic="app-t-changelog-0")), False),
        (closed(family(), families=(*PLAIN, "offsets")), False),  # may be versioned
        (store([database(segment="s.1")], segmented=True), False),
    ],
)
def test_stores_that_follow_their_own_changelog(one, comparable):
    """What else a store's content depends on makes copies at one offset differ with no fault anywhere."""
    assert is_comparable(Task("app", "0_0", "app/0_0"), one) is comparable


@pytest.mark.parametrize(("version", "comparable"), [("6.29.4.1", True), ("7.1.2", False), (None, False)])
def test_a_plain_store_of_an_old_rocksdb_is_not_versioned(version, comparable):
    """Versioned stores came with 3.5, which has RocksDB 7."""
    plain = database(families=PLAIN)
    plain.rocksdb_version = version
    assert is_comparable(Task("app", "0_0", "app/0_0"), store([plain])) is comparable


def test_a_store_that_forgets_is_not_compared():
    """Its options let RocksDB drop live entries by itself."""
    one = database()
    one.forgets = True
    assert not is_comparable(Task("app", "0_0", "app/0_0"), store([one]))


def test_global_stores_are_not_compared():
    """Their topic is cut by others."""
    assert not is_comparable(Task("app", "global", "app/global"), closed(None))


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


def test_a_close_of_4_3_is_reported_once():
    """At the reading that finds the store let go; later readings of it say nothing new."""
    one = Reducing()
    one.see(task_look(0.5), look(1), look(9, puts=1000, lock=FREE, offsets=family()))
    assert said(one) == [(999, 1000, 900, 900, True)]
    one.see(look(12, puts=1000, lock=FREE, offsets=family()))
    assert said(one) == []


def test_a_killed_store_reports_no_close_and_its_next_one_is_not_comparable():
    """Flushed beyond the offset, killed, replayed and closed in order: what was beyond may still be there."""
    one = Reducing()
    killed, later = family(status=1, sequence=500, closed_at=499), family(sequence=2003, closed_at=2005)
    one.see(task_look(0.5), look(1), look(9, puts=1000, lock=FREE, offsets=killed))
    assert said(one) == []
    one.see(look(20, puts=1000, opened_puts=1000, offsets=killed, manifest=6, reopened=(19.5,)))
    one.see(look(29, puts=2000, opened_puts=1000, lock=FREE, offsets=later, manifest=6, reopened=(19.5,)))
    assert said(one) == [(999, 2000, 900, 900, None)]


def test_a_close_up_to_4_2_is_that_of_its_checkpoint():
    """In a task of two stores each has its own offset and puts."""
    one = Reducing()
    one.see(
        task_look(0.5), look(1, families=TIMESTAMPED), look(1, families=TIMESTAMPED, path="app/0_0/rocksdb/t")
    )
    one.see(look(8, puts=1000, families=TIMESTAMPED), checkpoint_look(9, {"s": 1000, "t": 7}))
    one.see(look(9.01, puts=1000, families=TIMESTAMPED, lock=FREE))
    assert said(one) == [(1000, 1000, 900, 900, True)]


def test_what_is_flushed_after_the_checkpoint_is_no_close():
    """The files hold more than the offset says."""
    one = Reducing()
    one.see(task_look(0.5), look(1, families=TIMESTAMPED), checkpoint_look(9, {"s": 1000}))
    one.see(look(9.5, puts=1000, families=TIMESTAMPED, lock=FREE))
    assert said(one) == []


def test_unknown_counts_are_no_close():
    """Deletions of key ranges, as versioned stores make them, leave no bounds."""
    one = Reducing()
    one.see(task_look(0.5), look(1), look(9, puts=1000, lock=FREE, offsets=family(), entries=None))
    assert said(one) == []


@pytest.mark.parametrize(("foreign", "comparable"), [((), True), ((OffsetEntry("orders", 0, 5),), True)])
def test_a_checkpoint_says_whether_it_can_be_compared(foreign, comparable):
    """Of the only store of a task that was never killed; an entry of a source topic is none of this store."""
    one = Reducing()
    one.see(task_look(0.5), look(1, families=TIMESTAMPED))
    one.see(
        look(5, puts=100, families=TIMESTAMPED, lock=HELD), checkpoint_look(9, {"s": 100}, foreign=foreign)
    )
    written = [x for x in one.changes if x.change is Change.CHECKPOINT_WRITTEN]
    assert [x.facts["comparable"] for x in written] == [comparable]


def test_a_checkpoint_of_two_stores_says_nothing():
    """Its puts are those of both."""
    one = Reducing()
    one.see(
        task_look(0.5), look(1, families=TIMESTAMPED), look(1, families=TIMESTAMPED, path="app/0_0/rocksdb/t")
    )
    one.see(checkpoint_look(9, {"s": 100, "t": 100}))
    written = [x for x in one.changes if x.change is Change.CHECKPOINT_WRITTEN]
    assert [x.facts["comparable"] for x in written] == [None]
