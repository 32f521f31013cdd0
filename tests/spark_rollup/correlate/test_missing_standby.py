"""Fewer holders than promised: the bug, and the many reasons that are none."""

from __future__ import annotations

import pytest

from tests.spark_rollup.support.fleet import Fleet, Pod, cases, says, story

RULE = "missing-standby"


def stage_1(fleet: Fleet, release: str | None = "2.2.1", **settings: object) -> tuple[Pod, Pod]:
    """All standbys of pod-a are let go at 40 s, lie there unowned, and go to its cleaner at 60 s."""
    a, b = fleet.pod("pod-a"), fleet.pod("pod-b")
    b.configures(1, release, **({"num_standby_replicas": 1, "session_timeout_ms": 6000} | settings))
    for task in ("0_0", "0_1"):
        b.holds(task, 2)
        a.holds(task, 3).releases(task, 40)
        a.changes("task-held", task, 60, held=True).deletes_task(task, 60.5, offset_before=2000)
    return a, b


@story
def stage_1_of_8187(fleet: Fleet) -> None:
    a, _ = stage_1(fleet)
    a.finds("unowned-task", "0_0", 45, severity="warning", confidence="suspected", level="exposure")


@story
def a_third_pod_takes_it_a_little_late(fleet: Fleet) -> None:
    """Sixteen seconds without a standby, session timeout 6 s: ten of them may be two clocks' difference."""
    stage_1(fleet)
    fleet.pod("pod-c").holds("0_0", 56).holds("0_1", 56)


@says(RULE)
def on_a_fixed_release(fleet: Fleet) -> None:
    """The same sequence is an ordinary move there, and no sibling is complete."""
    stage_1(fleet, release="3.9.2")


@says(RULE)
def release_unknown(fleet: Fleet) -> None:
    """The default patience of unknown releases (ten minutes) has not passed before the end."""
    stage_1(fleet, release=None)


@story
def the_other_agent_was_blind(fleet: Fleet) -> None:
    _, b = stage_1(fleet)
    b.is_blind(42, 44)


@says(RULE)
def the_task_moved_to_a_third_pod(fleet: Fleet) -> None:
    stage_1(fleet)
    fleet.pod("pod-c").holds("0_0", 41).holds("0_1", 42)


@says(
    RULE,
    severity="info",
    status="resolved",
    confirms=[],
    refutes=["unowned-task-pod-a-0_0"],
    summary="pod-c took 0_0",
)
def another_pod_took_the_task(fleet: Fleet) -> None:
    """The agent's `unowned-task` is refuted: resolved information that names who has the task."""
    a, _ = stage_1(fleet)
    a.finds("unowned-task", "0_0", 45, severity="warning", confidence="suspected", level="exposure")
    fleet.pod("pod-c").holds("0_0", 41).holds("0_1", 42)


@story
def a_pod_without_any_hold_lost_events(fleet: Fleet) -> None:
    stage_1(fleet)
    fleet.pod("pod-c").loses(2)


@says(RULE, loud="info unknown", missing_facts=["num_standby_replicas"])
def standbys_unknown(fleet: Fleet) -> None:
    """Several pods and no standby count: one note per application that names the setting."""
    for pod, task in (("pod-a", "0_0"), ("pod-b", "0_1")):
        fleet.pod(pod).holds(task, 5)


@says(RULE)
def no_standbys(fleet: Fleet) -> None:
    stage_1(fleet, num_standby_replicas=0)


@says(RULE)
def a_short_rebalance(fleet: Fleet) -> None:
    a, b = fleet.pod("pod-a"), fleet.pod("pod-b")
    b.configures(1, "2.2.1", num_standby_replicas=1, session_timeout_ms=6000).holds("0_0", 2)
    a.holds("0_1", 2).holds("0_0", 3).releases("0_0", 40).holds("0_0", 45)
    b.holds("0_1", 3)


@says(RULE)
def the_other_pod_stopped(fleet: Fleet) -> None:
    a, b = fleet.pod("pod-a"), fleet.pod("pod-b")
    a.configures(1, "2.2.1", num_standby_replicas=1, session_timeout_ms=6000)
    for task in ("0_0", "0_1"):
        a.holds(task, 2)
        b.holds(task, 3).releases(task, 300)


@says(RULE, severity="info", task_id="0_0", status="open", affected="no")
def one_task_is_short_among_complete_ones(fleet: Fleet) -> None:
    """On later releases a task that stays short while its siblings are complete is worth a note."""
    a, b = fleet.pod("pod-a"), fleet.pod("pod-b")
    b.configures(
        1, "3.9.2", num_standby_replicas=1, session_timeout_ms=6000, probing_rebalance_interval_ms=10_000
    )
    for task in ("0_0", "0_1"):
        a.holds(task, 3)
        b.holds(task, 2)
    a.releases("0_0", 100)


@says(RULE)
def nobody_can_see_the_locks(fleet: Fleet) -> None:
    a, b = fleet.pod("pod-a"), fleet.pod("pod-b")
    b.configures(1, "3.9.2", num_standby_replicas=1, session_timeout_ms=6000, probing_rebalance_interval_ms=0)
    for pod in (a, b):
        pod.holds("0_0", 2)
        pod.measures("0_1", 30, held=None, puts=5, offset=5)


def test_an_unowned_standby_is_critical(audited):
    """Up to 2.2.1: each task lacks its standby, the pod that lies idle is named, the agent's suspicion is explained."""
    found = {row["task_id"]: row for row in audited.findings(stage_1_of_8187, RULE)}
    assert set(found) == {"0_0", "0_1"}
    assert {(row["severity"], row["confidence"], row["pod"]) for row in found.values()} == {
        ("critical", "confirmed", "pod-a")
    }
    assert found["0_0"]["confirms"] == ["unowned-task-pod-a-0_0"]
    assert found["0_1"]["confirms"] == []
    told = [step["what"] for step in found["0_0"]["evidence"]]
    assert "the cleaner of pod-a deleted the unowned directory: its process was alive" in told


def test_what_two_clocks_may_have_made_is_suspected(audited):
    """A shortage that is hardly longer than a rebalance accuses nobody for certain."""
    found = audited.findings(a_third_pod_takes_it_a_little_late, RULE)
    told = {(row["task_id"], row["severity"], row["confidence"], row["pod"]) for row in found}
    assert told == {(task, "warning", "suspected", "pod-a") for task in ("0_0", "0_1")}


def test_unwatched_time_is_unknown(audited):
    """If another pod was not watched it may have held the standby: nothing is confirmed."""
    found = audited.findings(the_other_agent_was_blind, RULE)
    assert {(row["severity"], row["confidence"]) for row in found} == {("warning", "unknown")}
    assert all("pod-b" in str(row["evidence"]) for row in found)


def test_lost_events_of_a_bystander_are_unknown(audited):
    """A pod that was never seen holding may have taken the task in the event that was lost."""
    found = audited.findings(a_pod_without_any_hold_lost_events, RULE)
    assert {(row["severity"], row["confidence"]) for row in found} == {("warning", "unknown")}


@pytest.mark.parametrize(("name", "rule", "expected"), cases(__name__))
def test_cases(audited, name, rule, expected):
    """What each story has beside it."""
    audited.check(name, rule, expected)
