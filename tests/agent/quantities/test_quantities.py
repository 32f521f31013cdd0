"""Offsets against puts: the arithmetic under several detectors."""

from __future__ import annotations

from typing import Any

import pytest

from agent.inventory.model import Session, Store, Task
from agent.inventory.settings import ApplicationSettings, Setting
from agent.layout.profile import Profile, Truth
from agent.layout.releases import ANY_RELEASE, ReleaseRange
from agent.quantities.bounds import Bounds
from agent.quantities.carried import continued_from
from agent.quantities.changelog import base_offset, is_real, records_at_least, records_between
from agent.quantities.flushed import (
    first_flush_beyond,
    flushed_beyond,
    is_more_than_ten_thousand,
    unsaved_puts,
)
from agent.quantities.kinds import puts_beside_records, puts_per_record
from agent.quantities.verdicts import (
    held_before,
    holds_uncommitted,
    replay_fell_short,
    skipped_offsets,
    transaction_markers,
)
from tests.support.scenario_case import (
    PLAIN,
    TIMESTAMPED,
    at,
    checkpoint,
    database,
    mark,
    past,
    session,
    store,
    task,
)


def profile(release: str | None) -> Profile:
    """The profile of one release."""
    return Profile(ANY_RELEASE if release is None else ReleaseRange.of(release))


@pytest.mark.parametrize(("offset", "real"), [(None, False), (-4, False), (0, False), (1, True)])
def test_real_offsets(offset, real):
    """Only an entry above zero says that something was applied."""
    assert is_real(offset) is real


@pytest.mark.parametrize(("offset", "base"), [(None, 0), (-4, 0), (-1, 0), (0, 0), (7, 7)])
def test_base(offset, base):
    """A restoration never starts below zero."""
    assert base_offset(offset) == base


@pytest.mark.parametrize(
    ("start", "end", "bounds"),
    [
        (None, 9, Bounds(0, 10)),
        (5, 9, Bounds(0, 5)),
        (-4, -4, Bounds(0, 1)),
        (9, 5, Bounds(0, 1)),
        (5, None, Bounds(0, None)),
    ],
)
def test_records_between(start, end, bounds):
    """At most every offset is a record, and an entry may be the next or the last one; none need be."""
    assert records_between(start, end) == bounds


def test_records_at_least():
    """A marker behind every record takes half of the offsets."""
    assert records_at_least(100, 301) == 100
    assert records_at_least(301, 100) == 0


@pytest.mark.parametrize(
    ("families", "entries", "release", "bounds"),
    [
        (TIMESTAMPED, None, "4.1.2", Bounds(1, 1)),
        (PLAIN, None, "2.8.2", Bounds(1, 1)),
        (PLAIN, 10, "3.9.2", Bounds(0, 2)),
        (PLAIN, None, "3.9.2", Bounds(0, 3)),
        (PLAIN, 10, None, Bounds(0, 2)),
        ((), 10, "2.8.2", Bounds(0, None)),
    ],
)
def test_puts_per_record_of_a_key_value_store(families, entries, release, bounds):
    """Its column families tell a timestamped store; a plain one may be versioned from 3.5 on."""
    one = store([database(families=families, entries=entries)])
    assert puts_per_record(one, profile(release)) == bounds


def test_puts_per_record_in_upgrade_mode():
    """Values of the plain store that it was are moved by reads, too: no upper end."""
    one = store([database()])
    one.databases[""].families_in_use = ("keyValueWithTimestamp",)
    assert puts_per_record(one, profile("3.9.2")) == Bounds(1, 1)
    one.databases[""].families_in_use = TIMESTAMPED
    assert puts_per_record(one, profile("3.9.2")) == Bounds(1, None)


HEADERS = ("default", "keyValueWithTimestampAndHeaders", "offsets")
UPGRADED = ("default", "keyValueWithTimestamp", "keyValueWithTimestampAndHeaders", "offsets")


@pytest.mark.parametrize(
    ("families", "used", "bounds"),
    [
        (HEADERS, HEADERS[1:], Bounds(1, 1)),
        (HEADERS, HEADERS, Bounds(1, None)),
        (UPGRADED, UPGRADED[2:], Bounds(1, None)),
        (UPGRADED, UPGRADED[1:], Bounds(1, None)),
        (HEADERS, ("keyValueWithTimestamp", *HEADERS[1:]), Bounds(1, None)),
        (("default", "sessionKeyValueWithHeaders", "offsets"), ("default",), Bounds(1, None)),
        (("default", "ofALaterRelease", "offsets"), ("default",), Bounds(0, None)),
    ],
)
def test_puts_per_record_of_values_with_headers(families, used, bounds):
    """4.3: what is upgraded from plain or timestamped values deletes there and puts here, and moves what is read."""
    one = store([database(families=families)])
    one.databases[""].families_in_use = used
    assert puts_per_record(one, profile("4.3.1")) == bounds
    assert holds_uncommitted(one, profile("4.3.1"), 500, 100, 400) is (
        Truth.YES if bounds.high == 1 else Truth.MAYBE
    )


def test_puts_of_an_upgrade_are_no_ten_thousand_records():
    """Run on 4.3.1: 3,000 updates of a count made 12,010 puts, a get and a put of each in both families."""
    one = store([database(families=UPGRADED)])
    assert not is_more_than_ten_thousand(12_010, one, profile("4.3.1"))
    one.databases[""].families = HEADERS
    assert is_more_than_ten_thousand(12_010, one, profile("4.3.1"))


def test_segments_upgraded_to_headers():
    """Segments of windows and sessions do the same."""
    for family in (
        "keyValueWithTimestampAndHeaders",
        "sessionKeyValueWithHeaders",
        "windowKeyValueWithHeaders",
    ):
        one = store([database(segment="1", families=("default", family, "offsets"))], segmented=True)
        one.databases["1"].families_in_use = (family,)
        assert puts_per_record(one, profile("4.3.1")) == Bounds(0, 2)
        one.databases["1"].families_in_use = ("default", family)
        assert puts_per_record(one, profile("4.3.1")) == Bounds(0, None)


def test_segments_of_a_versioned_store():
    """The first record after a silence drops all that expired: deletions without a record of their own."""
    plain = store([database(families=PLAIN, entries=10)])
    assert puts_beside_records(plain, profile("3.9.2")) == Bounds(0, 100)
    assert puts_beside_records(plain, profile("3.4.1")) == Bounds(0, 0)
    assert puts_beside_records(store([database()]), profile("3.9.2")) == Bounds(0, 0)
    assert holds_uncommitted(plain, profile("3.9.2"), 28, 10, 12) is Truth.MAYBE


def test_segments_in_upgrade_mode():
    """A segment of timestamped values that still has plain ones puts in both families."""
    one = store([database(segment="1")], segmented=True)
    assert puts_per_record(one, profile("3.9.2")) == Bounds(0, 2)
    one.databases["1"].families_in_use = TIMESTAMPED
    assert puts_per_record(one, profile("3.9.2")) == Bounds(0, None)


@pytest.mark.parametrize(("release", "high"), [("3.1.2", 1), ("3.2.3", 2), (None, 2)])
def test_puts_per_record_of_a_windowed_store(release, high):
    """From 3.2 on a segment may hold an index beside its entries."""
    one = store([database(segment="1")], segmented=True)
    assert puts_per_record(one, profile(release)) == Bounds(0, high)


@pytest.mark.parametrize(
    ("guarantee", "interval", "duration_us", "markers"),
    [
        ("at_least_once", 100, 1_000_000, 0),
        ("exactly_once_v2", 100, 1_000_000, 12),
        ("exactly_once_v2", None, 1_000_000, 12),
        (None, None, 1_000_000, 12),
        ("exactly_once_v2", 1000, 999_999, 2),
        ("exactly_once_v2", 1000, 1_000_000, 3),
        ("exactly_once_v2", 100, -5, 2),
        ("exactly_once_v2", 1, 10_000, 12),
    ],
)
def test_markers(guarantee, interval, duration_us, markers):
    """One marker a commit, one more at each end; none under at-least-once."""
    values = {"processing_guarantee": guarantee, "commit_interval_ms": interval}
    settings = ApplicationSettings({k: Setting(str(v), "flag") for k, v in values.items() if v is not None})
    assert transaction_markers(settings, duration_us) == markers
    assert skipped_offsets(settings, 1000, 400, duration_us) == 600 - markers


def test_replay_against_live_entries():
    """Compaction keeps every key, so a whole replay puts each live entry at least once."""
    assert replay_fell_short(100, 99) is Truth.YES
    assert replay_fell_short(100, 100) is Truth.NO
    assert replay_fell_short(None, 0) is Truth.MAYBE


def test_flushed_beyond():
    """Counted from the last checkpoint, else from the opening; never below zero."""
    assert flushed_beyond(session(0, 9, puts=70, last=mark(5, 0, 50), puts_at_open=10)) == 20
    assert flushed_beyond(session(0, 9, puts=70, puts_at_open=10)) == 60
    assert flushed_beyond(session(0, 9, puts=40, last=mark(5, 0, 50))) == 0


def test_first_flush_beyond():
    """The first flush after the checkpoint; its own time if none is remembered."""
    one = store([database(flushed=[(10, 4), (20, 6), (30, 7)])])
    assert first_flush_beyond(one, mark(5, 0, 10)) == at(6)
    assert first_flush_beyond(one, mark(7, 0, 30)) == at(7)


def test_more_than_ten_thousand_records():
    """Puts are counted as the kind of store makes them."""
    plain = store([database(families=PLAIN)])
    assert is_more_than_ten_thousand(10_001, store([database()]), profile("3.9.2"))
    assert not is_more_than_ten_thousand(10_000, store([database()]), profile("3.9.2"))
    assert is_more_than_ten_thousand(30_101, plain, profile("3.9.2"))
    assert not is_more_than_ten_thousand(30_100, plain, profile("3.9.2"))


def test_the_fleet_is_given_the_limit_of_each_kind():
    """One put a record, two of a window's base and index, three and dropped segments; none while it is converted."""
    segments = [database(segment=f"s.{n}", families=PLAIN) for n in range(2)]
    converted = database()
    converted.families_in_use = (*TIMESTAMPED, "default")
    kinds = (
        store([database()]), store(segments, segmented=True), store([database(families=PLAIN)]), store([converted]),
    )  # fmt: skip
    assert [unsaved_puts(x, profile("3.9.2")) for x in kinds] == [10_000, 20_000, 30_100, None]
    assert not is_more_than_ten_thousand(10**9, kinds[-1], profile("3.9.2"))


def carried(**changes: Any) -> tuple[Task, Store, Session]:
    """A store of 2,000 puts was deleted at offset 2000; its successor's first checkpoint: 2050 with 50 puts."""
    values: dict[str, Any] = {
        "offset": 2050,
        "puts": 50,
        "created": True,
        "segmented": False,
        "ended": 24.0,
        "deleted": True,
    }
    values |= changes
    new = session(30, created=values["created"], first=mark(35, values["offset"], values["puts"]))
    one = store([database(born=30)], [new], segmented=values["segmented"])
    one.past += (past(25, puts=2000),)
    fact = checkpoint(10, 2000, ended=values["ended"], deleted=values["deleted"])
    return task(one, checkpoints=[fact]), one, new


def test_continued():
    """About as many puts as offsets since the old checkpoint, and far fewer than the old store held."""
    found = continued_from(*carried())
    assert found is not None
    assert found.written_us == at(10)


@pytest.mark.parametrize(
    "changes",
    [
        {"created": False}, {"segmented": True}, {"deleted": False}, {"ended": 30.0}, {"ended": 31.0},
        {"offset": 1999}, {"puts": 53}, {"puts": 24}, {"offset": 3600, "puts": 1600},
    ],
)  # fmt: skip
def test_not_continued(changes):
    """No new store, segments, a checkpoint that was there, a lower offset, a restoration, or little lost."""
    assert continued_from(*carried(**changes)) is None


def test_nothing_to_continue_from():
    """Without a first checkpoint, an earlier incarnation, or an earlier checkpoint nothing can be continued."""
    here, one, new = carried()
    one.past = ()
    assert continued_from(here, one, new) is None
    here, one, new = carried()
    new.first = None
    assert continued_from(here, one, new) is None
    here, one, new = carried()
    here.checkpoints = ()
    assert continued_from(here, one, new) is None
    here, one, new = carried()
    here.checkpoints[-1].offsets["s"] = 0
    assert continued_from(here, one, new) is None


def test_held_before():
    """Live entries where known, else puts."""
    one = store()
    one.past += (past(25, puts=2000),)
    assert held_before(one) == 2000
    one.past += (past(26, puts=2000, entries_low=1500),)
    assert held_before(one) == 1500
