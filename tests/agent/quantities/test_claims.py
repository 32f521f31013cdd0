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
from agent.layout.profile import Profile, Truth
from agent.layout.releases import ANY_RELEASE, ReleaseRange
from agent.quantities.bounds import Bounds
from agent.quantities.claims import (
    Knowledge,
    OffsetClaim,
    claim_now,
    claim_of_opening,
    claims_before,
    got_too_little,
    has_seen_it_all,
    is_countable,
    lacks_entries,
    puts_since_birth,
)
from tests.support.scenario_case import (
    IDENTITY,
    PLAIN,
    at,
    checkpoint,
    database,
    mark,
    past,
    session,
    store,
    task,
)

OLD = "identity-0"


def known(release: str | None = "4.1.2", guarantee: str | None = "exactly_once_v2") -> Knowledge:
    """What is known of the application."""
    told = {} if guarantee is None else {"processing_guarantee": Setting(guarantee, "flag")}
    return Knowledge(
        ApplicationSettings(told), Profile(ANY_RELEASE if release is None else ReleaseRange.of(release))
    )


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


@pytest.mark.parametrize(("puts", "answer"), [(1000, True), (999, False)])
def test_a_store_that_put_every_offset_itself(puts, answer):
    """At most every second offset is a marker: what put the other half begins with its changelog."""
    assert has_seen_it_all(holds(2000, 10), puts) is answer


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
    entries = len(live(operations)) + lost + 1
    assert (
        lacks_entries(held(len(operations), entries), holds(len(operations), entries - lost - 1)) is Truth.YES
    )


# -- which stores can be counted ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("release", "families", "answer"),
    [
        ("4.1.2", None, True),
        (None, None, True),
        ("2.1.1", PLAIN, True),
        ("3.4.1", PLAIN, True),
        ("3.5.0", PLAIN, False),  # a versioned store looks the same, and drops ranges of keys
        (None, PLAIN, False),
        ("4.1.2", (), False),
    ],
)
def test_kinds_that_can_be_counted(release, families, answer):
    """One entry per key, and one record per change."""
    made = database() if families is None else database(families=families)
    assert is_countable(store([made]), known(release).profile) is answer


def test_kinds_that_lose_entries_by_themselves():
    """Segments expire, RocksDB may be told to drop entries, and a source topic may be cut by time."""
    profile = known().profile
    assert not is_countable(store([database(segment="0")], segmented=True), profile)
    forgetful = database()
    forgetful.forgets = True
    assert not is_countable(store([forgetful]), profile)
    by_source = session(0, 10)
    by_source.by_source_topic = True
    assert not is_countable(store([database()], [by_source]), profile)


# -- what was claimed before ----------------------------------------------------------------------------------


def ended(
    *,
    first: CheckpointClaim | None = None,
    last: CheckpointClaim | None = None,
    puts: int = 2000,
    entries: int | None = 1500,
    identity: str = IDENTITY,
    released: float = 10.0,
) -> Session:
    """A session that was let go of with so many entries counted."""
    made = session(0, released, puts=puts, first=first, last=last, identity=identity)
    made.entries_at_release, made.counted_at_release = entries, puts
    return made


def lows(
    made: Database, sessions: list[Session], *, knowledge: Knowledge | None = None, opened: float = 50.0
) -> list[tuple[int, int]]:
    """(offset, low end) of everything that was claimed before an opening."""
    one = store([made], sessions)
    claims = claims_before(task(one), one, session(opened), knowledge or known())
    return [(x.offset, x.entries.low) for x in claims]


def test_what_may_have_been_flushed_beyond_an_offset_is_taken_off():
    """Each put since the opening may have come after the checkpoint, and may have added an entry."""
    one = ended(first=mark(2, 1000, 1900), last=mark(9, 1900, 2000))
    one.puts_at_open = 800
    assert lows(database(), [one]) == [(1000, 300), (1900, 300)]


def test_a_clean_close_is_exact():
    """Its checkpoint follows the last flush."""
    one = ended(first=mark(2, 1000, 1900), last=mark(9.9, 1900, 1990))
    one.puts_at_open, one.closed = 800, True
    assert lows(database(), [one]) == [(1000, 300), (1900, 1490)]


def test_entries_that_were_counted_earlier_say_less():
    """What was counted before the last flushes is compared with what had been flushed then."""
    stale = ended(last=mark(9.9, 2000, 2000))
    stale.counted_at_release, stale.closed = 1800, True
    assert lows(database(), [stale]) == [(2000, 1300)]


@pytest.mark.parametrize("offset", [0, -4])
def test_no_offset_is_no_claim(offset):
    """ "Unknown" and 0 say nothing."""
    assert lows(database(), [ended(last=mark(9, offset, 2000))]) == []


def test_entries_that_were_not_counted():
    """Without counters there is no claim."""
    assert lows(database(), [ended(last=mark(9, 2000, 2000), entries=None)]) == []


def test_what_is_later_than_the_opening():
    """Only what was claimed before the session that is judged."""
    assert lows(database(), [ended(last=mark(9, 2000, 2000))], opened=5) == []


def wiped(
    shape: Shape = Shape.OWNER_WALK,
    last: float = 9.9,
    release: str | None = "4.1.2",
    guarantee: str | None = "exactly_once_v2",
) -> list[int]:
    """What counts of a store that was wiped after it wrote offset 2000."""
    before = past(10, shape=shape, puts=2000, entries_low=1500)
    one = store([database(born=20)], [ended(last=mark(last, 2000, 2000), identity=OLD)])
    one.past += (before,)
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


def test_only_the_incarnation_before():
    """Of an older one nothing is known: the application may have been reset since."""
    one = store([database(born=40)], [ended(last=mark(9, 2000, 2000), identity="identity-of-old")])
    one.past += (replace(past(10, puts=2000), identity="identity-of-old"), past(30, puts=700))
    assert list(claims_before(task(one), one, session(50), known())) == []


def test_an_incarnation_that_passed_at_once_does_not_count():
    """A task that is wiped when it is taken has its store made twice."""
    one = store([database(born=40)], [ended(last=mark(9, 2000, 2000), identity=OLD)])
    passing = replace(past(30.3), identity="identity-between", born_us=at(30))
    one.past += (past(10, puts=2000, entries_low=1500), passing)
    assert [x.offset for x in claims_before(task(one), one, session(50), known())] == [2000]


@pytest.mark.parametrize(("flushed", "expected"), [(5, [(2000, 1500)]), (9.5, [])])
def test_checkpoints_of_an_incarnation_without_a_session(flushed, expected):
    """Its owner was not seen; a checkpoint counts if nothing was flushed after it."""
    one = store([database(born=20)])
    before = past(30, puts=2000, entries_low=1500, flushed=flushed)
    one.past += (replace(before, counted_puts=2000),)
    said = claims_before(task(one, checkpoints=[checkpoint(9, 2000)]), one, session(50), known())
    assert [(x.offset, x.entries.low) for x in said] == expected


@pytest.mark.parametrize(("seen", "expected"), [(29, [(2000, 1500)]), (30, []), (31, [])])
def test_a_checkpoint_that_came_with_another_volume(seen, expected):
    """Its time may lie in the life of the store that was there before; it was found when that was gone."""
    one = store([database(born=20)])
    one.past += (replace(past(30, puts=2000, entries_low=1500, flushed=5), counted_puts=2000),)
    fact = replace(checkpoint(9, 2000), seen_us=at(seen))
    said = claims_before(task(one, checkpoints=[fact]), one, session(50), known())
    assert [(x.offset, x.entries.low) for x in said] == expected


def test_offsets_in_the_store():
    """4.3: what lies behind the newest stored offset is taken off; an unknown order says nothing."""
    one = ended(puts=2010)
    one.covering_offset, one.uncovered_puts = 1999, 5
    assert lows(database(), [one], knowledge=known("4.3.1")) == [(1999, 1495)]
    one.uncovered_puts = None
    assert lows(database(), [one], knowledge=known("4.3.1")) == []


# -- what is claimed now --------------------------------------------------------------------------------------


def entries_of(claim: OffsetClaim | None) -> Bounds | None:
    """Live entries of a claim; None = there is no claim."""
    return None if claim is None else claim.entries


def test_what_an_opening_trusts():
    """A new store holds nothing; an old one what was counted, and what was flushed before that, or since."""
    assert entries_of(claim_of_opening(session(10, offset_at_open=2000, created=True))) == Bounds.exactly(0)
    again = session(10, offset_at_open=2000, puts_at_open=2000)
    assert claim_of_opening(again) is None
    again.entries_at_open, again.counted_at_open = 1500, 2003
    assert entries_of(claim_of_opening(again)) == Bounds(0, 1503)
    again.wiped = True
    assert claim_of_opening(again) is None
    assert claim_of_opening(session(10, offset_at_open=-4, created=True)) is None


def counted(**more: Any) -> Database:
    """A database whose entries were counted at its last flush."""
    made = database(puts=2000, entries=900)
    made.entries_high, made.counted_puts, made.manifest, made.seen_us = 1000, 2000, 5, at(30)
    for name, value in more.items():
        setattr(made, name, value)
    return made


def test_what_a_store_claims_now():
    """What was flushed since its last checkpoint, or since the opening for want of better, may have ended entries."""
    opened = session(10, puts_at_open=1800, last=mark(20, 1900, 1900))
    assert entries_of(claim_now(store([counted()]), opened, "")) == Bounds(0, 1200)
    opened.closed = True
    assert entries_of(claim_now(store([counted()]), opened, "")) == Bounds(0, 1100)
    assert claim_now(store([counted()]), session(10), "") is None
    assert claim_now(store([counted(entries_high=None)]), opened, "") is None
    assert claim_now(store([counted(manifest_problem="cut")]), opened, "") is None


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


def test_what_a_store_claims_by_its_own_offset():
    """4.3: the offset that lies with the data; its order to the data must be known."""
    offsets = StoreOffsets(offsets=(("app-s-changelog-0", 1999, 1996),))
    assert entries_of(claim_now(store([counted(offsets=offsets)]), session(10), "")) == Bounds(0, 1004)
    zeroed = StoreOffsets(offsets=(("app-s-changelog-0", 1999, 0),))
    assert claim_now(store([counted(offsets=zeroed)]), session(10), "") is None


def test_puts_of_a_store_that_was_made_since():
    """Only where the present store is younger than the claim, and its birth is no time of a copy."""
    one, opened = store([database(puts=700, born=20)]), session(20, last=mark(30, 2000, 650))
    assert puts_since_birth(one, opened, held(2000, 1500)) == 650
    assert puts_since_birth(one, opened, replace(held(2000, 1500), at_us=at(25))) is None
    copied = database(puts=700, born=20)
    copied.oldest_data_us = at(1)
    assert puts_since_birth(store([copied]), opened, held(2000, 1500)) is None
