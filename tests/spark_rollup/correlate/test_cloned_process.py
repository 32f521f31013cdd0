"""One process id on two pods: alive on both, idle on one, one after the other."""

from __future__ import annotations

import pytest

from agent.contract.events import Kind
from tests.spark_rollup.support.fleet import Fleet, Pod, story

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]

RULE = "cloned-process"


def shows(pod: Pod, begins_s: float = 0, ends_s: float = 880, process_id: str = "p-1") -> Pod:
    """See the process id with every summary."""
    for at in range(int(begins_s) + 60, int(ends_s), 60):
        pod.measures("0_9", at, held=None, process_id=process_id)
    return pod


def lives(pod: Pod, start: float, end: float | None = None) -> None:
    """See the process itself, from its start on."""
    pod.tells(Kind.TRANSITION, start, change="process-started", source="timer")
    if end is not None:
        pod.tells(Kind.TRANSITION, end, change="process-ended", source="timer")


@story
def two_processes_fence_each_other(fleet: Fleet) -> None:
    for name, second in (("pod-a", 0), ("pod-b", 1)):
        pod = shows(fleet.pod(name))
        for at in range(100, 880, 20):  # each holds what the other is about to wipe
            pod.holds("0_0", at + 10 * second).releases("0_0", at + 10 * second + 5)
        # the stores were recreated on each: nothing but the process id is left of the clone
        pod.measures("0_0", 870 + second, held=None, identity=f"own-{name}", puts=5)
    fleet.pods[0].finds("setup", "0_0", 100, severity="warning", mechanism="shared-state")


@story
def two_idle_processes_that_are_seen(fleet: Fleet) -> None:
    for name in ("pod-a", "pod-b"):
        lives(shows(fleet.pod(name)), 20)


@story
def one_of_them_was_stopped(fleet: Fleet) -> None:
    for name, end in (("pod-a", 880), ("pod-b", 300)):
        lives(shows(fleet.pod(name)), 20, end)


@story
def the_copy_lies_idle(fleet: Fleet) -> None:
    shows(fleet.pod("pod-a")).holds("0_0", 5)
    shows(fleet.pod("pod-b"))


@story
def the_volume_moved(fleet: Fleet) -> None:
    shows(fleet.pod("pod-a", ends_s=400), ends_s=400).holds("0_0", 5).releases("0_0", 398)
    shows(fleet.pod("pod-b", begins_s=402), begins_s=402).holds("0_0", 410)


@story
def clocks_differ(fleet: Fleet) -> None:
    shows(fleet.pod("pod-a", ends_s=420), ends_s=420).holds("0_0", 5)
    shows(fleet.pod("pod-b", begins_s=350), begins_s=352).holds("0_0", 412)


@story
def each_has_its_own(fleet: Fleet) -> None:
    for name in ("pod-a", "pod-b"):
        shows(fleet.pod(name), process_id=f"own-{name}").holds("0_0", 5)


@pytest.mark.parametrize(
    ("name", "loud"),
    [
        (two_processes_fence_each_other, ("critical", "confirmed")),
        (two_idle_processes_that_are_seen, ("warning", "suspected")),
    ],
)
def test_two_processes_with_one_id_are_reported(audited, name, loud):
    """Both live at once: told by this rule only, with what to do for a copy and for a shared claim.

    A process without stores on disk does not use the id that lies there; who holds tasks does.
    """
    found = audited.finding(name, RULE)
    assert (found["severity"], found["confidence"], found["status"]) == (*loud, "open")
    assert found["pods"] == ["pod-a", "pod-b"]
    assert "process id p-1 is alive on pod-a and on pod-b" in [step["what"] for step in found["evidence"]]
    assert "kafka-streams-process-metadata" in found["next_action"]
    assert "If both use one claim, delete nothing" in found["next_action"]
    assert audited.findings(name, "cloned-volume") == []


def test_an_agents_suspicion_is_confirmed(audited):
    """What `setup` suspects on one of the pods is the same thing."""
    found = audited.finding(two_processes_fence_each_other, RULE)
    assert found["confirms"] == ["setup-pod-a-0_0"]


def test_a_stopped_process_ends_it(audited):
    """The volume is still a clone, which `cloned-volume` goes on to tell."""
    assert audited.finding(one_of_them_was_stopped, RULE)["status"] == "resolved"
    assert audited.finding(one_of_them_was_stopped, "cloned-volume")["status"] == "open"


@pytest.mark.parametrize("name", [the_copy_lies_idle, the_volume_moved, clocks_differ, each_has_its_own])
def test_one_living_process_is_quiet(audited, name):
    """An idle clone, a volume that moves, an overlap within what clocks differ, and two ids are none."""
    assert audited.findings(name, RULE) == []


def test_an_idle_clone_is_the_other_rules(audited):
    """No process lives on the copy: `cloned-volume` warns before one does."""
    assert audited.finding(the_copy_lies_idle, "cloned-volume")["severity"] == "warning"
