"""Recorded runs with the agent restarted in the middle: no new alarm, and no bug forgotten."""

from __future__ import annotations

import json
from collections import Counter
from functools import cache

import pytest

from agent.config import load_config
from agent.contract.events import Severity, Status
from agent.contract.finding import Finding
from agent.engine.pipeline import Pipeline
from agent.home.baseline import compose, understand
from tests.agent.engine.playing import Run, operations_of, run_of, sets_of
from tests.agent.home.restarting import STATE

BUGS = [("kafka-20685-4.1.2", "pod-a"), ("torn-clean-3.9.2", "pod-a"), ("kafka-16017-3.6.1", "pod-a")]
QUIET = [
    ("benign-restart-eos-4.1.2", "pod-a"),
    ("benign-restart-alos-4.3.1", "pod-a"),
    ("benign-eos-crash-2.1.1", "pod-a"),
]


def restarted_run(scenario: str, pod: str, *, at: float, away: int) -> Run:
    """Play a recording; at a part of it restart the agent, which misses so many operations."""
    operations = operations_of(scenario, pod)
    cut = int(len(operations) * at)
    run = Run(operations[0].at_us, sets_of(scenario))
    for operation in operations[:cut]:
        run.play(operation)
    until_us = run.now_us
    lines = [json.loads(json.dumps(x)) for x in compose(run.pipeline, STATE, until_us, "SIGTERM")]
    for operation in operations[cut : cut + away]:
        run.disk.apply(operation)
        run.player.hints(operation)
        run.now_us = max(run.now_us, operation.at_us)
    found = understand(iter(lines), STATE, until_us)
    run.pipeline = Pipeline(run.disk, load_config(sets=run.sets).applications, run.now_us, run.records.append)
    run.pipeline.resume(found.inventory, found.findings, until_us, "it was stopped")
    run.pipeline.scan(run.now_us)
    for operation in operations[cut + away :]:
        run.play(operation)
    run.rest()
    return run


def loud(run: Run) -> Counter[tuple[str, str | None]]:
    """Count the findings of warning and above by detector and task."""
    return Counter((x.detector, x.task_id) for x in about_application(run) if x.severity.rank >= 1)


def about_application(run: Run) -> list[Finding]:
    """Give the findings that are not about the agent."""
    return [x for x in run.pipeline.ledger.findings() if x.detector != "auditor-blind"]


@cache
def loud_uninterrupted(scenario: str, pod: str) -> Counter[tuple[str, str | None]]:
    """Count what an agent finds that is not restarted."""
    return loud(run_of(scenario, pod))


@pytest.mark.parametrize("at", [0.2, 0.5, 0.8])
@pytest.mark.parametrize(("scenario", "pod"), BUGS)
def test_a_bug_is_found_although_the_agent_was_restarted(scenario: str, pod: str, at: float) -> None:
    """What an uninterrupted agent finds is found, at least as a suspicion, and nothing louder is added."""
    whole, broken = loud_uninterrupted(scenario, pod), restarted_run(scenario, pod, at=at, away=0)
    assert whole
    told = {(x.detector, x.task_id) for x in about_application(broken)}
    assert whole.keys() <= told
    assert loud(broken).keys() <= whole.keys()


@pytest.mark.parametrize(("at", "away"), [(0.15, 0), (0.4, 7), (0.65, 200), (0.9, 30)])
@pytest.mark.parametrize(("scenario", "pod"), QUIET)
def test_a_restart_raises_no_alarm(scenario: str, pod: str, at: float, away: int) -> None:
    """In a run in which nothing goes wrong, however long the agent is away: no more than without a restart."""
    broken = restarted_run(scenario, pod, at=at, away=away)
    assert loud(broken).keys() <= loud_uninterrupted(scenario, pod).keys()


@pytest.mark.parametrize(("scenario", "at", "away"), [
    ("kafka-20685-3.9.2", 297.5 / 405, 300), ("kafka-20685-promoted-3.8.1", 180.5 / 253, 300),
    ("kafka-20685-promoted-4.2.1", 136.5 / 251, 30),  # killed meanwhile, too: its checkpoint is still the old one
])  # fmt: skip
def test_what_a_start_trusted_stays_although_nobody_saw_the_start(
    scenario: str, at: float, away: int
) -> None:
    """The application was started while no agent watched, and had been killed before that."""
    pod = "pod-b" if "3.8.1" in scenario else "pod-a"
    broken = restarted_run(scenario, pod, at=at, away=away)
    told = {(x.detector, x.task_id, x.severity, x.status) for x in about_application(broken)}
    assert ("skipped-eos-wipe", "0_0", Severity.WARNING, Status.OPEN) in told


@pytest.mark.parametrize("removals", range(5, 9))
def test_a_torn_store_is_reported_wherever_the_deletion_was_seen_last(removals: int) -> None:
    """The agent ends after the last of some removals, and the deletion with its process: the next agent says so."""
    broken = restarted_run("torn-clean-3.9.2", "pod-a", at=(165 + removals + 0.5) / 353, away=0)
    assert ("torn-store", "0_0") in {(x.detector, x.task_id) for x in about_application(broken)}


@pytest.mark.twin_of(
    "data-beyond-changelog",
    "nobody saw its end: an offset may have been written there, and read by the next owner",
)
def test_an_offset_that_came_and_went_unseen_was_trusted() -> None:
    """2.5.1: the close wrote 900, the next start read it and deleted it, and the changelog had nothing to give."""
    operations = operations_of("control-9891-2.5.1", "pod-a")
    broken = restarted_run("control-9891-2.5.1", "pod-a", at=996.5 / len(operations), away=100)
    assert [x for x in broken.records if x.body.get("severity") == "critical"] == []
