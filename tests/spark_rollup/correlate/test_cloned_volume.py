"""One volume before the eyes of two pods: clones and shared claims, and volumes that merely move."""

from __future__ import annotations

import pytest

from tests.spark_rollup.support.fleet import Fleet, cases, says

RULE = "cloned-volume"


@says(
    RULE,
    loud="critical confirmed",
    pods=["pod-a", "pod-b"],
    confirms=["shared-state-dir-pod-a-0_0"],
    evidence="store identity one is on pod-a and on pod-b at once",
)
def the_store_is_on_two_pods(fleet: Fleet) -> None:
    """Both work on copies of one store: confirmed, and the agent's own suspicion is explained by it."""
    for name in ("pod-a", "pod-b"):
        pod = fleet.pod(name)
        pod.holds("0_0", 5)
        for at in (60, 120, 180):
            pod.measures("0_0", at, identity="one", puts=5, offset=5)
    fleet.pods[0].finds("shared-state-dir", "0_0", 100, severity="warning", level="exposure")


@says(RULE, loud="warning confirmed")
def an_idle_clone_has_the_store(fleet: Fleet) -> None:
    """The same store on a pod that does not work on it: damage is still to come."""
    a, b = fleet.pod("pod-a"), fleet.pod("pod-b")
    a.holds("0_0", 5)
    for at in (60, 120, 180):
        a.measures("0_0", at, identity="one", puts=5, offset=5)
        b.measures("0_0", at + 1, held=False, identity="one", puts=5, offset=5)


@says(RULE)
def the_volume_moved(fleet: Fleet) -> None:
    """There and back: one after the other is none."""
    a = fleet.pod("pod-a", ends_s=200)
    b = fleet.pod("pod-b", begins_s=203)
    back = fleet.pod("pod-a", boot="boot-2", uid="second", begins_s=600)
    for at in (60, 120, 199):
        a.measures("0_0", at, identity="one", puts=5, offset=5, process_id="p-1")
    for at in (204, 300, 500):
        b.measures("0_0", at, identity="one", puts=5, offset=5, process_id="p-1")
    b.ends_s = 598
    back.measures("0_0", 601, identity="one", puts=5, offset=5, process_id="p-1")


@says(RULE)
def clocks_differ(fleet: Fleet) -> None:
    """The overlap is within what clocks differ."""
    fleet.pod("pod-a").measures("0_0", 60, identity="one", puts=5).measures(
        "0_0", 120, identity="one", puts=5
    )
    fleet.pod("pod-b").measures("0_0", 117, identity="one", puts=5).measures(
        "0_0", 200, identity="one", puts=5
    )


@pytest.mark.parametrize(("name", "rule", "expected"), cases(__name__))
def test_cases(audited, name, rule, expected):
    """What each story has beside it."""
    audited.check(name, rule, expected)
