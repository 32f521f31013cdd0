"""A task that ran before its new owner had restored it."""

from __future__ import annotations

import pytest

from tests.spark_rollup.support.fleet import Fleet, at_us, cases, says, story

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


@says(
    RULE,
    loud="critical confirmed",
    pods=["pod-a", "pod-b"],
    confirms=["unrestored-store-pod-a-0_1"],
    summary="pod-b held 12000 puts at offset 12004, pod-a claims offset 12204 with 200",
)
def the_new_owner_claims_more_with_less(fleet: Fleet) -> None:
    """The previous owner held far more at a lower offset."""
    hand_over(fleet, new_puts=200, new_offset=12_204)


@says(RULE, loud="warning suspected", summary="pod-b held 12000 puts")
def the_previous_owner_has_more_puts_only(fleet: Fleet) -> None:
    """A compacted changelog brings overwritten keys back once: more puts before are told, and prove nothing."""
    hand_over(fleet, new_puts=200, new_offset=12_204, entries=None)


@says(RULE, loud="warning suspected")
def the_new_owner_has_as_much(fleet: Fleet) -> None:
    """It leaves the local suspicion as it was."""
    hand_over(fleet, new_puts=12_100, new_offset=12_204)


@story
def the_new_owner_claims_nothing(fleet: Fleet) -> None:
    hand_over(fleet, new_puts=200, new_offset=None, confidence="confirmed")


@says(RULE, loud="warning suspected", summary="pod-b held 12000 puts")
def something_said_meanwhile_was_lost(fleet: Fleet) -> None:
    """The agent may have called it a resurrected checkpoint: the name is a suspicion."""
    hand_over(fleet, new_puts=200, new_offset=12_204, lost=(4,))


@says(RULE, loud="critical confirmed")
def something_said_before_was_lost(fleet: Fleet) -> None:
    """Long before the store was opened: it cannot have named its damage."""
    hand_over(fleet, new_puts=200, new_offset=12_204, lost=(2,), at=200)


@says(RULE, pods=["pod-a"], evidence="no earlier owner was watched")
def only_one_pod(fleet: Fleet) -> None:
    a = fleet.pod("pod-a").holds("0_1", 45)
    a.finds("unrestored-store", "0_1", 46, store="s", identity="a")


@says(RULE)
def a_small_copy_without_suspicion(fleet: Fleet) -> None:
    """A small copy at a high offset is what compaction leaves."""
    fleet.pod("pod-b").holds("0_1", 5).measures("0_1", 30, identity="b", puts=12_000, offset=12_004).releases(
        "0_1", 40
    )
    fleet.pod("pod-a").holds("0_1", 45).measures("0_1", 70, identity="a", puts=200, offset=12_204)


def test_unknown_offsets_leave_the_local_verdict(audited):
    """Without an offset to compare the agent's own verdict stands."""
    found = audited.finding(the_new_owner_claims_nothing, RULE)
    assert (found["severity"], found["confidence"]) == ("critical", "confirmed")
    assert "held 12000" not in found["summary"]


@pytest.mark.parametrize(("name", "rule", "expected"), cases(__name__))
def test_cases(audited, name, rule, expected):
    """What each story has beside it."""
    audited.check(name, rule, expected)
