"""Which snapshot an audit reads, what withdraws one, and what `--look-back` takes. No Spark."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spark_rollup.bronze import snapshots
from spark_rollup.bronze.snapshots import DAY_US, EVERYTHING
from spark_rollup.config import parse_look_back
from spark_rollup.errors import DamagedError, UsageError

NOON_US = snapshots.end_us("2026-11-20") - DAY_US // 2


def bronze(tmp_path: Path, *days: int, made: tuple[int, ...] = (), removed: str = "") -> Path:
    """Lay out a bronze directory with events of some days of November, and snapshots of some."""
    for day in days:
        (tmp_path / "events" / f"day=2026-11-{day:02}").mkdir(parents=True)
    listed = [f"2026-11-{day:02}" for day in made]
    note = {"format": snapshots.FORMAT, "days": listed, "removed": removed}
    (tmp_path / snapshots.NOTE).write_text(json.dumps(note))
    return tmp_path


def test_the_look_back_begins_at_midnight():
    """Whole days: today so far, and so many before it."""
    assert snapshots.since_us(NOON_US, 1) == snapshots.end_us("2026-11-18")
    assert snapshots.since_us(NOON_US, 2) == snapshots.end_us("2026-11-17")
    assert snapshots.since_us(NOON_US, None) == 0


def test_an_audit_reads_its_look_back_and_the_snapshots_before_it(tmp_path):
    """Not one of a day inside the look-back: what is inside is looked at event by event."""
    here = bronze(tmp_path, *range(17, 21), made=(17, 18, 19))
    found = snapshots.reading(here, snapshots.since_us(NOON_US, 1))
    assert found == snapshots.Reading(("2026-11-17", "2026-11-18"))
    assert [str(place).removeprefix(f"{here}/") for place in found.places(here)] == [
        "kept/day=2026-11-17",
        "kept/day=2026-11-18",
        "events/day=2026-11-19",
        "events/day=2026-11-20",
    ]


def test_without_snapshots_all_is_read_and_reported(tmp_path):
    """Nothing is taken for known that is not; a hole between snapshots is read event by event."""
    here = bronze(tmp_path, 16, 17, 20)
    found = snapshots.reading(here, snapshots.since_us(NOON_US, 1))
    assert (found.kept, found.missing) == ((), ("2026-11-16", "2026-11-17"))
    assert found.places(here) == [here] == EVERYTHING.places(here)
    found = snapshots.reading(bronze(tmp_path, made=(17,)), snapshots.since_us(NOON_US, 1))
    assert (found.kept, found.missing) == (("2026-11-17",), ("2026-11-16",))


def test_late_events_withdraw_the_snapshots_of_their_days_only(tmp_path):
    """Each day is kept by itself; those that stand for removed days always hold, and are always read."""
    here = bronze(tmp_path, *range(15, 21), made=(14, 15, 16, 17), removed="2026-11-14")
    snapshots.withdraw(here, "2026-11-10", "2026-11-15")
    assert snapshots.note(here).days == ("2026-11-14", "2026-11-16", "2026-11-17")
    assert snapshots.reading(here, 0) == snapshots.Reading(("2026-11-14",), "2026-11-14")
    assert snapshots.reading(here, NOON_US).missing == ("2026-11-15", "2026-11-18", "2026-11-19")


def test_a_note_that_cannot_be_read_is_no_empty_one(tmp_path):
    """Removed days would be forgotten with it."""
    note = bronze(tmp_path, 20) / snapshots.NOTE
    note.write_text("{")
    with pytest.raises(DamagedError, match=r"_kept\.json cannot be read"):
        snapshots.reading(tmp_path, 0)
    log = tmp_path / snapshots.KEPT / "_delta_log"
    log.mkdir(parents=True)
    (log / f"{0:020d}.json").touch()
    note.unlink()
    with pytest.raises(DamagedError, match=r"_kept\.json cannot be read"):
        snapshots.reading(tmp_path, 0)


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
