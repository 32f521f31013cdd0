"""Detector `changelog-truncated`: which offsets are compared, and how long one must stand."""

from __future__ import annotations

from typing import Any

import pytest

from agent.contract.events import Severity
from tests.support.out_of_range import ALOS
from tests.support.scenario_case import (
    at,
    case,
    checkpoint,
    database,
    judge,
    mark,
    session,
    severities,
    store,
    task,
)

ID = "changelog-truncated"


def dossier(
    ends: int = 3000,
    *,
    offset_at_open: int | None = 5000,
    puts: int = 5000,
    reopened: tuple[float, ...] = (),
    release: str | None = "4.1.2",
    **more: Any,
) -> Any:
    """A session from 10 s to 50 s that trusted `offset_at_open` and wrote `ends` at 49 s."""
    held = session(
        10, 50, puts=puts, first=mark(49, ends, puts), offset_at_open=offset_at_open, puts_at_open=puts
    )
    base = database(puts=puts, born=-100)
    base.reopened_us = tuple(at(x) for x in reopened)
    return case(task(store([base], [held])), release=release, **more)


def test_one_is_the_change_of_meaning():
    """From 2.6 on the offset is one lower for the same record; "unknown" is no offset."""
    assert judge(ID, dossier(4999)) == []
    assert severities(ID, dossier(4998)) == [Severity.CRITICAL]
    assert severities(ID, dossier(0)) == [Severity.CRITICAL]
    assert judge(ID, dossier(-4)) == []


def test_an_opening_that_trusted_nothing():
    """Without an offset in force the replay begins at the start."""
    assert judge(ID, dossier(offset_at_open=None)) == []
    assert judge(ID, dossier(offset_at_open=-4)) == []


def test_store_that_held_nothing():
    """Where nothing was ever flushed there is nothing to be ahead with: a warning."""
    assert severities(ID, dossier(puts=0)) == [Severity.WARNING]


@pytest.mark.parametrize(("reopened", "said"), [((10,), 1), ((10, 30), 0), ((-50, 10), 1), ((10, 49.5), 1)])
def test_reopening_in_between(reopened, said):
    """The opening itself leaves one old log; another one before the lower offset means that it was opened again."""
    assert len(judge(ID, dossier(reopened=reopened))) == said


def test_old_logs_that_are_not_kept():
    """Where RocksDB keeps few old logs an opening may have left no trace."""
    one = dossier()
    one.task.stores["s"].databases[""].all_reopens = False
    assert judge(ID, one) == []


@pytest.mark.twin_of("changelog-truncated", "the store was opened again meanwhile, and is replayed")
def test_store_that_was_wiped():
    """Up to 2.5 a store is wiped within the session."""
    one = dossier()
    one.task.stores["s"].sessions[0].wiped = True
    assert judge(ID, one) == []


@pytest.mark.parametrize("segmented", [False, True])
def test_highest_offset_of_all_segments(segmented):
    """An opening of a windowed store trusts one segment, whatever the others hold."""
    one = dossier(6000, release="4.3.1")
    held = one.task.stores["s"].sessions[0]
    one.task.stores["s"].segmented = segmented
    held.stored_offset_at_open, held.stored_offset = 3599, 2000
    assert len(judge(ID, one)) == (0 if segmented else 1)


def test_global_stores_have_no_changelog():
    """A global store is read from its topic, and wiped when that is out of range."""
    one = dossier()
    one.task.id = "global"
    assert judge(ID, one) == []


def standing(*, until: float = 140, held_at: float = 5, exactly: str = ALOS, **more: Any) -> Any:
    """A checkpoint of 5000 at `held_at`, and one of 3000 at 30 s, after an opening at 20 s that trusted none."""
    facts = [
        checkpoint(held_at, 5000, ended=10, deleted=True),
        checkpoint(30, 3000, ended=None if until > 130 else until),
    ]
    sessions = [session(0, 15, puts=5000), session(20)]
    base = database(puts=5000, born=more.pop("born", -1))
    return case(task(store([base], sessions), checkpoints=facts), guarantee=exactly, now=140, **more)


def test_how_long_it_stays():
    """A minute, or two commit intervals."""
    assert severities(ID, standing()) == [Severity.WARNING]
    assert len(judge(ID, standing(until=90))) == 1
    assert judge(ID, standing(until=89.9)) == []
    assert judge(ID, standing(told={"commit_interval_ms": 60_000})) == []
    assert len(judge(ID, standing(told={"commit_interval_ms": 55_000}))) == 1


def test_standing_without_the_release():
    """Nobody can tell whether the release wipes what is out of range."""
    assert judge(ID, standing(release=None)) == []


@pytest.mark.twin_of("changelog-truncated", "the store was made since")
def test_standing_on_another_incarnation():
    """A store made after the higher checkpoint never held it."""
    assert judge(ID, standing(born=6)) == []
    other = standing()
    other.task.checkpoints[0].incarnation = 7
    assert judge(ID, other) == []


def test_checkpoint_without_owner():
    """What was written while nobody held the store, or stood only until it was let go, is no end of a replay."""
    one = standing()
    one.task.stores["s"].sessions[1].released_us = at(31)
    assert judge(ID, one) == []


def test_chain_of_the_verdict():
    """Both offsets with their times; dated to the lower one."""
    verdict = judge(ID, standing())[0]
    assert [(step.at_us, step.what) for step in verdict.evidence] == [
        (at(5), "offset 5000"),
        (at(30), "offset 3000, the same store, not wiped"),
    ]
    assert (verdict.opened_at_us, verdict.store, verdict.identity) == (at(30), "s", "identity-1")


def test_a_store_in_order_hides_no_other():
    """Every store is judged for itself."""
    one = dossier()
    one.task.stores = {"a": store([database()], [session(0)], name="a"), **one.task.stores}
    assert [verdict.store for verdict in judge(ID, one)] == ["s"]


PUT_BACK = pytest.mark.twin_of(ID, "an older copy of the checkpoint was put back")


@pytest.mark.parametrize(
    ("written", "held", "said"),
    [
        pytest.param(40, (0, 45), 1, id="written while it was held"),
        pytest.param(45.5, (0, 45), 1, id="written by the close, up to 2.1 after it let go"),
        pytest.param(50, (0, 45), 0, id="a copy with times of its own", marks=PUT_BACK),
        pytest.param(5, (0, 60), 0, id="a copy with the times of the files", marks=PUT_BACK),
        pytest.param(40, (42, None), 0, id="nobody is known to have held it", marks=PUT_BACK),
    ],
)
def test_checkpoint_that_was_put_back(written, held, said):
    """An older state of the volume comes back in place: no process has written the lower offset."""
    facts = [checkpoint(30, 5000, ended=written), checkpoint(written, 3000)]
    one = task(store([database(puts=5000, born=-1)], [session(*held, puts=5000)]), checkpoints=facts)
    assert len(judge(ID, case(one, guarantee=ALOS, now=140))) == said


@pytest.mark.twin_of(ID, "a standby of up to 2.4 has read the same records again")
def test_standby_that_reads_again():
    """Up to 2.4 it begins where its session began, and what it puts is flushed; later ones go on from there."""
    for release, said in (("2.3.1", []), ("3.9.2", [Severity.CRITICAL])):
        made = database(puts=5600, born=-1, flushed=[(5000, 9), (5600, 29)])
        facts = [checkpoint(10, 5000, ended=30), checkpoint(30, 4500)]
        held = session(0, puts=5600, offset_at_open=4000)
        one = task(store([made], [held]), checkpoints=facts)
        assert severities(ID, case(one, release=release, guarantee=ALOS)) == said


def opened_again(
    closed: bool | None = True, *, at_open: int | None = 5000, offset: int = 5100, puts: int = 5202
):
    """A session whose opening trusted an offset, with 5,000 puts on disk, and so many at its last checkpoint."""
    last = mark(30, offset, puts)
    one = session(20, 40, puts=puts, offset_at_open=at_open, puts_at_open=5000, last=last)
    one.closed = closed
    return case(task(store([database(puts=puts)], [one])))


LATE = "before a clean close a flush seems to have come earlier"
NOTHING = "no offset was trusted, or none is said"
ENOUGH = "the changelog may have given as much"


@pytest.mark.parametrize(
    "one",
    [
        pytest.param(opened_again(closed=None), marks=pytest.mark.twin_of(ID, LATE)),
        pytest.param(opened_again(closed=False), marks=pytest.mark.twin_of(ID, LATE)),
        pytest.param(opened_again(at_open=None), marks=pytest.mark.twin_of(ID, NOTHING)),
        pytest.param(opened_again(at_open=-4), marks=pytest.mark.twin_of(ID, NOTHING)),
        pytest.param(opened_again(offset=-4), marks=pytest.mark.twin_of(ID, NOTHING)),
        pytest.param(opened_again(puts=5100), marks=pytest.mark.twin_of(ID, "hardly anything was put since")),
        pytest.param(opened_again(puts=5201), marks=pytest.mark.twin_of(ID, ENOUGH)),
    ],
)
def test_puts_that_the_changelog_may_have_given(one):
    """100 offsets, and one by the change of their meaning, explain 101 puts; a hundred more may be late."""
    assert len(judge(ID, opened_again())) == 1
    assert judge(ID, one) == []
