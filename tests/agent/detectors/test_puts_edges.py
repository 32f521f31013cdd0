"""Offsets against puts: the arithmetic under several detectors."""

from __future__ import annotations

from typing import Any

import pytest

from agent.detectors.puts import (
    base_offset,
    continued_from,
    flushed_beyond,
    held_before,
    is_far_ahead,
    is_real,
    puts_per_record,
    transaction_markers,
)
from agent.inventory.model import Session, Store, Task
from agent.inventory.settings import ApplicationSettings, Setting
from tests.support.scenario_case import at, checkpoint, database, mark, past, session, store, task


@pytest.mark.parametrize(("offset", "real"), [(None, False), (-4, False), (0, False), (1, True)])
def test_real_offsets(offset, real):
    """Only an entry above zero says that something was applied."""
    assert is_real(offset) is real


@pytest.mark.parametrize(("offset", "base"), [(None, 0), (-4, 0), (-1, 0), (0, 0), (7, 7)])
def test_base(offset, base):
    """A restoration never starts below zero."""
    assert base_offset(offset) == base


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


@pytest.mark.parametrize(
    ("advance", "puts", "markers", "far"),
    [(100, 0, 0, False), (101, 0, 0, True), (201, 50, 50, True), (200, 50, 50, False),
     (2000, 1800, 0, False), (2000, 1799, 0, True)],
)  # fmt: skip
def test_far_ahead(advance, puts, markers, far):
    """A hundred records, or a tenth of the advance, are noise."""
    assert is_far_ahead(advance, puts, markers) is far


def test_flushed_beyond():
    """Counted from the last checkpoint, else from the opening; never below zero."""
    assert flushed_beyond(session(0, 9, puts=70, last=mark(5, 0, 50), puts_at_open=10)) == 20
    assert flushed_beyond(session(0, 9, puts=70, puts_at_open=10)) == 60
    assert flushed_beyond(session(0, 9, puts=40, last=mark(5, 0, 50))) == 0


def test_puts_per_record():
    """The first session of an incarnation tells; too short or not from the beginning, one is assumed."""
    twice = session(0, 9, created=True, last=mark(5, 101, 204))
    assert puts_per_record(store([], [twice]), session(10)) == 2.0
    assert puts_per_record(store(), twice) == 2.0
    fewer = session(0, 9, created=True, last=mark(5, 101, 51))
    assert puts_per_record(store(), fewer) == 1.0
    short = session(0, 9, created=True, last=mark(5, 100, 202))
    assert puts_per_record(store(), short) == 1.0
    later = session(0, 9, created=False, last=mark(5, 101, 204))
    assert puts_per_record(store(), later) == 1.0
    filled = session(0, 9, created=True, last=mark(5, 101, 204), puts_at_open=1)
    assert puts_per_record(store(), filled) == 1.0
    carried = session(0, 9, created=True, last=mark(5, 101, 204), offset_at_open=1)
    assert puts_per_record(store(), carried) == 1.0
    assert puts_per_record(store(), session(0, created=True)) == 1.0


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
