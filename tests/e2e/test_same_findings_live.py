"""The same recordings, materialised under live agents, lead to the same findings as a replay.

All pods of all scenarios run side by side at the recorded speed, once for the whole module.
"""

from __future__ import annotations

import io
import json
import time
from collections import Counter
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from agent.cli import main as statewarden
from deploy.demo.agents import Agent
from deploy.demo.materialise import materialise_fleet
from deploy.demo.scenarios import Scenario, load_scenario
from tests.spark_rollup.support.plain import events_of_data, tables
from tests.support.recorded_fleet import EXPECTED
from tests.support.shipped import Data, last_findings, shipped_records

REPOSITORY = Path(__file__).resolve().parents[2]
TRACES = REPOSITORY / "tests" / "data" / "traces"
BUGS = ("torn-clean-3.9.2", "kafka-20685-4.1.2", "kafka-7672-eos")
BENIGN = ("benign-restart-alos-4.3.1", "benign-eos-crash-2.1.1")
QUIET_S = 3  # how long the clock keeps running after the last operation, live as in the replay

pytestmark = [pytest.mark.e2e, pytest.mark.inotify, pytest.mark.timeout(600)]


@dataclass(frozen=True)
class LiveRun:
    """What came of the run: everything shipped, and the state directories as they are now."""

    shipped: Path
    records: list[Data]
    agents: Mapping[str, Agent]


def pod_name(scenario: Scenario, recorded_name: str) -> str:
    """Give a recorded pod a name that is unique among all scenarios."""
    return f"{scenario.id}-{recorded_name}"


@pytest.fixture(scope="module")
def scenarios() -> Mapping[str, Scenario]:
    return {name: load_scenario(TRACES / name) for name in (*BUGS, *BENIGN)}


@pytest.fixture(scope="module")
def live(scenarios: Mapping[str, Scenario], tmp_path_factory: pytest.TempPathFactory) -> LiveRun:
    base = tmp_path_factory.mktemp("live")
    shipped = base / "shipped"
    agents: dict[str, Agent] = {}
    with ExitStack() as stack:
        for scenario in scenarios.values():
            for recorded_name in scenario.traces:
                pod = pod_name(scenario, recorded_name)
                state = base / "state" / pod
                state.mkdir(parents=True)
                agents[pod] = Agent(pod, state, base / "agents" / pod, shipped, scenario.settings)
                stack.callback(agents[pod].kill)
        for agent in agents.values():
            agent.wait_ready()

        def repeat(scenario: Scenario) -> None:
            materialise_fleet(
                {
                    pod_name(scenario, name): (trace, base / "state" / pod_name(scenario, name))
                    for name, trace in scenario.traces.items()
                }
            )

        with ThreadPoolExecutor(len(scenarios)) as threads:
            list(threads.map(repeat, scenarios.values()))
        time.sleep(QUIET_S)  # not waiting for anything: the quiet period is part of what is repeated
        with ThreadPoolExecutor(len(agents)) as threads:
            assert set(threads.map(Agent.stop, agents.values())) == {0}
    return LiveRun(shipped, shipped_records(shipped), agents)


def replayed(scenario: Scenario, recorded_name: str) -> list[dict[str, Any]]:
    """Replay one pod's trace with the same settings."""
    sets = [part for key, value in scenario.settings.items() for part in ("--set", f"{key}={value}")]
    words = ["replay", str(scenario.traces[recorded_name]), "--json", *sets]
    words += ["--pod", pod_name(scenario, recorded_name), "--quiet-period", f"{QUIET_S}s"]
    with redirect_stdout(io.StringIO()) as printed:
        assert statewarden(words) in (0, 1)
    rows = [json.loads(line) for line in printed.getvalue().splitlines()]
    return [row for row in rows if row["line"] == "finding"]


def said(finding: Mapping[str, Any]) -> tuple[str, ...]:
    """Keep what both ways must agree on."""
    names = ("detector", "task_id", "store", "level", "severity", "confidence", "status", "affected")
    return tuple(str(finding.get(name) or "") for name in names)


@pytest.mark.parametrize("name", [*BUGS, *BENIGN])
def test_a_live_agent_finds_what_a_replay_finds(
    scenarios: Mapping[str, Scenario], live: LiveRun, name: str
) -> None:
    """Detector, task, severity, confidence and final status are the same, pod by pod."""
    scenario = scenarios[name]
    for recorded_name in scenario.traces:
        pod = pod_name(scenario, recorded_name)
        of_pod = [data for data in last_findings(live.records) if data["pod"] == pod]
        assert Counter(map(said, of_pod)) == Counter(map(said, replayed(scenario, recorded_name))), pod


@pytest.mark.parametrize("name", BUGS)
def test_a_live_agent_finds_the_recorded_bug(
    scenarios: Mapping[str, Scenario], live: LiveRun, name: str
) -> None:
    """Every finding that the recording must lead to was made, by the agent of that pod."""
    scenario = scenarios[name]
    records = [data for data in live.records if data["kind"] == "finding"]
    assert scenario.expected
    for item in scenario.expected:
        assert any(
            data["pod"] == pod_name(scenario, item.pod)
            and data["detector"] in item.detectors
            and data["task_id"] == item.task_id
            and item.severity in (None, data["severity"])
            for data in records
        ), item


@pytest.mark.parametrize("name", BENIGN)
def test_a_live_agent_is_quiet_on_benign_runs(
    scenarios: Mapping[str, Scenario], live: LiveRun, name: str
) -> None:
    """Nothing above info was ever said about a run in which nothing went wrong."""
    loud = [
        data
        for data in live.records
        if data["kind"] == "finding" and data["pod"].startswith(name) and data["severity"] != "info"
    ]
    assert loud == []


def test_nothing_is_missing_from_what_was_shipped(live: LiveRun) -> None:
    """Each agent's sequence runs from 1 to its last word without a hole, and nothing was dropped."""
    for pod in live.agents:
        of_pod = [data for data in live.records if data["pod"] == pod]
        assert [data["sequence"] for data in of_pod] == list(range(1, len(of_pod) + 1))
        assert of_pod[-1]["kind"] == "lifecycle"
        assert of_pod[-1]["phase"] == "stopping"
    assert [data for data in live.records if data["kind"] == "drop"] == []


def test_the_fleet_confirms_what_live_agents_shipped(
    scenarios: Mapping[str, Scenario], live: LiveRun
) -> None:
    """Each bug by the rule and on the pod that the recording is known for."""
    for scenario in scenarios.values():
        pods = {pod_name(scenario, name): name for name in scenario.traces}
        records = [data for data in live.records if data["pod"] in pods]
        as_of_us = max(data["observed_at_us"] for data in records)
        told = tables(events_of_data(records), as_of_us)["findings"]
        loud = [row for row in told if row["reported_by"] == "fleet" and row["severity"] != "info"]
        found = {
            (row["detector"], row["task_id"], pods[row["pod"]] if row["pod"] else None, row["severity"])
            for row in loud
        }
        assert found == EXPECTED.get(scenario.id, set()), scenario.id
        # as sure as the agent, whose recording ends before it can be: see the tests of the recordings
        unsure = {row["detector"] for row in loud if row["confidence"] != "confirmed"}
        assert unsure <= {"stale-eos-state"}, scenario.id
