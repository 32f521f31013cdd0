"""Which suspicions a comparison proves, which it refutes, and which it leaves alone; no Spark."""

from __future__ import annotations

from dataclasses import replace

import pytest

from agent.contract.buckets import StoreState
from agent.detectors import DETECTORS
from agent.findings.proof import can_be_proved
from spark_rollup.verify import suspicions, verdicts
from spark_rollup.verify.findings import findings, repair
from spark_rollup.verify.replicas import Pair
from spark_rollup.verify.suspicions import Suspicion
from spark_rollup.verify.verdicts import Verdict, Word
from tests.spark_rollup.support.digest_files import COPY, PLACE

MADE_US = COPY.made_us
TOTALS = replace(
    COPY,
    copy=2,
    store="totals",
    topic="orders-totals-changelog",
    databases=(replace(PLACE, identity="life-2"),),
)
HOME = ("shop", "orders", "0_0", "pod-0")
STORE = Suspicion("f1", "store-shrank", HOME, "counts", "life-1", MADE_US - 1)
TASK = replace(STORE, store=None, stores=frozenset({"counts", "totals"}))

ELSEWHERE = [
    replace(STORE, home=("shop", "orders", "0_0", "pod-1")),
    replace(STORE, home=("shop", "orders", "0_1", "pod-0")),
    replace(STORE, home=("eu/shop", "orders", "0_0", "pod-0")),
    replace(STORE, store="totals"),
    replace(STORE, identity="life-0"),  # of what was there before
    replace(STORE, opened_us=MADE_US + 1),
]


def ids(judged: list[Verdict], said: list[Suspicion]) -> tuple[list[str], list[str]]:
    """Give ids that are proved, and those that are refuted."""
    proved = [one.finding_id for several in suspicions.proved(judged, said).values() for one in several]
    return proved, [x.finding_id for one in suspicions.refuted(judged, said) for x in one.suspicions]


@pytest.mark.parametrize("said", [STORE, replace(STORE, identity=None), replace(STORE, opened_us=MADE_US)])
def test_a_difference_proves_and_equality_refutes(said):
    assert ids([Verdict(COPY, Word.DIFFERS)], [said]) == (["f1"], [])
    assert ids([Verdict(COPY, Word.EQUAL)], [said]) == ([], ["f1"])


@pytest.mark.parametrize("said", ELSEWHERE)
def test_another_copy_another_life_and_what_came_later_are_left_alone(said):
    for word in Word:
        assert ids([Verdict(COPY, word)], [said]) == ([], [])


@pytest.mark.parametrize(
    "verdict",
    [
        Verdict(replace(COPY, state=StoreState.KILLED), Word.DIFFERS),
        Verdict(COPY, Word.PARTLY),
        Verdict(COPY, Word.UNDECIDABLE),
        Verdict(replace(COPY, databases=(replace(PLACE, is_exact=False),)), Word.EQUAL),  # it went on
        Verdict(COPY, Word.EQUAL, expired=frozenset({0})),  # nothing was said of that segment
    ],
)
def test_what_is_not_sure_decides_nothing(verdict):
    assert ids([verdict], [STORE]) == ([], [])


def test_equality_refutes_nothing_once_the_application_has_written_on():
    """A count that began on a wrong value is in store and changelog alike."""
    before = replace(STORE, opened_us=PLACE.written_us - 1)
    assert ids([Verdict(COPY, Word.EQUAL)], [before]) == ([], [])
    assert ids([Verdict(COPY, Word.DIFFERS)], [before]) == (["f1"], [])
    written = replace(TOTALS, databases=(replace(TOTALS.databases[0], written_us=MADE_US),))
    assert ids([Verdict(COPY, Word.EQUAL), Verdict(written, Word.EQUAL)], [TASK]) == ([], [])


def test_a_whole_task_is_refuted_by_all_of_its_stores_only():
    """One store that differs proves it; one that was not compared, or is not known, leaves it open."""
    equal = [Verdict(COPY, Word.EQUAL), Verdict(TOTALS, Word.EQUAL)]
    assert ids(equal, [TASK]) == ([], ["f1"])
    assert ids(equal[:1], [TASK]) == ([], [])
    assert ids(equal, [replace(TASK, stores=frozenset())]) == ([], [])
    assert ids(equal, [replace(TASK, identity="life-0")]) == ([], [])
    assert ids([Verdict(COPY, Word.DIFFERS), equal[1]], [TASK]) == (["f1"], [])
    # the incarnation that is suspected is not the one that differs
    assert ids([equal[0], Verdict(TOTALS, Word.DIFFERS)], [TASK]) == ([], [])


def test_suspicions_about_one_store_are_refuted_together():
    other = replace(STORE, finding_id="f2", detector="unrestored-store", identity=None)
    (found,) = suspicions.refuted([Verdict(COPY, Word.EQUAL)], [STORE, other])
    assert found.suspicions == (STORE, other)
    assert [one.source for one in found.equal] == [COPY]


def test_damage_in_the_content_of_a_store_is_what_agents_offer_a_proof_for():
    """All of it but what is closed at once, and a condition of a file beside the store."""
    lasting = {x.meta.id for x in DETECTORS if can_be_proved(x.meta)}
    assert set(suspicions.ABOUT_CONTENT) == lasting


@pytest.mark.parametrize(("extra", "may_be_the_last"), [(0, False), (3, True)])
def test_nothing_is_removed_that_may_be_the_last_of_its_kind(extra: int, may_be_the_last: bool) -> None:
    """The copy is kept first; what the changelog may have lost is not removed without a look."""
    verdict = Verdict(COPY, Word.DIFFERS, counts={"missing": 2, "extra": extra, "different": 0})
    kept, keys, removed = map(
        repair(verdict, "b:9092").index, ("Keep a copy of 0_0 on pod-0", "--explain", "remove the store's")
    )
    assert kept < keys < removed
    condition = repair(verdict, "b:9092").find("do not remove it")
    assert (keys < condition < removed) if may_be_the_last else condition == -1


COUNTS = dict.fromkeys(verdicts.COUNTS, 1)
KILLED, OTHER = replace(COPY, state=StoreState.KILLED), replace(COPY, copy=3, pod="pod-1")


@pytest.mark.parametrize(
    ("judged", "pairs", "expected"),
    [
        ([Verdict(COPY, Word.DIFFERS, counts=COUNTS)], [], [("state-differs", "critical", "confirmed")]),
        ([Verdict(KILLED, Word.DIFFERS, counts=COUNTS)], [], [("state-differs", "warning", "suspected")]),
        ([], [(COPY, OTHER)], [("replicas-differ", "critical", "confirmed")]),
        ([], [(OTHER, KILLED)], [("replicas-differ", "warning", "suspected")]),
        # the changelog shows which of the two is wrong
        ([Verdict(OTHER, Word.DIFFERS, counts=COUNTS)], [(COPY, OTHER)], [("state-differs", "critical", "confirmed")]),
        ([Verdict(COPY, Word.EQUAL, counts=COUNTS), Verdict(OTHER, Word.PARTLY, counts=COUNTS)], [], []),
    ],
)  # fmt: skip
def test_what_is_reported_of_copies_that_differ(judged, pairs, expected):
    """Critical and confirmed, but for a copy whose difference may have another cause."""
    differences = [(Pair(one, other, (0,)), COUNTS) for one, other in pairs]
    rows = findings(judged, differences, [], "b:9092")
    assert [(row["detector"], row["severity"], row["confidence"]) for row in rows] == expected
    assert all(row["status"] == "open" and row["resolved_at"] is None for row in rows)
