"""A law yields to a detector of a known fault that reports the same damage: one cause, one finding."""

from __future__ import annotations

from dataclasses import replace

import pytest

from agent.contract.events import Confidence, Level, Severity, Status
from agent.detectors import DETECTORS
from agent.engine.detector_runner import give_way, laws_last
from agent.findings.ledger import Ledger, Place
from agent.judging.base import DetectorMeta, Evidence, Kind, Verdict
from tests.support.laws import LAWS, broken, lawful
from tests.support.scenario import KEY_VALUE, Scenario

INFO, WARNING, CRITICAL = Severity.INFO, Severity.WARNING, Severity.CRITICAL
LAW, OTHER = Place("law", "app", "0_0"), Place("other", "app", "0_0")


def meta(place: Place) -> DetectorMeta:
    return DetectorMeta(place.detector, "title", "act")


def verdict(severity: Severity = WARNING, store: str | None = "s", level: Level | None = None) -> Verdict:
    steps = (Evidence(5, "seen", "app/0_0"),)
    return Verdict("x", 5, "it is so", steps, severity, Confidence.SUSPECTED, store, "id-1", level)


def settle(ledger: Ledger, place: Place, *verdicts: Verdict) -> None:
    ledger.settle(meta(place), place, verdicts, 10, frozenset({"id-1"}))


def left(ledger: Ledger, said: Verdict) -> list[Verdict]:
    kept, closed = give_way(ledger, LAW, [said], {"other"}, 20)
    assert closed == []
    return kept


# -- the rule -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("place", "other", "said", "yields"),
    [
        (OTHER, verdict(), verdict(), True),
        (OTHER, verdict(CRITICAL), verdict(), True),
        (OTHER, verdict(store=None), verdict(), True),  # of the whole task
        (OTHER, verdict(), verdict(store=None), True),
        (OTHER, verdict(), verdict(CRITICAL), False),  # it is surer than the other one
        (OTHER, verdict(store="t"), verdict(), False),
        (OTHER, verdict(INFO), verdict(INFO), False),
        (
            OTHER,
            verdict(CRITICAL, level=Level.EXPOSURE),
            verdict(),
            False,
        ),  # no damage, but what may become one
        (OTHER, verdict(), replace(verdict(), gives_way=False), False),  # it is about something else
        (Place("other", "app", "0_1"), verdict(), verdict(), False),
        (Place("later", "app", "0_0"), verdict(), verdict(), False),  # of two laws only the second yields
    ],
)
def test_the_same_damage_at_least_as_severe(place, other, said, yields):
    """Damage of the same store, or of the whole task, that a detector judged before reports."""
    ledger = Ledger()
    assert left(ledger, said) == [said]
    settle(ledger, place, other)
    assert left(ledger, said) == ([] if yields else [said])


def test_it_closes_what_it_had_said_first():
    """The other detector needed longer: from then on there is one finding, and the law's says where to look."""
    ledger = Ledger()
    settle(ledger, LAW, verdict())
    settle(ledger, OTHER, verdict(CRITICAL))
    kept, (closed,) = give_way(ledger, LAW, [verdict()], {"other"}, 20)
    (known,) = ledger.open_about("app", "0_0")
    assert kept == []
    assert (known.detector, closed.detector, closed.status, closed.resolved_at_us) == (
        "other",
        "law",
        Status.RESOLVED,
        20,
    )
    assert (closed.evidence[-1].what, closed.evidence[-1].where) == (
        "reported by other from here on",
        f"finding {known.id}",
    )
    assert ledger.closed_since(20) == [closed]
    assert set(ledger.pending("app", "0_0")) == {"other"}


def test_what_was_closed_stays_closed():
    """The law still holds, and is not told again when the other finding ends."""
    ledger = Ledger()
    settle(ledger, LAW, verdict())
    settle(ledger, OTHER, verdict(CRITICAL))
    give_way(ledger, LAW, [verdict()], {"other"}, 20)
    ledger.settle(meta(OTHER), OTHER, [], 30, frozenset({"id-2"}))
    kept, closed = give_way(ledger, LAW, [verdict()], {"other"}, 40)
    assert (len(kept), closed) == (1, [])
    assert ledger.settle(meta(LAW), LAW, kept, 40, frozenset({"id-1"})) == []


# -- in the registry, and in an agent -------------------------------------------------------------------------


def test_laws_are_judged_last():
    """What they yield to is settled before, whatever the order of the list."""
    mixed = (*LAWS, *(x for x in DETECTORS if x not in LAWS))
    assert [x.meta.is_law for x in laws_last(mixed)] == sorted(x.meta.is_law for x in mixed)
    assert tuple(laws_last(mixed))[-len(LAWS) :] == LAWS


@pytest.mark.parametrize("law", LAWS, ids=lambda x: x.meta.id)
def test_a_law_names_no_fault(law):
    """It is about damage, or the moment of it where nothing is left to be damaged, and no issue is behind it."""
    assert (law.meta.level, law.meta.upstream) == (Level.DAMAGE, ())
    assert law.meta.kind is (Kind.EVENT if law.meta.id == "deleted-while-held" else Kind.DAMAGE)


def torn(**more) -> Scenario:
    """A store that is recreated beside its old checkpoint."""
    run = lawful("3.9.2", **{"stores": {"s": KEY_VALUE}, "detectors": DETECTORS, **more})
    app = run.start()
    app.opens("0_0")
    app.restores("0_0", 3000)
    app.stops({"0_0": 3000})
    run.wait(60)
    run.start().delete_tree("app/0_0/rocksdb")
    run.task("0_0").databases.clear()
    run.wait(10)
    run.start().opens("0_0")
    run.wait(10)
    return run


def test_one_finding_where_the_fault_is_known():
    """The detector of the known fault, and no law."""
    run = torn()
    assert run.only("resurrected-checkpoint").severity is CRITICAL
    assert not {x.meta.id for x in LAWS} & set(broken(run))


def test_the_law_where_the_fault_is_unknown():
    """Without that detector the law tells the same damage."""
    run = torn(detectors=tuple(x for x in DETECTORS if x.meta.id != "resurrected-checkpoint"))
    assert run.only("offset-beyond-durable").severity is CRITICAL
    assert replace(run.only("offset-beyond-durable"), id="").upstream == ()
