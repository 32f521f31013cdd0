"""Which snapshot an audit reads, what withdraws one, and what `--look-back` takes. No Spark."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spark_rollup.bronze import snapshots
from spark_rollup.bronze.snapshots import DAY_US, EVERYTHING, MADE
from spark_rollup.config import parse_look_back
from spark_rollup.errors import UsageError

NOON_US = snapshots.end_us("2026-11-20") - DAY_US // 2


def bronze(tmp_path: Path, *days: int, made: tuple[int, ...] = ()) -> Path:
    """Lay out a bronze directory with events of some days of November, and snapshots of some."""
    for day in days:
        (tmp_path / "events" / f"day=2026-11-{day:02}").mkdir(parents=True)
    for day in made:
        place = snapshots.folder(tmp_path, f"2026-11-{day:02}")
        place.mkdir(parents=True)
        (place / MADE).write_text(f'{{"format": {snapshots.FORMAT}}}')
    return tmp_path


def test_the_look_back_begins_at_midnight():
    """Whole days: today so far, and so many before it."""
    assert snapshots.since_us(NOON_US, 1) == snapshots.end_us("2026-11-18")
    assert snapshots.since_us(NOON_US, 2) == snapshots.end_us("2026-11-17")
    assert snapshots.since_us(NOON_US, None) == 0


def test_an_audit_reads_its_look_back_and_the_newest_snapshot_before_it(tmp_path):
    """Not one of a day inside the look-back: what is inside is looked at event by event."""
    here = bronze(tmp_path, *range(14, 21), made=(14, 15, 16, 17, 18, 19))
    found = snapshots.reading(here, snapshots.since_us(NOON_US, 1))
    assert (found.snapshot, found.after, found.missing) == (
        snapshots.folder(here, "2026-11-18"),
        "2026-11-18",
        (),
    )
    assert [place.name for place in found.places(here)] == [
        "day=2026-11-18",
        "day=2026-11-19",
        "day=2026-11-20",
    ]


def test_without_snapshots_all_is_read_and_reported(tmp_path):
    """Nothing is taken for known that is not."""
    here = bronze(tmp_path, 16, 17, 20)
    found = snapshots.reading(here, snapshots.since_us(NOON_US, 1))
    assert (found.snapshot, found.after, found.missing) == (None, None, ("2026-11-16", "2026-11-17"))
    assert found.places(here) == [here] == EVERYTHING.places(here)


def test_a_hole_between_snapshot_and_look_back_is_read_and_reported(tmp_path):
    """The days without a snapshot are read event by event."""
    here = bronze(tmp_path, *range(14, 21), made=(14, 15))
    found = snapshots.reading(here, snapshots.since_us(NOON_US, 1))
    assert (found.after, found.missing) == ("2026-11-15", ("2026-11-16", "2026-11-17", "2026-11-18"))


def test_late_events_withdraw_the_snapshots_that_should_know_them(tmp_path):
    """Those of earlier days still hold, and the one that stands for removed days always does."""
    here = bronze(tmp_path, *range(14, 21), made=(14, 15, 16))
    snapshots.withdraw(here, "2026-11-16")
    assert snapshots.days_made(here) == ["2026-11-14", "2026-11-15"]
    snapshots.set_base_day(here, "2026-11-14")
    snapshots.withdraw(here, "2026-11-10")
    assert snapshots.days_made(here) == ["2026-11-14"]
    assert snapshots.reading(here, 0).after == "2026-11-14"


def test_a_snapshot_of_another_format_does_not_hold(tmp_path):
    """What an older version left out may be asked for now."""
    here = bronze(tmp_path, 14, 15, made=(14,))
    (snapshots.folder(here, "2026-11-14") / MADE).write_text('{"format": 0}')
    assert snapshots.days_made(here) == []


@given(day=st.dates())
def test_days_end_where_the_next_one_begins(day):
    """The last microsecond belongs to the day, the next one does not."""
    end_us = snapshots.end_us(day.isoformat())
    assert snapshots.day_of(end_us - 1) == day.isoformat()
    assert end_us % DAY_US == 0


def test_the_look_back_is_days_or_all():
    """Nothing else."""
    assert parse_look_back("3") == 3
    assert parse_look_back("all") is None


@pytest.mark.parametrize("text", ["0", "-1", "1.5", "week", "", "99999999"])
def test_other_look_backs_are_refused(text):
    """With the limits named."""
    with pytest.raises(UsageError, match="neither a number of days from 1 to 3650 nor all"):
        parse_look_back(text)
