"""What a store claims, at two times: when the later claim holds too little, and when nothing can be said."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.inventory.model import CheckpointClaim, Database, Session, Shape
from agent.inventory.observations import StoreOffsets
from agent.inventory.settings import ApplicationSettings, Setting
from agent.layout.profile import Truth
from agent.quantities.bounds import Bounds
from agent.quantities.claims import (
    Knowledge,
    OffsetClaim,
    claim_now,
    claim_of_opening,
    claims_before,
    got_too_little,
    is_countable,
    lacks_entries,
)
from tests.support.scenario_case import (
    PLAIN,
    at,
    checkpoint,
    database,
    mark,
    past,
    profile,
    session,
    store,
    task,
)

OLD = "identity-0"


def known(release: str | None = "4.1.2", guarantee: str | None = "exactly_once_v2") -> Knowledge:
    """What is known of the application."""
    told = {} if guarantee is None else {"processing_guarantee": Setting(guarantee, "flag")}
    return Knowledge(ApplicationSettings(told), profile(release))


def held(offset: int, low: int) -> OffsetClaim:
    """An earlier claim."""
    return OffsetClaim(at(0), offset, Bounds(low, None))


def holds(offset: int, high: int | None) -> OffsetClaim:
    """A later claim."""
    return OffsetClaim(at(50), offset, Bounds(0, high))


# -- the comparison -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("earlier", "later", "answer"),
    [
        # 50 offsets, and one for what they mean
        (held(2000, 1500), holds(2050, 1448), Truth.YES),
        (held(2000, 1500), holds(2050, 1449), Truth.MAYBE),
        (held(2000, 1500), holds(2000, 1498), Truth.YES),
        (held(2000, 1500), holds(2000, 1499), Truth.MAYBE),
        (held(2000, 1500), holds(1999, 0), Truth.NO),  # it went back: a snapshot, a replay from further back
        (held(2000, 1500), holds(2050, None), Truth.MAYBE),
        (held(2000, 0), holds(2050, 0), Truth.MAYBE),
    ],
)
def test_a_record_ends_one_entry_at_most(earlier, later, answer):
    """YES only if every offset between, had it been a deletion, does not explain what is missing."""
    assert lacks_entries(earlier, later) is answer


@pytest.mark.parametrize(
    ("offset", "puts", "answer"), [(2000, 1499, Truth.YES), (2000, 1500, Truth.MAYBE), (1999, 0, Truth.NO)]
)
def test_every_key_is_put_once_at_least(offset, puts, answer):
    """A store that was recreated has got each key that was live, or its deletion."""
    assert got_too_little(held(2000, 1500), holds(offset, 9000), puts) is answer


Operations = st.lists(st.tuples(st.integers(0, 30), st.booleans()), max_size=120)


def live(operations: list[tuple[int, bool]]) -> set[int]:
    """Keys that are live after these records; False deletes."""
    keys: set[int] = set()
    for key, is_put in operations:
        (keys.add if is_put else keys.discard)(key)
    return keys


@given(Operations, st.data())
def test_no_honest_store_lacks_entries(operations, data):
    """Whatever is put, deleted, compacted, wiped and restored: a store that holds its changelog is never accused."""
    first = data.draw(st.integers(0, len(operations)))
    second = data.draw(st.integers(first, len(operations)))
    low = data.draw(st.integers(0, len(live(operations[:first]))))
    high = len(live(operations[:second])) + data.draw(st.integers(0, 5))
    earlier, later = held(first, low), holds(second, high)
    assert lacks_entries(earlier, later) is not Truth.YES
    compacted = dict(operations[:second])  # the newest record of each key, deletions included
    assert got_too_little(earlier, later, len(compacted)) is not Truth.YES


@given(Operations, st.integers(1, 40))
def test_more_than_the_offsets_explain_is_always_seen(operations, lost):
    """A store that lost more entries than there are offsets between, and one, is found, whatever it held."""
    end, rest = len(operations), len(live(operations))
    assert lacks_entries(held(end, rest + lost + 1), holds(end, rest)) is Truth.YES


# -- which stores can be counted ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("release", "one", "answer"),
    [
        ("4.1.2", store([database()]), True),
        (None, store([database()]), True),
        ("3.4.1", store([database(families=PLAIN)]), True),
        # a versioned store looks the same, and drops ranges
        ("3.5.0", store([database(families=PLAIN)]), False),
        (None, store([database(families=PLAIN)]), False),
        ("4.1.2", store([database(families=())]), False),
        # segments expire, RocksDB may be told to drop entries, and a source topic may be cut by time
        ("4.1.2", store([database(segment="0")], segmented=True), False),
        ("4.1.2", store([database(forgets=True)]), False),
        ("4.1.2", store([database()], [session(0, 10, by_source_topic=True)]), False),
    ],
)
def test_kinds_that_can_be_counted(release, one, answer):
    """One entry per key, one record per change, and nothing that goes by itself."""
    assert is_countable(one, known(release).profile) is answer


# -- what was claimed before ----------------------------------------------------------------------------------


def ended(
    *marks: CheckpointClaim,
    puts: int = 2000,
    entries: int | None = 1500,
    counted: int | None = None,
    **more: Any,
) -> Session:
    """A session that was let go of with so many entries counted, and its first and last checkpoint."""
    first, last = (marks[0], marks[-1]) if marks else (None, None)
    made = session(0, 10, puts=puts, first=first, last=last, entries_at_release=entries, **more)
    made.counted_at_release = puts if counted is None else counted
    return made


EARLY, LATER = mark(2, 1000, 1900), mark(9, 1900, 2000)


@pytest.mark.parametrize(
    ("one", "opened", "expected"),
    [
        # each put since the opening may have come after the checkpoint, and may have added an entry
        (ended(EARLY, LATER, puts_at_open=800), 50, [(1000, 300), (1900, 300)]),
        # the checkpoint of a clean close follows the last flush
        (ended(EARLY, mark(9.9, 1900, 1990), puts_at_open=800, closed=True), 50, [(1000, 300), (1900, 1490)]),
        # what was counted before the last flushes is compared with what had been flushed then
        (ended(mark(9.9, 2000, 2000), counted=1800, closed=True), 50, [(2000, 1300)]),
        (ended(mark(9, 0, 2000)), 50, []),  # "unknown" and 0 say nothing
        (ended(mark(9, -4, 2000)), 50, []),
        (ended(mark(9, 2000, 2000), entries=None), 50, []),
        (ended(mark(9, 2000, 2000)), 5, []),  # only what was claimed before the session that is judged
        # 4.3: what lies behind the newest stored offset is taken off; an unknown order says nothing
        (ended(puts=2010, covering_offset=1999, uncovered_puts=5), 50, [(1999, 1495)]),
        (ended(puts=2010, covering_offset=1999, uncovered_puts=None), 50, []),
    ],
)
def test_what_a_session_claimed(one, opened, expected):
    """(offset, low end) of everything that was claimed before an opening."""
    held_by = store([database()], [one])
    release = "4.1.2" if one.covering_offset is None else "4.3.1"
    claims = claims_before(task(held_by), held_by, session(opened), known(release))
    assert [(x.offset, x.entries.low) for x in claims] == expected


def wiped(
    shape: Shape = Shape.OWNER_WALK,
    last: float = 9.9,
    release: str | None = "4.1.2",
    guarantee: str | None = "exactly_once_v2",
) -> list[int]:
    """What counts of a store that was wiped after it wrote offset 2000."""
    before = past(10, shape=shape, puts=2000, entries_low=1500)
    one = store([database(born=20)], [ended(mark(last, 2000, 2000), identity=OLD)], past=(before,))
    knowledge = known(release, guarantee)
    return [x.offset for x in claims_before(task(one), one, session(50), knowledge)]


@pytest.mark.parametrize(
    ("more", "counts"),
    [
        ({}, False),  # a corrupted task writes an offset for what was never committed, and is wiped
        ({"release": None}, False),
        ({"guarantee": None}, False),
        ({"last": -1}, True),  # of a restoration, long before the wipe
        ({"shape": Shape.CLEANER_WALK}, True),  # it was let go of in order
        ({"guarantee": "at_least_once"}, True),
        ({"release": "3.7.2"}, True),  # the offset of a corrupted store is not written
    ],
)
def test_the_offset_of_a_task_that_was_wiped_right_after_it(more, counts):
    """It may cover what was never committed, where a release writes such a one."""
    assert wiped(**more) == ([2000] if counts else [])


OLDER = replace(past(10, puts=2000), identity="identity-of-old")
PASSING = replace(past(30.3), identity="identity-between", born_us=at(30))


@pytest.mark.parametrize(
    ("identity", "gone", "expected"),
    [
        # of an older one nothing is known: the application may have been reset since
        ("identity-of-old", (OLDER, past(30, puts=700)), []),
        # a task that is wiped when it is taken has its store made twice
        (OLD, (past(10, puts=2000, entries_low=1500), PASSING), [2000]),
    ],
)
def test_only_the_incarnation_before(identity, gone, expected):
    """One that passed at once does not count."""
    one = store([database(born=40)], [ended(mark(9, 2000, 2000), identity=identity)], past=gone)
    assert [x.offset for x in claims_before(task(one), one, session(50), known())] == expected


@pytest.mark.parametrize(
    ("flushed", "seen", "counts"),
    [
        (5, 9, True),
        (9.5, 9, False),  # something was flushed after it
        # its time may lie in the life of the store that was there before; it was found when that was gone
        (5, 29, True),
        (5, 30, False),
        (5, 31, False),
    ],
)
def test_checkpoints_of_an_incarnation_without_a_session(flushed, seen, counts):
    """Its owner was not seen; a checkpoint counts if nothing was flushed after it, and no other volume came."""
    gone = replace(past(30, puts=2000, entries_low=1500, flushed=flushed), counted_puts=2000)
    one = store([database(born=20)], past=(gone,))
    fact = replace(checkpoint(9, 2000), seen_us=at(seen))
    said = claims_before(task(one, checkpoints=[fact]), one, session(50), known())
    assert [(x.offset, x.entries.low) for x in said] == ([(2000, 1500)] if counts else [])


# -- what is claimed now --------------------------------------------------------------------------------------


def entries_of(claim: OffsetClaim | None) -> Bounds | None:
    """Live entries of a claim; None = there is no claim."""
    return None if claim is None else claim.entries


COUNTED: dict[str, Any] = {
    "offset_at_open": 2000,
    "puts_at_open": 2000,
    "entries_at_open": 1500,
    "counted_at_open": 2003,
}


@pytest.mark.parametrize(
    ("one", "entries"),
    [
        (session(10, offset_at_open=2000, created=True), Bounds.exactly(0)),
        (session(10, offset_at_open=-4, created=True), None),
        (session(10, offset_at_open=2000, puts_at_open=2000), None),
        (session(10, **COUNTED), Bounds(0, 1503)),
        (session(10, **COUNTED, wiped=True), None),
    ],
)
def test_what_an_opening_trusts(one, entries):
    """A new store holds nothing; an old one what was counted, and what was flushed before that, or since."""
    assert entries_of(claim_of_opening(one)) == entries


def counted(**more: Any) -> Database:
    """A database whose entries were counted at its last flush."""
    known_then = {"entries_high": 1000, "counted_puts": 2000, "manifest": 5, "seen_us": at(30)}
    return database(puts=2000, entries=900, **{**known_then, **more})


def its_own(sequence: int) -> StoreOffsets:
    """4.3: the offset that lies with the data."""
    return StoreOffsets(offsets=(("app-s-changelog-0", 1999, sequence),))


WORKS: dict[str, Any] = {"puts_at_open": 1800, "last": mark(20, 1900, 1900)}


@pytest.mark.parametrize(
    ("made", "opened", "entries"),
    [
        (counted(), session(10, **WORKS), Bounds(0, 1200)),
        (counted(), session(10, **WORKS, closed=True), Bounds(0, 1100)),
        (counted(), session(10), None),
        (counted(entries_high=None), session(10, **WORKS), None),
        (counted(manifest_problem="cut"), session(10, **WORKS), None),
        (counted(offsets=its_own(1996)), session(10), Bounds(0, 1004)),
        (counted(offsets=its_own(0)), session(10), None),  # its order to the data must be known
    ],
)
def test_what_a_store_claims_now(made, opened, entries):
    """What was flushed since its last checkpoint, or since the opening for want of better, may have ended entries."""
    assert entries_of(claim_now(store([made]), opened, "")) == entries


@pytest.mark.parametrize(
    ("volume", "seconds", "is_read"),
    [
        ("local", 20, False),
        ("local", 20.1, True),
        ("network", 80, False),
        ("network", 80.1, True),
        ("fuse", 80, False),
    ],
)
def test_a_store_that_was_not_read_since_its_checkpoint(volume, seconds, is_read):
    """What was flushed before the checkpoint may not have been seen yet, on some volumes for a minute."""
    one = store([counted(seen_us=at(seconds))])
    assert (claim_now(one, session(10, last=mark(20, 1900, 1900)), volume) is not None) is is_read
