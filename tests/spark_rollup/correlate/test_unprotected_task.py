"""Second copies that are there, missing, damaged, behind or not to be seen."""

from __future__ import annotations

import pytest

from agent.contract.events import Kind
from tests.spark_rollup.support.fleet import Fleet, Pod, cases, says, story

RULE = "unprotected-task"


def pair(fleet: Fleet, **settings: object) -> tuple[Pod, Pod]:
    """Two pods, one standby, patience of 46 s and 10 s for clocks; both hold 0_1 all the time."""
    a, b = fleet.pod("pod-a"), fleet.pod("pod-b")
    given: dict[str, object] = {"num_standby_replicas": 1, "probing_rebalance_interval_ms": 1000}
    a.configures(1, "3.9.2", **(given | settings))
    for pod in (a, b):
        pod.holds("0_1", 5).measures("0_1", 800, offset=50_000, puts=50_000)
    return a, b


@story
def no_second_copy(fleet: Fleet) -> None:
    a, b = pair(fleet)
    a.holds("0_0", 5)
    b.holds("0_0", 5).releases("0_0", 300)


@says(RULE, explains=["resurrected-checkpoint-pod-b-0_0"])
def the_second_copy_is_damaged(fleet: Fleet) -> None:
    for pod in pair(fleet):
        pod.holds("0_0", 5)
    fleet.pods[1].finds("resurrected-checkpoint", "0_0", 100)


@story
def the_second_copy_is_far_behind(fleet: Fleet) -> None:
    for pod, offset in zip(pair(fleet), (50_000, 20_000), strict=True):
        pod.holds("0_0", 5).measures("0_0", 800, offset=offset, puts=offset)


@says(
    RULE,
    loud="warning suspected",
    task_id="0_0",
    evidence="copies held at 2026-11-18 11:21:40 UTC: pod-a , pod-b (no offset known: up to 50000 records behind)",
)
def no_offset_of_the_second_copy_is_known(fleet: Fleet) -> None:
    """It may have none yet, or what told it was lost."""
    for pod, offset in zip(pair(fleet), (50_000, None), strict=True):
        pod.holds("0_0", 5).measures("0_0", 800, offset=offset, puts=50_000)


@says(RULE, loud="warning suspected", task_id="0_0")
def a_process_that_holds_nothing_may_have_ended(fleet: Fleet) -> None:
    """Where one pod is alive, it is a note for the application only."""
    a, b = fleet.pod("pod-a"), fleet.pod("pod-b")
    a.configures(1, "3.9.2", num_standby_replicas=1, probing_rebalance_interval_ms=1000)
    a.holds("0_0", 5)
    b.tells(Kind.TRANSITION, 5, change="process-started", source="inotify").is_blind(400, 410)


@says(RULE, loud="info unknown")
def a_pod_was_not_watched(fleet: Fleet) -> None:
    """The pod that nobody watched may have the copy."""
    a, b = pair(fleet)
    a.holds("0_0", 5)
    b.holds("0_0", 5).releases("0_0", 300).is_blind(862, 866)


@says(RULE, loud="info unknown", evidence="not watched all the time: pod-b")
def an_agent_fell_silent_after_the_end(fleet: Fleet) -> None:
    """Both pods had a copy when the application ended: what fell silent later proves nothing."""
    a, b = fleet.pod("pod-a"), fleet.pod("pod-b", ends_s=500, announces_end=False)
    a.configures(1, "3.9.2", num_standby_replicas=1, probing_rebalance_interval_ms=1000)
    for pod in (a, b):
        pod.holds("0_0", 5).releases("0_0", 300)


def three(fleet: Fleet, released: float) -> None:
    """One of three pods lets 0_0 go; one was heard at 845 for the last time. Patience 10 s, clocks 10 s."""
    a, c = fleet.pod("pod-a"), fleet.pod("pod-c")
    a.configures(1, "2.4.1", num_standby_replicas=1)
    a.holds("0_0", 5).holds("0_1", 5).releases("0_0", released)
    c.holds("0_0", 5).holds("0_1", 5)
    fleet.pod("pod-b", ends_s=845, announces_end=False).changes("task-created", "0_0", 845)


@says(RULE)
def let_go_after_a_pods_last_word(fleet: Fleet) -> None:
    """Heartbeats come every thirty seconds: what was let go after a pod's last word may be its own by now."""
    three(fleet, 846)


@says(RULE, loud="warning confirmed", task_id="0_0")
def let_go_before_a_pods_last_word(fleet: Fleet) -> None:
    """The third pod has said since that it has no copy."""
    three(fleet, 800)


@says(RULE, severity="info", task_id=None)
def no_standbys(fleet: Fleet) -> None:
    """One note for the application, not one for each task."""
    a, _ = pair(fleet, num_standby_replicas=0)
    a.holds("0_0", 5)


@says(RULE, severity="info", task_id=None)
def alone(fleet: Fleet) -> None:
    fleet.pod("pod-a").configures(1, "3.9.2", num_standby_replicas=1).holds("0_0", 5)


@says(RULE)
def let_go_a_moment_ago(fleet: Fleet) -> None:
    """A rebalance under way."""
    a, b = pair(fleet)
    a.holds("0_0", 5)
    b.holds("0_0", 5).releases("0_0", 880)


@says(RULE, loud="info suspected", task_id="0_0")
def the_other_pod_left_about_then(fleet: Fleet) -> None:
    """Its last sign is fifty seconds old: by its own clock it may be gone for longer than the patience."""
    a, b = pair(fleet)
    a.holds("0_0", 5)
    b.holds("0_0", 5).releases("0_0", 300).releases("0_1", 850)


@says(RULE)
def two_healthy_copies(fleet: Fleet) -> None:
    """A standby within the usual lag."""
    for pod, offset in zip(pair(fleet), (50_000, 41_000), strict=True):
        pod.holds("0_0", 5).measures("0_0", 800, offset=offset, puts=offset)


@pytest.mark.parametrize(
    ("name", "told"),
    [
        (no_second_copy, "pod-a"),
        (the_second_copy_is_damaged, "pod-b (damaged)"),
        (the_second_copy_is_far_behind, "pod-b (30000 records behind)"),
    ],
)
def test_one_healthy_copy_is_a_warning(audited, name, told):
    """Missing, damaged and far behind: none of them is a second copy."""
    found = audited.finding(name, RULE)
    assert (found["severity"], found["confidence"], found["task_id"]) == ("warning", "confirmed", "0_0")
    assert told in found["evidence"][0]["what"]


@pytest.mark.parametrize(("name", "rule", "expected"), cases(__name__))
def test_cases(audited, name, rule, expected):
    """What each story has beside it."""
    audited.check(name, rule, expected)
