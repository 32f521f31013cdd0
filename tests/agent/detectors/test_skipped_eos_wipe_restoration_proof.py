"""Detector `skipped-eos-wipe`: the proof of old releases, by what a restoration gave back."""

from __future__ import annotations

from dataclasses import replace

import pytest

from agent.contract.events import Severity
from agent.inventory.model import Shape
from tests.support.scenario_case import (
    at,
    case,
    checkpoint,
    database,
    judge,
    mark,
    past,
    session,
    severities,
    store,
    task,
)

ID = "skipped-eos-wipe"


def old(
    restored: int = 2000,
    *,
    reopens: int = 2,
    released: float | None = 60,
    first=None,
    release: str = "2.0.0",
    entries: int | None = 7609,
    begins: int = 0,
):
    """7,609 puts flushed by 20 s, killed; opened again at 30 s, and a restoration gave `restored` puts back."""
    before = session(0, 20, puts=7609)
    before.entries_at_release = entries
    after = session(30, released, first=first, offset_at_open=begins)
    after.reopens, after.restored_puts = reopens, 7609 + restored
    files = database(puts=7609 + restored)
    return case(task(store([files], [before, after])), release=release, guarantee="exactly_once")


def test_restoration_gave_back_less():
    """Fewer puts than there were live entries: compaction keeps each key, so the rest was never committed."""
    assert severities(ID, old(7608)) == [Severity.CRITICAL]
    assert severities(ID, old(0)) == [Severity.CRITICAL]
    assert severities(ID, old(7609)) == [Severity.WARNING]


@pytest.mark.twin_of(ID, "the stores of its task are being wiped")
def test_other_stores_of_the_task_are_being_wiped():
    """Store after store, on a slow volume for longer than ten seconds: this one may be next (found by the hunt)."""
    one = old(0, released=None)
    other = store(name="t")
    other.past += (past(95, shape=Shape.OWNER_WALK),)
    one.task.stores["t"] = other
    assert severities(ID, replace(one, now_us=at(104.9))) == []
    assert severities(ID, replace(one, now_us=at(105))) == [Severity.CRITICAL]


@pytest.mark.parametrize(("ended", "shape"), [(29, Shape.OWNER_WALK), (95, Shape.CLEANER_WALK)])
def test_wipes_that_are_not_of_this_opening(ended, shape):
    """What went before the opening, or by another hand, says nothing of what comes."""
    one = old(0, released=None)
    other = store(name="t")
    other.past += (past(ended, shape=shape),)
    one.task.stores["t"] = other
    assert severities(ID, replace(one, now_us=at(96))) == [Severity.CRITICAL]


def test_restoration_from_an_offset_gives_back_the_rest():
    """One that goes on from an entry puts what came after it, not all that there is."""
    assert severities(ID, old(2000, begins=1)) == [Severity.WARNING]


def test_compacted_changelog_gives_back_less():
    """7,609 puts on 2,000 keys: a compacted changelog gives back 2,000, and all was committed."""
    assert severities(ID, old(2000, entries=2000)) == [Severity.WARNING]
    assert severities(ID, old(2000, entries=None)) == [Severity.WARNING]


def test_restoration_must_be_over():
    """One reopen is the beginning of a restoration, two are its end."""
    assert severities(ID, old(reopens=1)) == [Severity.WARNING]
    assert severities(ID, old(reopens=3)) == [Severity.CRITICAL]


@pytest.mark.parametrize(
    ("release", "offset", "named", "said"),
    [
        ("4.1.2", None, False, 0),
        ("4.1.2", None, True, 1),  # the entry in force was not seen, but there is a changelog
        ("4.1.2", -4, False, 1),
        ("2.5.1", None, False, 0),
        ("2.5.0", None, False, 1),
        (None, None, False, 1),
    ],
)
def test_opened_without_an_entry(release, offset, named, said):
    """Where no bug skips the wipe, only a store without a changelog is opened so."""
    sessions = [session(0, 20, puts=500), session(30, 60, offset_at_open=offset)]
    entries = [checkpoint(61, 7)] if named else []
    assert (
        len(
            judge(ID, case(task(store([database(puts=500)], sessions), checkpoints=entries), release=release))
        )
        == said
    )


def test_only_old_releases_show_it_by_reopens():
    """Later releases have no bulk-load mode: their reopens mean nothing."""
    assert severities(ID, old(release="4.1.2")) == [Severity.WARNING]


def test_crash_in_a_restoration_after_a_wipe():
    """Up to 2.5 a wipe with an odd number of reopens is a restoration that was cut off: nothing uncommitted."""
    one = old()
    before = one.task.stores["s"].sessions[0]
    before.wiped, before.reopens = True, 1
    assert judge(ID, one) == []
    before.reopens = 2
    assert len(judge(ID, one)) == 1
    before.wiped, before.reopens = False, 1
    assert len(judge(ID, one)) == 1


def test_role_is_reported_only_where_it_is_unknown():
    """A proved active task is not said to be a standby perhaps."""

    def modern(standbys: int):
        sessions = [session(0, 20, puts=500), session(30, 60, offset_at_open=1)]
        return judge(ID, case(task(store([database(puts=500)], sessions)), standbys=standbys))[0]

    assert "role unknown" not in modern(0).summary
    assert "role unknown" in modern(1).summary


def test_first_checkpoint_with_an_unknown_offset():
    """An unknown offset after the restart has given nothing back."""
    sessions = [session(0, 20, puts=4), session(30, first=mark(40, -4, 4), offset_at_open=1)]
    one = task(store([database(puts=4)], sessions), checkpoints=[checkpoint(40, -4)])
    verdict = judge(ID, case(one, now=400))[0]
    assert verdict.severity is Severity.CRITICAL
    assert "advanced by 0" in verdict.evidence[-1].what


def test_chain_in_order():
    """Opening, checkpoint of the session or its absence, release, reopening."""
    verdict = judge(ID, old())[0]
    assert [step.at_us for step in verdict.evidence] == [at(0), at(0), at(20), at(30)]
    assert verdict.opened_at_us == at(30)


def test_fact_that_would_decide_more():
    """The number of standbys is asked for only where it matters: up to 2.5 the checkpoint tells the role."""

    def missing(release: str):
        sessions = [session(0, 20, puts=500), session(30, 60, offset_at_open=1)]
        files = database(puts=500)
        return judge(ID, case(task(store([files], sessions)), standbys=None, release=release))[
            0
        ].missing_facts

    assert missing("4.1.2") == ("num_standby_replicas",)
    assert missing("2.0.0") == ()
