"""A task that ran before its new owner had restored it."""

from __future__ import annotations

import pytest

from tests.spark_rollup.support.fleet import Fleet, at_us, story

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]

RULE = "unrestored-task"


def hand_over(
    fleet: Fleet,
    new_puts: int,
    new_offset: int | None,
    confidence: str = "suspected",
    entries: int | None = 11_000,
    lost: tuple[int, ...] = (),
    at: float = 45,
) -> None:
    b = fleet.pod("pod-b").holds("0_1", 5)
    b.measures("0_1", 30, identity="b", puts=12_000, offset=12_004, entries_low=entries)
    b.releases("0_1", 40)
    a = fleet.pod("pod-a").holds("0_1", at).writes_checkpoint("0_1", at + 2, 12_204).loses(*lost)
    a.finds(
        "unrestored-store", "0_1", at + 3, store="s", identity="a", opened_at_us=at_us(at + 1), confidence=confidence,
        severity="critical" if confidence == "confirmed" else "warning",
    )  # fmt: skip
    a.measures("0_1", at + 25, identity="a", puts=new_puts, offset=new_offset)


@story
def the_new_owner_claims_more_with_less(fleet: Fleet) -> None:
    hand_over(fleet, new_puts=200, new_offset=12_204)


@story
def the_previous_owner_has_more_puts_only(fleet: Fleet) -> None:
    hand_over(fleet, new_puts=200, new_offset=12_204, entries=None)


@story
def the_new_owner_has_as_much(fleet: Fleet) -> None:
    hand_over(fleet, new_puts=12_100, new_offset=12_204)


@story
def the_new_owner_claims_nothing(fleet: Fleet) -> None:
    hand_over(fleet, new_puts=200, new_offset=None, confidence="confirmed")


@story
def something_said_meanwhile_was_lost(fleet: Fleet) -> None:
    hand_over(fleet, new_puts=200, new_offset=12_204, lost=(4,))


@story
def something_said_before_was_lost(fleet: Fleet) -> None:
    hand_over(fleet, new_puts=200, new_offset=12_204, lost=(2,), at=200)


@story
def only_one_pod(fleet: Fleet) -> None:
    a = fleet.pod("pod-a").holds("0_1", 45)
    a.finds("unrestored-store", "0_1", 46, store="s", identity="a")


@story
def a_small_copy_without_suspicion(fleet: Fleet) -> None:
    fleet.pod("pod-b").holds("0_1", 5).measures("0_1", 30, identity="b", puts=12_000, offset=12_004).releases(
        "0_1", 40
    )
    fleet.pod("pod-a").holds("0_1", 45).measures("0_1", 70, identity="a", puts=200, offset=12_204)


def test_the_previous_owner_confirms(audited):
    """The previous owner held far more at a lower offset: confirmed, and both are named."""
    found = audited.finding(the_new_owner_claims_more_with_less, RULE)
    assert (found["severity"], found["confidence"]) == ("critical", "confirmed")
    assert found["pods"] == ["pod-a", "pod-b"]
    assert "pod-b held 12000 puts at offset 12004, pod-a claims offset 12204 with 200" in found["summary"]
    assert found["confirms"] == ["unrestored-store-pod-a-0_1"]


def test_what_was_lost_may_have_given_it_another_name(audited):
    """The agent calls some of this damage a resurrected checkpoint: where that may be lost, the name is a suspicion."""
    found = audited.finding(something_said_meanwhile_was_lost, RULE)
    assert (found["severity"], found["confidence"]) == ("warning", "suspected")
    assert "pod-b held 12000 puts" in found["summary"]


def test_what_was_lost_before_changes_nothing(audited):
    """A message that is lost long before the store was opened cannot have named its damage."""
    found = audited.finding(something_said_before_was_lost, RULE)
    assert (found["severity"], found["confidence"]) == ("critical", "confirmed")


def test_puts_alone_prove_no_suspicion(audited):
    """A compacted changelog brings overwritten keys back once: more puts before are told, and prove nothing."""
    found = audited.finding(the_previous_owner_has_more_puts_only, RULE)
    assert (found["severity"], found["confidence"]) == ("warning", "suspected")
    assert "pod-b held 12000 puts" in found["summary"]


def test_an_equal_copy_confirms_nothing(audited):
    """A new owner that holds as much leaves the local suspicion as it was."""
    found = audited.finding(the_new_owner_has_as_much, RULE)
    assert (found["severity"], found["confidence"]) == ("warning", "suspected")


def test_unknown_offsets_leave_the_local_verdict(audited):
    """Without an offset to compare the agent's own verdict stands."""
    found = audited.finding(the_new_owner_claims_nothing, RULE)
    assert (found["severity"], found["confidence"]) == ("critical", "confirmed")
    assert "held 12000" not in found["summary"]


def test_a_missing_owner_is_said(audited):
    """Where no earlier owner was watched, the finding says so."""
    found = audited.finding(only_one_pod, RULE)
    assert found["pods"] == ["pod-a"]
    assert any("no earlier owner was watched" in step["what"] for step in found["evidence"])


def test_sizes_alone_raise_nothing(audited):
    """A small copy at a high offset is what compaction leaves; without a local finding nothing is said."""
    assert audited.findings(a_small_copy_without_suspicion, RULE) == []
