"""Second copies that are there, missing, damaged, behind or not to be seen."""

from __future__ import annotations

import pytest

from tests.spark_rollup.support.fleet import Fleet, Pod, story

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]

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


@story
def the_second_copy_is_damaged(fleet: Fleet) -> None:
    for pod in pair(fleet):
        pod.holds("0_0", 5)
    fleet.pods[1].finds("resurrected-checkpoint", "0_0", 100)


@story
def the_second_copy_is_far_behind(fleet: Fleet) -> None:
    for pod, offset in zip(pair(fleet), (50_000, 20_000), strict=True):
        pod.holds("0_0", 5).measures("0_0", 800, offset=offset, puts=offset)


@story
def a_pod_was_not_watched(fleet: Fleet) -> None:
    a, b = pair(fleet)
    a.holds("0_0", 5)
    b.holds("0_0", 5).releases("0_0", 300).is_blind(862, 866)


@story
def an_agent_fell_silent_after_the_end(fleet: Fleet) -> None:
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


@story
def let_go_after_a_pods_last_word(fleet: Fleet) -> None:
    three(fleet, 846)


@story
def let_go_before_a_pods_last_word(fleet: Fleet) -> None:
    three(fleet, 800)


@story
def no_standbys(fleet: Fleet) -> None:
    a, _ = pair(fleet, num_standby_replicas=0)
    a.holds("0_0", 5)


@story
def alone(fleet: Fleet) -> None:
    fleet.pod("pod-a").configures(1, "3.9.2", num_standby_replicas=1).holds("0_0", 5)


@story
def let_go_a_moment_ago(fleet: Fleet) -> None:
    a, b = pair(fleet)
    a.holds("0_0", 5)
    b.holds("0_0", 5).releases("0_0", 880)


@story
def the_other_pod_left_about_then(fleet: Fleet) -> None:
    a, b = pair(fleet)
    a.holds("0_0", 5)
    b.holds("0_0", 5).releases("0_0", 300).releases("0_1", 850)


@story
def two_healthy_copies(fleet: Fleet) -> None:
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


def test_the_damage_is_referred_to(audited):
    """The finding names the agent's finding that makes the copy unfit."""
    found = audited.finding(the_second_copy_is_damaged, RULE)
    assert found["explains"] == ["resurrected-checkpoint-pod-b-0_0"]


def test_unwatched_pods_make_it_unknown(audited):
    """The pod that nobody watched may have the copy."""
    found = audited.finding(a_pod_was_not_watched, RULE)
    assert (found["severity"], found["confidence"]) == ("info", "unknown")


def test_an_agent_that_is_not_heard_takes_no_copy_away(audited):
    """Both pods had a copy when the application ended: that one of their agents fell silent later proves nothing."""
    found = audited.finding(an_agent_fell_silent_after_the_end, RULE)
    assert (found["severity"], found["confidence"]) == ("info", "unknown")
    assert any("not watched all the time: pod-b" in step["what"] for step in found["evidence"])


def test_a_pod_may_have_taken_the_copy_since_it_was_heard(audited):
    """Heartbeats come every thirty seconds: what was let go after a pod's last word may be its own by now."""
    assert audited.findings(let_go_after_a_pods_last_word, RULE) == []


def test_every_pod_spoke_after_the_copy_was_let_go(audited):
    """The third pod has said since that it has no copy."""
    found = audited.finding(let_go_before_a_pods_last_word, RULE)
    assert (found["severity"], found["confidence"], found["task_id"]) == ("warning", "confirmed", "0_0")


def test_a_pod_that_the_clocks_may_count_or_not_leaves_a_suspicion(audited):
    """Its last sign is fifty seconds old: by its own clock it may just as well be gone for longer than the patience."""
    found = audited.finding(the_other_pod_left_about_then, RULE)
    assert (found["severity"], found["confidence"], found["task_id"]) == ("info", "suspected", "0_0")


@pytest.mark.parametrize("name", [no_standbys, alone])
def test_no_standbys_is_one_note_per_application(audited, name):
    """By configuration, or because one pod is alone: not a finding per task."""
    found = audited.finding(name, RULE)
    assert (found["severity"], found["task_id"]) == ("info", None)


@pytest.mark.parametrize("name", [let_go_a_moment_ago, two_healthy_copies])
def test_ordinary_life_is_quiet(audited, name):
    """A rebalance under way and a standby within the usual lag."""
    assert audited.findings(name, RULE) == []
