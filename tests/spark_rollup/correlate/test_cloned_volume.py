"""One volume before the eyes of two pods: clones and shared claims, and volumes that merely move."""

from __future__ import annotations

import pytest

from tests.spark_rollup.support.fleet import Fleet, story

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]

RULE = "cloned-volume"


@story
def the_store_is_on_two_pods(fleet: Fleet) -> None:
    for name in ("pod-a", "pod-b"):
        pod = fleet.pod(name)
        pod.holds("0_0", 5)
        for at in (60, 120, 180):
            pod.measures("0_0", at, identity="one", puts=5, offset=5)
    fleet.pods[0].finds("shared-state-dir", "0_0", 100, severity="warning", level="exposure")


@story
def an_idle_clone_has_the_store(fleet: Fleet) -> None:
    a, b = fleet.pod("pod-a"), fleet.pod("pod-b")
    a.holds("0_0", 5)
    for at in (60, 120, 180):
        a.measures("0_0", at, identity="one", puts=5, offset=5)
        b.measures("0_0", at + 1, held=False, identity="one", puts=5, offset=5)


@story
def the_volume_moved(fleet: Fleet) -> None:
    a = fleet.pod("pod-a", ends_s=200)
    b = fleet.pod("pod-b", begins_s=203)
    back = fleet.pod("pod-a", boot="boot-2", uid="second", begins_s=600)
    for at in (60, 120, 199):
        a.measures("0_0", at, identity="one", puts=5, offset=5, process_id="p-1")
    for at in (204, 300, 500):
        b.measures("0_0", at, identity="one", puts=5, offset=5, process_id="p-1")
    b.ends_s = 598
    back.measures("0_0", 601, identity="one", puts=5, offset=5, process_id="p-1")


@story
def clocks_differ(fleet: Fleet) -> None:
    fleet.pod("pod-a").measures("0_0", 60, identity="one", puts=5).measures(
        "0_0", 120, identity="one", puts=5
    )
    fleet.pod("pod-b").measures("0_0", 117, identity="one", puts=5).measures(
        "0_0", 200, identity="one", puts=5
    )


def test_one_store_on_two_working_pods_is_critical(audited):
    """Both work on copies of one store: confirmed, and the agent's own suspicion is explained by it."""
    found = audited.finding(the_store_is_on_two_pods, RULE)
    assert (found["severity"], found["confidence"], found["pods"]) == (
        "critical",
        "confirmed",
        ["pod-a", "pod-b"],
    )
    assert found["confirms"] == ["shared-state-dir-pod-a-0_0"]
    assert "store identity one is on pod-a and on pod-b at once" in [
        step["what"] for step in found["evidence"]
    ]


def test_an_idle_clone_is_a_warning(audited):
    """The same store on a pod that does not work on it: damage is still to come."""
    found = audited.finding(an_idle_clone_has_the_store, RULE)
    assert (found["severity"], found["confidence"]) == ("warning", "confirmed")


@pytest.mark.parametrize("name", [the_volume_moved, clocks_differ])
def test_one_after_the_other_is_quiet(audited, name):
    """A volume that moves, there and back, or an overlap within what clocks differ, is none."""
    assert audited.findings(name, RULE) == []
