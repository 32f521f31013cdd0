"""Detector `unrestored-store`: how the opening is told, and every session is judged."""

from __future__ import annotations

import pytest

from agent.contract.events import Confidence, Severity
from agent.inventory.model import Session, Shape
from agent.judging.base import TaskCase
from tests.support.scenario_case import (
    at,
    case,
    checkpoint,
    database,
    judge,
    mark,
    past,
    session,
    store,
    task,
)

ID = "unrestored-store"


def skipped(*, created: bool = True, wiped: bool = False, reopens: int = 0, base: int | None = None):
    """A session whose only checkpoint claims 5,000 with 50 puts."""
    one = session(10, created=created, offset_at_open=base, last=mark(20, 5000, 50))
    one.wiped, one.reopens = wiped, reopens
    return one


def dossier(*held: Session) -> TaskCase:
    """A release with KAFKA-7672."""
    return case(task(store([database(puts=50)], held)), release="2.0.1", guarantee="at_least_once")


def told(one: Session) -> list[str]:
    """The first two steps of the chain."""
    return [step.what for step in judge(ID, dossier(one))[0].evidence][:2]


def test_how_it_was_opened():
    """Recreated by a wipe, made for the first time, or found there; with the offset it continues from."""
    assert told(skipped(wiped=True))[0] == "opened, wiped by its owner and recreated"
    assert told(skipped())[0] == "a new store was made, to continue from offset 0"
    assert told(skipped(created=False, base=100))[0] == "store opened, to continue from offset 100"


def test_how_much_of_the_pair():
    """One reopen is half of the pair that a restoration makes."""
    assert told(skipped())[1].endswith(": none")
    assert told(skipped(reopens=1))[1].endswith(": half of the pair")
    assert judge(ID, dossier(skipped(reopens=2))) == []


def test_reopens_that_leave_no_trace():
    """Where RocksDB drops old logs, or keeps them elsewhere, nobody can tell a restoration from none (found live)."""
    one = dossier(skipped())
    assert one.task is not None
    one.task.stores["s"].databases[""].all_reopens = False
    (verdict,) = judge(ID, one)
    assert (verdict.severity, verdict.confidence) == (Severity.INFO, Confidence.UNKNOWN)
    assert "unknown" in verdict.summary
    assert "keep few or no old LOG files" in verdict.evidence[1].what


def test_manifest_that_was_not_read():
    """What was put is not known: that it is little says nothing."""
    for one in (dossier(skipped()), abandoned(5)):
        assert len(judge(ID, one)) == 1
        assert one.task is not None
        one.task.stores["s"].databases[""].manifest_problem = "MANIFEST-000005: denied: unreadable"
        assert judge(ID, one) == []


def test_standbys_that_are_not_configured_are_possible():
    """Without being told that there are none it is suspected, and says what it assumes."""
    one = store([database(puts=50)], [skipped()])
    (verdict,) = judge(ID, case(task(one), release="2.0.1", guarantee="at_least_once", standbys=None))
    assert (verdict.severity, verdict.confidence) == (Severity.WARNING, Confidence.SUSPECTED)
    assert verdict.missing_facts == ("num_standby_replicas",)
    assert "assuming the default num.standby.replicas=0" in verdict.evidence[-1].what


def test_standbys_do_not_matter_after_a_wipe():
    """Only an owner wipes: a copy that was wiped is active, however many standbys there are."""
    one = store([database(puts=50)], [skipped(wiped=True)])
    (verdict,) = judge(ID, case(task(one), release="2.0.1", guarantee="exactly_once", standbys=None))
    assert "num_standby_replicas" not in verdict.missing_facts


def test_sessions_in_order_hide_nothing():
    """A session of another incarnation and one in order stand before the bad one; two bad ones are told once."""
    other, fine = session(0, 1, identity="identity-2", last=mark(0.5, 5000, 50)), session(2, 3)
    assert [x.opened_at_us for x in judge(ID, dossier(other, fine, skipped()))] == [at(10)]
    assert len(judge(ID, dossier(skipped(), skipped()))) == 1


def test_how_it_began_must_be_known():
    """A session that was going on at the first look may have been restored before."""
    one = skipped()
    one.attached = True
    assert judge(ID, dossier(one)) == []


def test_named_by_its_store():
    """The incarnation is the subject, so that a second look tells nothing new."""
    assert judge(ID, dossier(skipped()))[0].subject == "identity-1"


def abandoned(*ended: float, segment: str | None = None):
    """KAFKA-16017: wiped by its owner at these times, recreated at 30 s, closed claiming 5,000 with 50 puts."""
    new = session(30, 35, created=True, first=mark(34, 5000, 50))
    one = store([database(puts=50, born=30)], [new])
    one.past += tuple(
        past(x, shape=Shape.OWNER_WALK, puts=5000 + n, segment=segment) for n, x in enumerate(ended)
    )
    return case(task(one), release="3.6.1", guarantee="exactly_once_v2")


def test_newest_incarnation_before_the_opening():
    """Of several earlier incarnations the last one that ended before the opening counts; segments do not."""
    assert judge(ID, abandoned(20, 25, 40))[0].evidence[0].at_us == at(25)
    assert len(judge(ID, abandoned(30))) == 1
    assert judge(ID, abandoned(40)) == []
    assert judge(ID, abandoned(25, segment="s.0")) == []


@pytest.mark.twin_of(ID, "an old offset was carried over (resurrected-checkpoint)")
def test_an_offset_carried_over_has_its_own_detector():
    """A new store that goes on from the offset of a deleted one: its puts equal the advance, with or without a mode."""
    for reopens, commits in ((0, ()), (1, (at(20), at(32), at(44), at(56)))):
        new = session(11, created=True, first=mark(15, 12_200, 200))
        new.reopens, new.bulk_load_commits = reopens, commits
        one = store([database(puts=200, born=11)], [new])
        one.past += (past(10, puts=12_000, entries_low=12_000),)
        facts = [checkpoint(5, 12_000, ended=9, deleted=True)]
        case_ = case(task(one, checkpoints=facts), release="2.1.1", guarantee="at_least_once")
        assert judge(ID, case_) == []
        case_.task.checkpoints = ()
        assert len(judge(ID, case_)) == 1
