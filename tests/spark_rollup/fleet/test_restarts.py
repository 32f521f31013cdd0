"""What a pod's own agent says of its copy counts for that pod, whichever pod a rule names."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from agent.contract.audited import gather
from spark_rollup.fleet.meta import Row
from spark_rollup.fleet.reduce import Question
from spark_rollup.judging.plain import Plain
from spark_rollup.report.restart_answer import with_steps
from tests.spark_rollup.correlate.test_diverged_replica import stands
from tests.spark_rollup.support.fleet import HORIZON_S, Fleet, at_us
from tests.spark_rollup.support.plain import events_of, tables

POOR, FULL, WELL = "pod-a", "pod-b", "pod-c"


def told_of(*findings: tuple[int, str, str]) -> Mapping[str, Row]:
    """Tell of a poorer copy, a fuller one and one that is well; give the answer of each pod."""
    fleet = Fleet("shop")
    pods = [fleet.pod(name) for name in (POOR, FULL, WELL)]
    pods[0].configures(1, "3.9.2", num_standby_replicas=2, processing_guarantee="at_least_once")
    for pod in pods:
        pod.holds("0_0", 5).measures("0_0", HORIZON_S - 100, offset=1000, puts=1000, bytes=5000)
    stands(pods[0], 60, 1000, 40, 50)
    stands(pods[1], 70, 1000, 900, 1000)
    for number, detector, severity in findings:
        pods[number].finds(detector, "0_0", 81, severity=severity)
    found = tables(events_of(fleet.lines()), at_us(HORIZON_S))
    (rule,) = (x for x in found["findings"] if x["detector"] == "diverged-replica")
    assert (rule["pod"], rule["severity"]) == (POOR, "critical")
    return {x["pod"]: x for x in found["restarts"]}


@pytest.mark.parametrize("also", [(), ((0, "resurrected-checkpoint", "critical"),)])
def test_of_two_unequal_copies_the_one_that_its_agent_reports_is_damaged(
    also: tuple[tuple[int, str, str], ...],
) -> None:
    """The rule speaks of the poorer one; that a third is well makes the restart of the fuller one no safer."""
    told = told_of((1, "false-clean-store", "critical"), *also)
    assert (told[POOR]["answer"], told[FULL]["answer"]) == ("damaged", "damaged")


def test_what_an_agent_suspects_is_not_settled_by_the_damage_of_another_copy() -> None:
    """Of both copies an agent says that they are wrong, of one for sure."""
    told = told_of((0, "resurrected-checkpoint", "critical"), (1, "false-clean-store", "warning"))
    assert told[POOR]["answer"] == "damaged"
    assert (told[FULL]["answer"], told[FULL]["doubt"]) == ("unknown", "open: false-clean-store")


def test_what_is_to_be_done_first_is_told_where_an_agent_named_a_task() -> None:
    """The rule speaks of all of a pod; its incident has the task of which the agent on a third pod says the same."""
    fleet = Fleet("shop")
    for name in ("pod-a", "pod-b", "pod-c"):
        pod = fleet.pod(name).holds("0_0", 5)
        for at in (60, 120, 180):
            pod.measures("0_0", at, identity="one" if name < "pod-c" else "own", puts=5, offset=5)
        if name > "pod-a":
            pod.finds("shared-state-dir", "0_0", 100, incident_id="i-1", severity="warning", level="exposure")
    found = tables(events_of(fleet.lines()), at_us(200))
    assert all("shared-state-dir" not in x["follow"] for x in found["restarts"])
    whole = [x for x in with_steps(found["restarts"], gather(found["findings"])) if x["task_id"] is None]
    steps = {x["pod"]: str(x["first_action"]).partition(" cleanly")[0] for x in whole}
    assert steps == dict.fromkeys(("pod-a", "pod-b"), "Stop the instance on pod-b")


def test_who_holds_what_should_have_been_wiped_is_not_safe() -> None:
    """The rule's step is for the pod that got the task since, too; the next audit says when it is repaired."""
    fleet = Fleet("shop")
    suspect, heir = fleet.pod(POOR), fleet.pod(FULL)
    suspect.configures(1, "4.1.2", num_standby_replicas=0, processing_guarantee="exactly_once_v2")
    suspect.holds("0_0", 5).releases("0_0", 100).measures("0_0", 30, identity="suspect", puts=10, offset=10)
    suspect.finds("skipped-eos-wipe", "0_0", 60, store="s", identity="suspect")
    heir.holds("0_0", 110).measures("0_0", HORIZON_S - 100, identity="heir", puts=10, offset=10)
    found = tables(events_of(fleet.lines()), at_us(HORIZON_S))
    (rule,) = (x for x in found["findings"] if x["detector"] == "stale-eos-state")
    assert rule["pods"] == [POOR, FULL]
    told = {x["pod"]: x for x in found["restarts"]}
    assert told[POOR]["answer"] == "damaged"
    assert (told[FULL]["answer"], told[FULL]["doubt"]) == ("unknown", "open: stale-eos-state")


def test_the_unread_end_of_what_an_agent_said_is_in_doubt_on_its_pod_only() -> None:
    """Who has no other copy than that pod's is in doubt, too."""
    fleet = Fleet("shop")
    pods = [fleet.pod(name) for name in (POOR, FULL, WELL)]
    pods[0].configures(1, "3.9.2", num_standby_replicas=1)
    for pod, task in zip((*pods, pods[2], pods[1]), ("0_0", "0_0", "0_1", "0_2", "0_2"), strict=True):
        pod.holds(task, 5).measures(task, HORIZON_S - 100, offset=1000, puts=1000)
    events = [x for x in events_of(fleet.lines()) if x.phase != "stopping"]
    found = Plain(events, unfinished={"/u/b-1-99.jsonl": "shop/pod-a"}).told(Question(at_us(HORIZON_S)))
    told = {(x["task_id"], x["pod"]): x["answer"] for x in found.of("restarts")}
    assert told == {
        ("0_0", POOR): "unknown", ("0_0", FULL): "unknown", ("0_1", WELL): "restore",
        ("0_2", WELL): "safe", ("0_2", FULL): "safe",
    }  # fmt: skip


@pytest.mark.parametrize("is_read", [True, False])
def test_a_copy_of_which_nothing_is_read_yet_is_none_to_rely_on(is_read: bool) -> None:
    """A pod that just got the task tells of its stores with its next summary; until then it may have anything."""
    fleet = Fleet("shop")
    full, fresh = fleet.pod(FULL), fleet.pod(POOR)
    full.configures(1, "3.9.2", num_standby_replicas=1).holds("0_0", 5)
    full.measures("0_0", HORIZON_S - 60, offset=1000, puts=1000)
    fresh.holds("0_0", HORIZON_S - 50)
    if is_read:
        fresh.measures("0_0", HORIZON_S - 10, offset=1000, puts=1000)
    told = {x["pod"]: x["answer"] for x in tables(events_of(fleet.lines()), at_us(HORIZON_S))["restarts"]}
    assert told[FULL] == ("safe" if is_read else "unknown")


@pytest.mark.parametrize("is_new", [True, False])
def test_what_a_deleted_store_had_is_not_what_the_new_one_has(is_new: bool) -> None:
    """A store that is being restored tells no offset (up to 3.7): the last one known was that of its predecessor."""
    fleet = Fleet("shop")
    full, fresh = fleet.pod(FULL), fleet.pod(POOR)
    full.configures(1, "3.6.2", num_standby_replicas=1).holds("0_0", 5)
    fresh.holds("0_0", 5).measures("0_0", 100, identity="old", offset=1_000_000, puts=1_000_000)
    if is_new:
        fresh.releases("0_0", 200).deletes_task("0_0", 210).holds("0_0", 300).creates_store("0_0", 300, "new")
    for at in range(360, HORIZON_S, 60):
        full.measures("0_0", at, identity="full", offset=1_000_000 + at, puts=1_000_000)
        fresh.measures("0_0", at, identity="new" if is_new else "old", puts=at)
    told = {x["pod"]: x["answer"] for x in tables(events_of(fleet.lines()), at_us(HORIZON_S))["restarts"]}
    assert told == {FULL: "keep" if is_new else "safe", POOR: "safe"}
