"""Detector `lost-segment`: a new topology has the windowed store no more, and its files stay."""

from __future__ import annotations

import pytest

from agent.contract.events import Severity, Status
from tests.support.scenario import KEY_VALUE, Scenario
from tests.support.scenario_script import play
from tests.support.scenario_segments import CROSSED, KILL, windowed

OUT = pytest.mark.twin_of("lost-segment", "a process runs the task without the store")


def _at_rest(run: Scenario) -> Status:
    (finding,) = (x for x in run.findings("lost-segment") if x.severity is Severity.CRITICAL)
    return finding.status


@pytest.mark.parametrize(
    ("seconds", "status"), [(9, Status.OPEN), pytest.param(60, Status.RESOLVED, marks=OUT)]
)
def test_a_new_topology_runs_without_the_store(seconds, status):
    """What no start opens is no exposure while a process runs the task; after its end a rollback may open it."""
    run = play(windowed(), f"{CROSSED}, {KILL}")
    run.stores = {"renamed": KEY_VALUE}
    run.task("0_0").databases.clear()
    play(run, f"5 s, start, opens, {seconds} s")
    assert _at_rest(run) is status
    run.world.wait(60)
    late = run.world.attached_at(len(run.world.operations))
    late.wait(30)
    loud = [x for x in late.findings() if x.severity is Severity.CRITICAL and x.status is Status.OPEN]
    assert [x.detector for x in loud] == []
    play(run, "crash, 5 s")
    assert _at_rest(run) is Status.OPEN
