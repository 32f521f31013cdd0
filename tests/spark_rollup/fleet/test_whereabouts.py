"""A finding ends with the store that it is about, and goes where that store goes, whatever the new agent remembers."""

from __future__ import annotations

import pytest

from agent.contract.audited import gather
from agent.contract.grouping import incident_of
from tests.spark_rollup.support.fleet import HORIZON_S, Fleet, Pod, at_us
from tests.spark_rollup.support.plain import events_of, tables

FOUND = "torn-store-pod-a-0_0"


def works(pod: Pod, identity: str, task: str = "0_0") -> Pod:
    """Hold a task with this store from begin to end."""
    pod.holds(task, pod.begins_s + 5)
    for at in range(int(pod.begins_s) + 60, int(pod.ends_s), 60):
        pod.measures(task, at, identity=identity, offset=1000, puts=1000)
    return pod


def fleet_of(*, new: str, moves: bool) -> tuple[Fleet, Pod, Pod]:
    """Find damage on pod-a, which ends; it is made again, or a pod of another name gets its volume; pod-b is well."""
    fleet = Fleet("shop")
    old = works(fleet.pod("pod-a", uid="uid-1", ends_s=300, announces_end=moves), "bad")
    old.configures(1, "3.9.2", num_standby_replicas=1).finds(
        "torn-store", "0_0", 100, store="s", identity="bad"
    )
    again = fleet.pod("pod-z" if moves else "pod-a", uid="uid-2", boot="boot-2", begins_s=320)
    works(fleet.pod("pod-b"), "well")
    return fleet, old, works(again, new, "0_1" if new == "other task" else "0_0")


def told(fleet: Fleet) -> tuple[list[str], dict[str, str]]:
    """Say on which pods it is open, and what holds for each copy of the task."""
    found = tables(events_of(fleet.lines()), at_us(HORIZON_S))
    is_open = [x["pod"] for x in found["findings"] if (x["detector"], x["status"]) == ("torn-store", "open")]
    return is_open, {x["pod"]: x["answer"] for x in found["restarts"] if x["task_id"] == "0_0"}


@pytest.mark.parametrize("new", ["new", "other task"])
def test_what_an_agent_without_memory_no_longer_shows_is_over(new: str) -> None:
    """The pod was made again with an empty volume, or somebody did the step while agent and process were away."""
    is_open, answers = told(fleet_of(new=new, moves=False)[0])
    assert not is_open
    assert "damaged" not in answers.values()


@pytest.mark.parametrize("proved_s", [600, 200])
def test_an_agent_without_memory_ends_an_incident_with_its_proof(proved_s: int) -> None:
    """All that it knows is the incident's id. What was proved before the end is no proof of it."""
    fleet, old, again = fleet_of(new="new", moves=False)
    ended = {"status": "resolved", "severity": "info", "level": "event", "resolved_at_us": at_us(proved_s)}
    (old if proved_s < 300 else again).finds(
        "repaired", "0_0", proved_s, summary="Repaired: verified.", incident_id=incident_of(FOUND), **ended
    )
    (one,) = gather(tables(events_of(fleet.lines()), at_us(HORIZON_S))["findings"])
    assert (one.status.value, FOUND in {x.id for _, x in one.findings}) == ("resolved", True)
    assert ("Repaired: verified." in one.sentence) is (proved_s == 600)


@pytest.mark.parametrize(
    ("at_s", "deletes", "is_over"), [(500, False, True), (840, False, False), (840, True, True)]
)
def test_what_went_before_the_eyes_of_an_agent_without_memory_is_over(
    at_s: int, *, deletes: bool, is_over: bool
) -> None:
    """It saw the store, and another one in its place, or its task go; it knows of no finding."""
    fleet, _, again = fleet_of(new="bad", moves=False)
    again.records = [x for x in again.records if x.observed_at_us < at_us(at_s)]
    if deletes:
        again.deletes_task("0_0", at_s)
    else:
        for at in range(at_s, HORIZON_S, 60):
            again.measures("0_0", at, identity="new", offset=1000, puts=1000)
    assert told(fleet)[0] == ([] if is_over else ["pod-a"])


def test_a_volume_that_another_pod_got_is_followed_though_the_old_name_is_at_work_again() -> None:
    """With an empty volume: the finding was over, and the damaged copy was counted as healthy."""
    fleet = fleet_of(new="other task", moves=False)[0]
    works(fleet.pod("pod-z", begins_s=400), "bad")
    is_open, answers = told(fleet)
    assert (is_open, answers["pod-z"], answers["pod-b"]) == (["pod-z"], "damaged", "keep")


def test_an_agent_that_sees_no_task_ends_nothing() -> None:
    """It may look at another directory."""
    fleet, _, again = fleet_of(new="new", moves=False)
    again.records.clear()
    assert told(fleet)[0] == ["pod-a"]


@pytest.mark.parametrize("names_it", [True, False])
def test_what_is_still_there_stays_open(names_it: bool) -> None:
    """The same store; or the new agent counts the finding, whatever it shows."""
    fleet, _, again = fleet_of(new="new" if names_it else "bad", moves=False)
    if names_it:
        again.finds("torn-store", "0_0", 400, store="s", identity="bad", opened_at_us=at_us(100))
        again.loses_findings(400)
    assert told(fleet) == (["pod-a"], {"pod-a": "damaged", "pod-b": "keep"})


def test_a_store_that_moved_is_no_healthy_copy() -> None:
    """The pod with the other copy was safe to restart beside it."""
    is_open, answers = told(fleet_of(new="bad", moves=True)[0])
    assert is_open == ["pod-z"], "whose step is to be done there"
    assert (answers["pod-z"], answers["pod-b"]) == ("damaged", "keep")
    assert answers.get("pod-a") != "damaged"


def test_who_got_the_volume_knows_best() -> None:
    """The finding of the pod that is gone was open for good."""
    fleet, _, heir = fleet_of(new="bad", moves=True)
    for at, status in ((330, "open"), (500, "resolved")):
        heir.finds("torn-store", "0_0", at, finding_id="torn-store-pod-a-0_0", store="s", identity="bad",
                   opened_at_us=at_us(100), status=status)  # fmt: skip
    is_open, answers = told(fleet)
    assert (is_open, answers["pod-z"], answers["pod-b"]) == ([], "safe", "safe")


def test_a_moved_store_that_is_replaced_ends_both() -> None:
    """Its agent never heard of the finding."""
    fleet, _, heir = fleet_of(new="new", moves=True)
    heir.measures("0_0", 330, identity="bad", offset=1000, puts=1000)
    assert told(fleet)[0] == []


def test_two_volumes_with_one_store_are_no_move() -> None:
    """A copy that the other pod had before is its own."""
    fleet = fleet_of(new="bad", moves=True)[0]
    early = fleet.pod("pod-z", uid="uid-0", boot="boot-0", ends_s=200)
    early.measures("0_0", 150, identity="bad", offset=1000, puts=1000)
    assert told(fleet)[0] == ["pod-a"]


def test_two_pods_that_got_a_copy_each_have_what_was_found() -> None:
    """Of a snapshot of the volume: one of the two was healthy."""
    fleet = fleet_of(new="bad", moves=True)[0]
    works(fleet.pod("pod-y", begins_s=310), "bad")
    is_open, answers = told(fleet)
    assert (sorted(is_open), answers["pod-y"], answers["pod-z"]) == (["pod-y", "pod-z"], "damaged", "damaged")
