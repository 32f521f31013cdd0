"""What the agents of a recorded run would have shown the alerts."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from agent.config import Config, load_config
from agent.contract.events import Record
from agent.engine.pipeline import Pipeline
from agent.publish.finding_rows import task_rows
from agent.replay.memory_disk import MemoryDisk
from agent.replay.run import first_time_us, replay
from deploy.demo.scenarios import load_scenario

TRACES = Path(__file__).resolve().parents[1] / "data" / "traces"
BENIGN = tuple(
    sorted(path.name for path in TRACES.iterdir() if path.name.startswith(("benign-", "control-")))
)
_AFTER_US = 1_200_000_000
"""So long does the clock run on after the last operation."""

Shown = frozenset[tuple[str, str]]
"""(detector, severity) of rows of `statewarden_task_findings`."""


@cache
def rows_shown(recording: str) -> Shown:
    """Replay a recording, once, with what its operator would tell; give every row that was ever there."""
    scenario = load_scenario(TRACES / recording)
    config = load_config(sets=[f"{key}={value}" for key, value in scenario.settings.items()])
    return frozenset().union(*(_of(trace, config) for trace in scenario.traces.values()))


def _of(trace: Path, config: Config) -> Shown:
    shown = set[tuple[str, str]]()

    def look(record: Record) -> None:
        rows, _ = task_rows(pipeline.ledger, record.observed_at_us)
        shown.update((row.detector, row.severity.value) for row in rows)

    disk = MemoryDisk()
    pipeline = Pipeline(disk, config.applications, first_time_us(trace), look)
    replay(trace, pipeline, disk, _AFTER_US)
    return frozenset(shown)
