"""Alert noise: what every recorded benign run would have shown Prometheus never holds a row that pages."""

from __future__ import annotations

from pathlib import Path

import pytest

from agent.config import load_config
from agent.contract.events import Record, Severity
from agent.replay.memory_disk import MemoryDisk
from agent.runtime.finding_rows import task_rows
from agent.runtime.pipeline import Pipeline
from agent.runtime.replay_run import first_time_us, replay
from deploy.demo.scenarios import Scenario, load_scenario

TRACES = Path(__file__).resolve().parents[1] / "data" / "traces"
BENIGN = sorted(path.name for path in TRACES.iterdir() if path.name.startswith(("benign-", "control-")))


def loudest_rows(scenario: Scenario, trace: Path) -> set[tuple[str, str]]:
    """Replay a run; give (detector, severity) of every row of `statewarden_task_findings` that it ever showed."""
    config = load_config(sets=[f"{key}={value}" for key, value in scenario.settings.items()])
    disk, shown = MemoryDisk(), set[tuple[str, str]]()
    pipeline = Pipeline(disk, config.applications, first_time_us(trace), lambda record: look(record))

    def look(record: Record) -> None:
        for row in task_rows(pipeline.ledger, record.observed_at_us)[0]:
            if row.severity is Severity.CRITICAL:
                shown.add((row.detector, row.severity.value))

    replay(trace, pipeline, disk, 1_200_000_000)
    return shown


@pytest.mark.parametrize("name", BENIGN)
def test_a_benign_run_never_pages(name: str) -> None:
    """At no moment of the run is there a series that a paging alert looks at."""
    scenario = load_scenario(TRACES / name)
    if scenario.expected:
        assert all(expected.severity != "critical" for expected in scenario.expected)
    for trace in scenario.traces.values():
        assert loudest_rows(scenario, trace) == set()
