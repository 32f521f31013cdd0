"""A fresh store under an old offset, seen by the agent or only by the fleet."""

from __future__ import annotations

from typing import Any

import pytest

from tests.spark_rollup.support.fleet import Fleet, Pod, cases, says

RULE = "resurrected-checkpoint"


def keeps_a_full_copy(pod: Pod, puts: int = 2050, **more: Any) -> Pod:
    return pod.holds("0_0", 2).measures("0_0", 100, identity="full", puts=puts, offset=2050, **more)


def loses_its_copy_and_starts_over(pod: Pod, puts: int = 50, first_offset: int = 2000) -> Pod:
    pod.holds("0_0", 3).creates_store("0_0", 3, "old").writes_checkpoint("0_0", 20, 2000, puts=2000).releases(
        "0_0", 40
    )
    pod.deletes_task("0_0", 60, offset_before=2000)
    pod.holds("0_0", 80).creates_store("0_0", 80, "new").writes_checkpoint("0_0", 81, first_offset, puts=0)
    return pod.measures("0_0", 120, identity="new", puts=puts, offset=2050)


@says(
    RULE,
    loud="critical confirmed open",
    pods=["pod-a", "pod-b"],
    confirms=["resurrected-checkpoint-pod-a-0_0"],
    summary="pod-b held 2050 puts at offset 2050, pod-a holds 50 at offset 2050",
)
def the_agent_saw_it(fleet: Fleet) -> None:
    """A suspicion becomes critical and confirmed when a replica at that offset holds far more."""
    keeps_a_full_copy(fleet.pod("pod-b"), entries_low=1900)
    a = loses_its_copy_and_starts_over(fleet.pod("pod-a"))
    a.finds(RULE, "0_0", 81, store="s", identity="new", confidence="suspected", severity="warning")


@says(RULE, loud="warning suspected")
def the_replica_has_more_puts_only(fleet: Fleet) -> None:
    """Hot keys that were overwritten many times are puts, too: the agent's suspicion stays one."""
    keeps_a_full_copy(fleet.pod("pod-b"))
    a = loses_its_copy_and_starts_over(fleet.pod("pod-a"))
    a.finds(RULE, "0_0", 81, store="s", identity="new", confidence="suspected", severity="warning")


@says(RULE, loud="critical confirmed", confirms=[])
def the_agent_said_nothing(fleet: Fleet) -> None:
    """Transitions and a replica's live entries alone prove it."""
    keeps_a_full_copy(fleet.pod("pod-b"), entries_low=2050)
    loses_its_copy_and_starts_over(fleet.pod("pod-a"))


@says(RULE, loud="warning suspected")
def nobody_counted_entries(fleet: Fleet) -> None:
    """Compaction could explain the difference."""
    keeps_a_full_copy(fleet.pod("pod-b"))
    loses_its_copy_and_starts_over(fleet.pod("pod-a"))


@says(RULE, confidence="suspected")
def it_happened_while_the_agent_was_blind(fleet: Fleet) -> None:
    """What the fleet concludes across unwatched time is never confirmed."""
    keeps_a_full_copy(fleet.pod("pod-b"), entries_low=2050)
    loses_its_copy_and_starts_over(fleet.pod("pod-a")).is_blind(62, 79)


@says(RULE, loud="warning suspected", pods=["pod-a"])
def no_replica_exists(fleet: Fleet) -> None:
    """The agent's own severity and confidence are taken over."""
    a = loses_its_copy_and_starts_over(fleet.pod("pod-a"))
    a.finds(RULE, "0_0", 81, store="s", identity="new", confidence="suspected", severity="warning")


@says(RULE)
def a_fresh_store_was_restored(fleet: Fleet) -> None:
    """It was filled from before the old offset."""
    keeps_a_full_copy(fleet.pod("pod-b"), puts=9000, entries_low=1200)
    loses_its_copy_and_starts_over(fleet.pod("pod-a"), puts=1300, first_offset=2050)


@says(RULE)
def a_new_store_began_at_zero(fleet: Fleet) -> None:
    keeps_a_full_copy(fleet.pod("pod-b"))
    loses_its_copy_and_starts_over(fleet.pod("pod-a"), puts=2050, first_offset=30)


@says(RULE, status="resolved")
def the_agent_resolved_it(fleet: Fleet) -> None:
    a = loses_its_copy_and_starts_over(fleet.pod("pod-a"))
    a.finds(RULE, "0_0", 81, store="s", identity="new").finds(
        RULE, "0_0", 81, store="s", identity="new", status="resolved"
    )


def test_the_chain_names_who_did_what(audited):
    """The evidence says, in time order, who deleted, who re-created and where the task lived meanwhile."""
    evidence = audited.finding(the_agent_saw_it, RULE)["evidence"]
    told = [step["what"] for step in evidence]
    assert [step["at"] for step in evidence] == sorted(step["at"] for step in evidence)
    assert "pod-a: the cleaner deleted the task directory at offset 2000" in told
    assert "pod-a: a new store was made, identity new" in told
    assert "pod-b held the task from 2026-11-18 11:06:42 UTC to the last reading" in told
    assert "seen by the agent" in told


@says("unrestored-task")
@says(RULE, confirms=["resurrected-checkpoint-pod-a-0_0", "unrestored-store-pod-a-0_0"])
def the_agent_calls_it_unrestored_too(fleet: Fleet) -> None:
    """Two local names for the same store end in one finding that explains both."""
    keeps_a_full_copy(fleet.pod("pod-b"))
    a = loses_its_copy_and_starts_over(fleet.pod("pod-a"))
    a.finds(RULE, "0_0", 81, store="s", identity="new").finds(
        "unrestored-store", "0_0", 81, store="s", identity="new"
    )


@says("unrestored-task", detector="unrestored-task")
@says(RULE)
def the_agent_calls_it_only_unrestored(fleet: Fleet) -> None:
    keeps_a_full_copy(fleet.pod("pod-b"), entries_low=2050)
    loses_its_copy_and_starts_over(fleet.pod("pod-a")).finds(
        "unrestored-store", "0_0", 81, store="s", identity="new"
    )


@pytest.mark.parametrize(("name", "rule", "expected"), cases(__name__))
def test_cases(audited, name, rule, expected):
    """What each story has beside it."""
    audited.check(name, rule, expected)
