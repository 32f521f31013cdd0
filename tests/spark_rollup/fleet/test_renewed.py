"""A pod that was made again has what its new agent tells of; a task that it never names is not there any more."""

from __future__ import annotations

import json

import pytest

from tests.spark_rollup.support.fleet import HORIZON_S, Fleet, at_us
from tests.spark_rollup.support.plain import events_of, tables


def answers(*, again_s: float, names_it: bool = False, blind: bool = False) -> dict[str, str]:
    """Kill a pod with a copy, agent and all; say of task 0_0 what holds for it and the other copy at the end."""
    fleet = Fleet("shop")
    stays = fleet.pod("pod-b").configures(1, "3.9.2", num_standby_replicas=1)
    old = fleet.pod("pod-a", uid="uid-1", boot="boot-1", ends_s=300, announces_end=False)
    new = fleet.pod("pod-a", uid="uid-2", boot="boot-2", begins_s=again_s)
    for pod, begins in ((stays, 5), (old, 6)):
        pod.holds("0_0", begins)
        for at in range(60, int(pod.ends_s), 60):
            pod.measures("0_0", at, offset=1000, puts=1000)
    for at in range(int(again_s) + 10, HORIZON_S, 60):
        new.measures("0_1", at, offset=10, puts=10).measures("0_2", at + 1, held=False, offset=10, puts=10)
        if names_it:
            new.measures("0_0", at + 2, offset=1000, puts=1000)
    if blind:
        new.is_blind(again_s + 20, None)
    found = tables(events_of(fleet.lines()), at_us(HORIZON_S))["restarts"]
    return {x["pod"]: x["answer"] for x in found if x["task_id"] == "0_0"}


def test_a_copy_that_went_with_its_volume_is_none_to_rely_on() -> None:
    """That agent and process were killed was told by nobody."""
    assert answers(again_s=420) == {"pod-b": "restore", "pod-a": "not-running"}


@pytest.mark.parametrize("more", [{"names_it": True}, {"blind": True}])
def test_a_copy_that_is_still_there_stays(more: dict[str, bool]) -> None:
    """Or of which nobody knows."""
    expected = "safe" if "names_it" in more else "unknown"
    assert answers(again_s=420, **more)["pod-a"] == expected


def test_a_new_agent_has_some_rounds_to_tell_of_every_task() -> None:
    """Until then what the one before it said holds."""
    assert answers(again_s=800) == {"pod-b": "safe", "pod-a": "safe"}


@pytest.mark.parametrize(("back_s", "answer"), [(600, "not-running"), (800, "unknown")])
def test_what_went_while_events_were_lost_is_not_there(back_s: int, answer: str) -> None:
    """That it was let go and deleted is lost; another directory makes up for it in what the agent counts."""
    fleet = Fleet("shop")
    stays = fleet.pod("pod-b").configures(1, "3.9.2", num_standby_replicas=1)
    pod = fleet.pod("pod-a").holds("0_1", 5)
    for one, ends in ((stays, HORIZON_S), (pod, 300)):
        one.holds("0_0", 6)
        for at in range(60, ends, 60):
            one.measures("0_0", at, identity=one.name, offset=1000, puts=1000)
    for at in range(60, HORIZON_S, 60):
        pod.measures("0_1", at, identity="other", offset=10, puts=10)
    times = [json.loads(line)["data"]["observed_at_us"] for line in pod.lines()]
    pod.loses(*(number for number, at in enumerate(times, 1) if at_us(300) <= at < at_us(back_s)))
    found = tables(events_of(fleet.lines()), at_us(HORIZON_S))["restarts"]
    said = {x["pod"]: x["answer"] for x in found if x["task_id"] == "0_0"}
    assert (said["pod-a"], said["pod-b"] == "safe") == (answer, False)
