"""Offsets against puts: the arithmetic under several detectors."""

from __future__ import annotations

from typing import Any

import pytest

from agent.inventory.model import Session, Store, Task
from agent.inventory.settings import ApplicationSettings, Setting
from agent.layout.profile import Truth
from agent.quantities.bounds import Bounds
from agent.quantities.carried import continued_from
from agent.quantities.changelog import base_offset, is_real, records_at_least, records_between
from agent.quantities.flushed import (
    is_more_than_ten_thousand,
    unsaved_puts,
)
from agent.quantities.kinds import puts_per_record
from agent.quantities.verdicts import (
    holds_uncommitted,
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
    profile,
    session,
    store,
    task,
)


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


HEADERS = ("default", "keyValueWithTimestampAndHeaders", "offsets")
UPGRADED = ("default", "keyValueWithTimestamp", "keyValueWithTimestampAndHeaders", "offsets")
SESSIONS = ("default", "sessionKeyValueWithHeaders", "offsets")
OF_SEGMENTS = ("keyValueWithTimestampAndHeaders", "sessionKeyValueWithHeaders", "windowKeyValueWithHeaders")


def kept(families: tuple[str, ...] = TIMESTAMPED, used: tuple[str, ...] | None = None, **more: Any) -> Store:
    """A key-value store with these column families, and those in use."""
    made = database(families=families, **more)
    made.families_in_use = used or made.families_in_use
    return store([made])


def segmented(families: tuple[str, ...] = TIMESTAMPED, used: tuple[str, ...] | None = None) -> Store:
    """A windowed store with one segment."""
    made = database(segment="1", families=families)
    made.families_in_use = used or made.families_in_use
    return store([made], segmented=True)


@pytest.mark.parametrize(
    ("one", "release", "bounds"),
    [
        # column families tell a timestamped store; a plain one may be versioned from 3.5 on
        (kept(), "4.1.2", Bounds(1, 1)),
        (kept(PLAIN), "2.8.2", Bounds(1, 1)),
        (kept(PLAIN, entries=10), "3.9.2", Bounds(0, 2)),
        (kept(PLAIN), "3.9.2", Bounds(0, 3)),
        (kept(PLAIN, entries=10), None, Bounds(0, 2)),
        (kept((), entries=10), "2.8.2", Bounds(0, None)),
        # upgrade mode: values of the plain store that it was are moved by reads, too
        (kept(used=TIMESTAMPED[1:]), "3.9.2", Bounds(1, 1)),
        (kept(used=TIMESTAMPED), "3.9.2", Bounds(1, None)),
        # a segment of timestamped values that still has plain ones puts in both families
        (segmented(), "3.9.2", Bounds(0, 2)),
        (segmented(used=TIMESTAMPED), "3.9.2", Bounds(0, None)),
        # from 3.2 on a segment may hold an index beside its entries
        (segmented(), "3.1.2", Bounds(0, 1)),
        (segmented(), "3.2.3", Bounds(0, 2)),
        (segmented(), None, Bounds(0, 2)),
        # 4.3: segments of windows and sessions with headers, and what is upgraded to them
        *((segmented(("default", x, "offsets"), (x,)), "4.3.1", Bounds(0, 2)) for x in OF_SEGMENTS),
        *(
            (segmented(("default", x, "offsets"), ("default", x)), "4.3.1", Bounds(0, None))
            for x in OF_SEGMENTS
        ),
    ],
)
def test_puts_per_record(one, release, bounds):
    """How many puts a record of the changelog makes."""
    assert puts_per_record(one, profile(release)) == bounds


@pytest.mark.parametrize(
    ("families", "used", "bounds"),
    [
        (HEADERS, HEADERS[1:], Bounds(1, 1)),
        (HEADERS, HEADERS, Bounds(1, None)),
        (UPGRADED, UPGRADED[2:], Bounds(1, None)),
        (UPGRADED, UPGRADED[1:], Bounds(1, None)),
        (HEADERS, ("keyValueWithTimestamp", *HEADERS[1:]), Bounds(1, None)),
        (SESSIONS, ("default",), Bounds(1, None)),
        (("default", "ofALaterRelease", "offsets"), ("default",), Bounds(0, None)),
    ],
)
def test_puts_per_record_of_values_with_headers(families, used, bounds):
    """4.3: what is upgraded from plain or timestamped values deletes there and puts here, and moves what is read."""
    one, of = kept(families, used), profile("4.3.1")
    assert puts_per_record(one, of) == bounds
    assert holds_uncommitted(one, of, 500, 100, 400) is (Truth.YES if bounds.high == 1 else Truth.MAYBE)


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


SEGMENTS = store([database(segment=f"s.{n}", families=PLAIN) for n in range(2)], segmented=True)


@pytest.mark.parametrize(
    ("one", "release", "limit"),
    [
        (kept(), "3.9.2", 10_000),
        (SEGMENTS, "3.9.2", 20_000),  # a window's base and index
        (kept(PLAIN), "3.9.2", 30_100),  # three and dropped segments
        (kept(used=(*TIMESTAMPED, "default")), "3.9.2", None),  # while it is converted
        # run on 4.3.1: 3,000 updates of a count made 12,010 puts, a get and a put of each in both families
        (kept(UPGRADED), "4.3.1", None),
        (kept(HEADERS), "4.3.1", 10_000),
    ],
)
def test_more_than_ten_thousand_records(one, release, limit):
    """Puts are counted as the kind of store makes them; the fleet is given the limit of each kind."""
    assert unsaved_puts(one, profile(release)) == limit
    assert not is_more_than_ten_thousand(limit or 10**9, one, profile(release))
    assert is_more_than_ten_thousand((limit or 10**9) + 1, one, profile(release)) is (limit is not None)


def carried(
    *,
    offset: int | None = 2050,
    puts: int = 50,
    created: bool = True,
    segmented: bool = False,
    ended: float = 24.0,
    deleted: bool = True,
    gone: bool = True,
    written: int | None = 2000,
    trusted: int | None = None,
) -> tuple[Task, Store, Session]:
    """A store of 2,000 puts was deleted at offset 2000; its successor's first checkpoint: 2050 with 50 puts."""
    new = session(30, created=created, first=None if offset is None else mark(35, offset, puts))
    new.offset_at_open = trusted
    one = store([database(born=30)], [new], segmented=segmented, past=(past(25, puts=2000),) if gone else ())
    facts = [] if written is None else [checkpoint(10, written, ended=ended, deleted=deleted)]
    return task(one, checkpoints=facts), one, new


@pytest.mark.parametrize("changes", [{}, {"deleted": False}, {"ended": 31.0}])
def test_continued(changes):
    """About as many puts as offsets since the old checkpoint, and far fewer than the old store held."""
    found = continued_from(*carried(**changes))
    assert found is not None
    assert found.written_us == at(10)


@pytest.mark.parametrize(
    "changes",
    [
        {"created": False}, {"segmented": True}, {"trusted": 2000},
        {"offset": 1999}, {"puts": 53}, {"puts": 24}, {"offset": 3600, "puts": 1600},
        {"gone": False}, {"offset": None}, {"written": None}, {"written": 0},
    ],
)  # fmt: skip
def test_not_continued(changes):
    """No new store, segments, a checkpoint that was there, a lower offset, a restoration, little lost, or nothing."""
    assert continued_from(*carried(**changes)) is None
