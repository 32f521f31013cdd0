"""One process id on two pods: alive on both, idle on one, one after the other."""

from __future__ import annotations

import pytest

from agent.contract.events import Kind
from tests.spark_rollup.support.fleet import Fleet, Pod, cases, says

RULE = "cloned-process"
TWO = {
    "pods": ["pod-a", "pod-b"], "evidence": "process id p-1 is alive on pod-a and on pod-b",
    "next_action": ("kafka-streams-process-metadata", "If both use one claim, delete nothing"),
}  # fmt: skip
"""Both live at once: told by this rule only, with what to do for a copy and for a shared claim."""


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


@says("cloned-volume")
@says(RULE, loud="critical confirmed open", confirms=["setup-pod-a-0_0"], **TWO)
def two_processes_fence_each_other(fleet: Fleet) -> None:
    for name, second in (("pod-a", 0), ("pod-b", 1)):
        pod = shows(fleet.pod(name))
        for at in range(100, 880, 20):  # each holds what the other is about to wipe
            pod.holds("0_0", at + 10 * second).releases("0_0", at + 10 * second + 5)
        # the stores were recreated on each: nothing but the process id is left of the clone
        pod.measures("0_0", 870 + second, held=None, identity=f"own-{name}", puts=5)
    fleet.pods[0].finds("setup", "0_0", 100, severity="warning", mechanism="shared-state")


@says("cloned-volume")
@says(RULE, loud="warning suspected open", **TWO)
def two_idle_processes_that_are_seen(fleet: Fleet) -> None:
    """A process without stores on disk does not use the id that lies there; who holds tasks does."""
    for name in ("pod-a", "pod-b"):
        lives(shows(fleet.pod(name)), 20)


@says("cloned-volume", status="open")
@says(RULE, status="resolved")
def one_of_them_was_stopped(fleet: Fleet) -> None:
    """The volume is still a clone, which `cloned-volume` goes on to tell."""
    for name, end in (("pod-a", 880), ("pod-b", 300)):
        lives(shows(fleet.pod(name)), 20, end)


@says("cloned-volume")
@says(RULE, loud="critical confirmed open", pods=["pod-a", "pod-b"])
def one_of_them_fell_silent(fleet: Fleet) -> None:
    """Nobody knows that it ended: its agent did not say so."""
    shows(fleet.pod("pod-a")).holds("0_0", 5)
    shows(fleet.pod("pod-b", ends_s=500, announces_end=False), ends_s=500).holds("0_1", 5)


@says("cloned-volume")
@says(RULE, loud="critical confirmed open", pods=["pod-a", "pod-b"])
def one_of_them_is_not_seen_any_more(fleet: Fleet) -> None:
    shows(fleet.pod("pod-a")).holds("0_0", 5)
    shows(fleet.pod("pod-b").is_blind(500, None), ends_s=500).holds("0_1", 5)


@says("cloned-volume", status="resolved")
@says(RULE, loud="critical confirmed resolved", pods=["pod-a", "pod-b"])
def one_of_them_came_back_as_another(fleet: Fleet) -> None:
    """It was watched for some rounds since, and shows another id."""
    shows(fleet.pod("pod-a")).holds("0_0", 5)
    shows(fleet.pod("pod-b").is_blind(400, 500), ends_s=400).holds("0_1", 5)
    shows(fleet.pods[1], begins_s=500, process_id="p-2")


@says("cloned-volume", severity="warning")
@says(RULE)
def the_copy_lies_idle(fleet: Fleet) -> None:
    """No process lives on the copy: `cloned-volume` warns before one does."""
    shows(fleet.pod("pod-a")).holds("0_0", 5)
    shows(fleet.pod("pod-b"))


@says(RULE)
def the_volume_moved(fleet: Fleet) -> None:
    shows(fleet.pod("pod-a", ends_s=400), ends_s=400).holds("0_0", 5).releases("0_0", 398)
    shows(fleet.pod("pod-b", begins_s=402), begins_s=402).holds("0_0", 410)


@says(RULE)
def clocks_differ(fleet: Fleet) -> None:
    """The overlap is within what clocks differ."""
    shows(fleet.pod("pod-a", ends_s=420), ends_s=420).holds("0_0", 5)
    shows(fleet.pod("pod-b", begins_s=350), begins_s=352).holds("0_0", 412)


@says(RULE)
def each_has_its_own(fleet: Fleet) -> None:
    for name in ("pod-a", "pod-b"):
        shows(fleet.pod(name), process_id=f"own-{name}").holds("0_0", 5)


@pytest.mark.parametrize(("name", "rule", "expected"), cases(__name__))
def test_cases(audited, name, rule, expected):
    """What each story has beside it."""
    audited.check(name, rule, expected)
