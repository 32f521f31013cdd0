"""The ledger: verdicts over time become findings with a stable id, each told when it changes and not again."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.contract.events import Affected, Confidence, Level, Severity, Status
from agent.findings.ledger import CLOSED_KEPT, Ledger, Place
from agent.judging.base import DetectorMeta, Evidence, Kind, Upstream, Verdict
from agent.layout.releases import ReleaseRange

PLACE = Place("d", "app", "0_0")
INFO, WARNING, CRITICAL = Severity.INFO, Severity.WARNING, Severity.CRITICAL


def meta(kind: Kind = Kind.CONDITION) -> DetectorMeta:
    upstream = (Upstream("KAFKA-1", (ReleaseRange(),), "never"),)
    return DetectorMeta("d", "title", "act", Level.EXPOSURE, kind=kind, upstream=upstream)


def verdict(
    subject: str = "x", severity: Severity = WARNING, *, at_us: int = 5, identity: str | None = "id-1", **more
) -> Verdict:
    step = Evidence(at_us, f"{severity.value} seen", "app/0_0")
    fields = {
        "subject": subject, "opened_at_us": at_us, "summary": f"{subject} is {severity.value}",
        "evidence": (step,), "severity": severity, "confidence": Confidence.SUSPECTED, "identity": identity,
        **more,
    }  # fmt: skip
    return Verdict(**fields)


def settle(
    ledger: Ledger,
    *verdicts: Verdict,
    kind: Kind = Kind.CONDITION,
    now: int = 10,
    identities=frozenset({"id-1"}),
):
    return ledger.settle(meta(kind), PLACE, verdicts, now, identities)


# -- life ---------------------------------------------------------------------------------------------------


def test_opens_with_everything_a_user_sees():
    """A first verdict opens a finding that takes what the verdict leaves out from the detector."""
    ledger = Ledger()
    (finding,) = settle(ledger, verdict(store="s"))
    assert finding.status is Status.OPEN
    assert (finding.detector, finding.application_id, finding.task_id, finding.store) == (
        "d",
        "app",
        "0_0",
        "s",
    )
    assert (finding.level, finding.upstream, finding.next_action) == (Level.EXPOSURE, ("KAFKA-1",), "act")
    assert (finding.opened_at_us, finding.resolved_at_us, finding.affected) == (5, None, Affected.POSSIBLY)
    assert ledger.open_findings() == ledger.findings() == [finding]


def test_verdict_overrides_the_detector():
    """Level, issues and next action of the verdict win."""
    own = verdict(level=Level.DAMAGE, upstream=("KAFKA-2",), next_action="other")
    (finding,) = settle(Ledger(), own)
    assert (finding.level, finding.upstream, finding.next_action) == (Level.DAMAGE, ("KAFKA-2",), "other")


OPEN, OVER = Status.OPEN, Status.RESOLVED
V, NAMELESS, HERE, GONE = [verdict()], [verdict(identity=None)], frozenset({"id-1"}), frozenset({"id-2"})


@pytest.mark.parametrize(
    ("kind", "turns"),
    [
        # the same condition again is the same finding, open
        (Kind.CONDITION, [(V, HERE, OPEN), ([], HERE, OVER), (V, HERE, OPEN), ([], HERE, OVER)]),
        # an event is told once and is over, also when it is not judged any more
        (Kind.EVENT, [(V, HERE, OVER), ([], HERE, None), (V, HERE, None)]),
        # damage stays open while the incarnation that it names is there, whatever the detector says, and opens again
        # when that is put back; what is still told of one that is gone opens nothing
        (
            Kind.DAMAGE,
            [
                (V, HERE, OPEN),
                ([], HERE, None),
                ([], None, None),
                ([], GONE, OVER),
                (V, GONE, None),
                (V, None, None),
                (V, HERE, OPEN),
                (V, HERE, None),
                ([], GONE, OVER),
                (V, HERE, OPEN),
            ],
        ),
        # damage that names none cannot be seen to be replaced
        (Kind.DAMAGE, [(NAMELESS, HERE, OPEN), ([], frozenset(), None)]),
    ],
)
def test_a_finding_lives_as_its_kind_does(kind, turns):
    """Of each judgement what it changes: one finding, with the same id and the time at which it ended."""
    ledger, ids = Ledger(), set()
    for now, (said, identities, told) in enumerate(turns, 10):
        changed = settle(ledger, *said, kind=kind, now=now, identities=identities)
        assert [x.status for x in changed] == ([] if told is None else [told])
        assert [x.resolved_at_us for x in changed if x.status is OVER] == [now] * (told is OVER)
        assert [x.resolved_at_us for x in changed if x.status is OPEN] == [None] * (told is OPEN)
        assert [x for x in changed if x.status is OPEN] == (ledger.open_findings() if told is OPEN else [])
        ids |= {x.id for x in changed}
    assert len(ids) == 1


def test_a_store_that_is_often_put_back_says_so_once():
    """The evidence ends with what was seen last, and does not grow."""
    ledger = Ledger()
    for now in range(20):
        settle(ledger, verdict(), kind=Kind.DAMAGE, now=3 * now)
        settle(ledger, kind=Kind.DAMAGE, now=3 * now + 1, identities=GONE)
    (finding,) = settle(ledger, verdict(), kind=Kind.DAMAGE, now=100)
    assert [x.what for x in finding.evidence] == [
        "warning seen",
        "the damaged store is back on disk (RocksDB IDENTITY id-1)",
    ]


def test_exposure_of_a_damage_detector_lasts_while_it_is_reported():
    """What is told before there is damage ends with its verdict, may come again, and may calm down."""
    damage = replace(meta(Kind.DAMAGE), level=Level.DAMAGE)
    ledger = Ledger()
    before = verdict(severity=CRITICAL, level=Level.EXPOSURE)

    def judged(*verdicts: Verdict) -> tuple[Status, Severity]:
        ledger.settle(damage, PLACE, verdicts, 10, frozenset({"id-1"}))
        (finding,) = ledger.findings()
        return finding.status, finding.severity

    assert judged(before) == (Status.OPEN, CRITICAL)
    assert judged() == (Status.RESOLVED, CRITICAL)
    assert judged(before) == (Status.OPEN, CRITICAL)
    assert judged(replace(before, severity=WARNING)) == (Status.OPEN, WARNING)


# -- change -------------------------------------------------------------------------------------------------


def test_escalation_keeps_id_and_history():
    """What decided earlier stays in the evidence, in time order."""
    ledger = Ledger()
    (first,) = settle(ledger, verdict(at_us=5))
    louder = verdict(severity=CRITICAL, at_us=9, confidence=Confidence.CONFIRMED, missing_facts=("f",))
    (second,) = settle(ledger, louder, kind=Kind.CONDITION)
    assert (second.id, second.opened_at_us) == (first.id, 5)
    assert (second.severity, second.confidence, second.missing_facts) == (
        CRITICAL,
        Confidence.CONFIRMED,
        ("f",),
    )
    assert [step.what for step in second.evidence] == ["warning seen", "critical seen"]
    assert second.summary == louder.summary


def test_numbers_in_a_sentence_are_no_change():
    """A summary that counts up does not report the finding again; another severity, confidence or store does."""
    ledger = Ledger()
    settle(ledger, verdict())
    assert settle(ledger, replace(verdict(), summary="now 600 puts")) == []
    assert len(settle(ledger, replace(verdict(), confidence=Confidence.CONFIRMED))) == 1


# -- identity -----------------------------------------------------------------------------------------------


def test_id_depends_on_what_and_where_and_when():
    """Detector, application, task, store, incarnation and opening time make the id; nothing else does."""
    (base,) = settle(Ledger(), verdict())
    (same,) = settle(Ledger(), replace(verdict(), summary="other words", severity=INFO), now=99)
    assert same.id == base.id
    others = [
        settle(Ledger(), verdict(store="t"))[0],
        settle(Ledger(), verdict(identity="id-2"))[0],
        settle(Ledger(), verdict(at_us=6))[0],
        Ledger().settle(meta(), Place("d", "app", "0_1"), [verdict()], 10)[0],
        Ledger().settle(meta(), Place("d", "other", "0_0"), [verdict()], 10)[0],
        Ledger().settle(replace(meta(), id="e"), PLACE, [verdict()], 10)[0],
    ]
    assert len({base.id, *(x.id for x in others)}) == 7


def test_two_subjects_are_two_findings():
    """Episodes of one detector on one task are kept apart."""
    ledger = Ledger()
    assert len(settle(ledger, verdict("x", at_us=1), verdict("y", at_us=2))) == 2
    (ended,) = settle(ledger, verdict("y", at_us=2))
    assert ended.summary.startswith("x")


def test_memory_is_bounded():
    """Only so many resolved findings are remembered; open ones always."""
    ledger = Ledger()
    settle(ledger, verdict("open", at_us=1))
    place = Place("d", "app", "0_1")
    for number in range(CLOSED_KEPT + 50):
        ledger.settle(meta(Kind.EVENT), place, [verdict(str(number), at_us=number)], number)
    assert len(ledger.findings()) <= CLOSED_KEPT + 1
    assert len(ledger.open_findings()) == 1


def test_what_is_still_reported_is_not_forgotten():
    """More closed findings than are kept: those whose verdicts go on are told once all the same."""
    ledger = Ledger()
    places = [Place("d", "app", f"0_{number}") for number in range(CLOSED_KEPT + 50)]
    for now in (1, 2):
        told = [
            x
            for place in places
            for x in ledger.settle(meta(Kind.EVENT), place, [verdict()], now, frozenset())
        ]
        assert len(told) == (len(places) if now == 1 else 0)
    for place in places:
        ledger.settle(meta(Kind.EVENT), place, [], 3, frozenset())
    assert len(ledger.findings()) == CLOSED_KEPT


def test_a_quiet_place():
    """A place is quiet unless something is open there or still told."""
    ledger = Ledger()
    assert PLACE.detector not in ledger.pending(PLACE.application_id, PLACE.task_id)
    settle(ledger, verdict())
    assert PLACE.detector in ledger.pending(PLACE.application_id, PLACE.task_id)
    settle(ledger)
    assert PLACE.detector not in ledger.pending(PLACE.application_id, PLACE.task_id)
    settle(ledger, verdict(), kind=Kind.EVENT)
    assert PLACE.detector in ledger.pending(PLACE.application_id, PLACE.task_id)


# -- any history --------------------------------------------------------------------------------------------

verdicts = st.lists(
    st.builds(
        # two episodes on one incarnation begin at different times: that is what tells their ids apart
        lambda subject, severity, **more: verdict(subject, severity, at_us=ord(subject), **more),
        st.sampled_from(["x", "y"]),
        st.sampled_from(list(Severity)),
        identity=st.sampled_from(["id-1", "id-2", None]),
        store=st.sampled_from([None, "s"]),
    ),
    max_size=3,
    unique_by=lambda v: (v.subject, v.store),
)
judgements = st.lists(
    st.tuples(verdicts, st.sampled_from([None, frozenset(), frozenset({"id-1"})])), max_size=8
)


@given(judgements, st.sampled_from(list(Kind)))
def test_repeating_a_judgement_says_nothing(history, kind):
    """After any history, the same judgement a second time changes nothing and tells nothing."""
    ledger = Ledger()
    for now, (one, identities) in enumerate(history):
        settle(ledger, *one, kind=kind, now=now, identities=identities)
        before = ledger.findings()
        assert settle(ledger, *one, kind=kind, now=now, identities=identities) == []
        assert ledger.findings() == before


@given(judgements, st.sampled_from(list(Kind)))
def test_reported_changes_add_up_to_the_state(history, kind):
    """Whoever keeps the last word of each finding that was told knows all findings."""
    ledger = Ledger()
    told = {}
    for now, (one, identities) in enumerate(history):
        told.update({x.id: x for x in settle(ledger, *one, kind=kind, now=now, identities=identities)})
    assert sorted(told) == sorted({x.id for x in ledger.findings()})
    assert all(told[x.id].status is x.status for x in ledger.findings())


# -- suspicions and orderly closes --------------------------------------------------------------------------


def close(ledger: Ledger, closed_us: int | None, **more) -> list:
    """Judge the place once more, after a close: nothing is said of it any more."""
    return ledger.settle(meta(**more), PLACE, [], 30, frozenset({"id-1"}), closed_us=closed_us)
