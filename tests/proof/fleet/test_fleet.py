"""Lives of two pods, judged: the fleet is no surer than events allow, and losing some makes nothing surer or safer."""

from __future__ import annotations

import pytest

from tests.proof.classes import kind
from tests.proof.eras import ALOS_3_8, EOS_3_8, EOS_4_2_2
from tests.proof.fleet.figures import FleetMiss, FleetPlan, Jury, missed
from tests.proof.fleet.lives import FleetClasses
from tests.proof.fleet.telling import Answer, Audit, Verdict
from tests.proof.life import DAMAGED, EXPOSED

PLANS = {
    EOS_3_8: FleetPlan(words=8, severe=4, others=8, disturbed=2),
    EOS_4_2_2: FleetPlan(words=8, severe=4, others=6, disturbed=2, standbys=1),
    ALOS_3_8: FleetPlan(words=8, severe=4, others=6, disturbed=2),
}


@pytest.mark.parametrize(
    "era",
    [pytest.param(EOS_3_8, marks=pytest.mark.slow), EOS_4_2_2, ALOS_3_8],
    ids=lambda era: era.name,
)
def test_no_class_of_two_pods_misses_a_goal(era):
    """Whole, and with events lost at any place."""
    assert Jury(era, PLANS[era]).draws().unsaid() == []


BEGIN = (("a", "start"), ("b", "start"), ("a", "open", False), ("a", "ckpt", -4, 0))
TAKEN_BACK = (
    ("a", "flush", 10_500),
    ("a", "kill"),
    ("b", "open", False),
    ("a", "start"),
    ("a", "open", True),
)
DIED_AFTER_ITS_WIPE = (
    ("b", "open", False),
    ("a", "shut", 21_000),
    ("a", "rm"),
    ("a", "kill"),
    ("b", "ckpt", 31_500, 21_000),
)


WARMED_UP = (("b", "open", False), ("b", "ckpt", 20_999, 10_500), ("b", "ckpt", 41_999, 10_500))
SWAPPED = (
    ("a", "ckpt", 31_499, 21_000),
    ("a", "shut", 0),
    ("b", "open", False),
    ("b", "ckpt", 31_499, 21_000),
    ("a", "open", True),
)


@pytest.mark.parametrize(
    ("words", "standbys"), [(TAKEN_BACK, 0), (DIED_AFTER_ITS_WIPE, 0), (WARMED_UP, 0), (SWAPPED, 1)]
)
def test_what_was_found(words, standbys):
    """Each was said wrongly once: whole, or with something lost."""
    jury = Jury(EOS_3_8, FleetPlan(0, 0, 0, 0, standbys=standbys))
    jury.judges((*BEGIN, *words), disturbed=True)
    assert jury.found.unsaid() == []


def test_hand_over_with_a_skipped_wipe_is_mixed():
    """KAFKA-20685: b takes over after a's crash, a comes back as its standby with what was, or was not, committed."""
    classes = FleetClasses(EOS_3_8, 2)
    lives = classes.along((*BEGIN, *TAKEN_BACK))
    assert kind(lives) == "mixed"
    assert {x.truth for x in lives} == {frozenset({EXPOSED}), frozenset({DAMAGED, EXPOSED})}
    safe = Audit(frozenset(), (Answer("pod-b", "safe", ("pod-a",), by_lag=False),))
    silent = {FleetMiss.SILENT_MIXED, FleetMiss.FALSE_ALL_CLEAR}
    assert {miss for miss, _ in missed(EOS_3_8, lives, safe)} == silent
    sure = Verdict("stale-eos-state", "damage", "critical", "confirmed", ("pod-a",), "open")
    certain = Audit(frozenset({sure}), ())
    assert [miss for miss, _ in missed(EOS_3_8, lives, certain)] == [FleetMiss.FALSE_CERTAINTY]
