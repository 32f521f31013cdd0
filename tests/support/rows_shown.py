"""What the agents of a recorded run would have shown the alerts."""

from __future__ import annotations

from pathlib import Path

from deploy.demo.scenarios import load_scenario
from tests.support.replays import replayed

TRACES = Path(__file__).resolve().parents[1] / "data" / "traces"

Shown = frozenset[tuple[str, str]]
"""(detector, severity) of rows of `statewarden_task_findings`."""


def rows_shown(recording: str) -> Shown:
    """Replay a recording with what its operator would tell; give every row that was ever there."""
    scenario = load_scenario(TRACES / recording)
    return frozenset().union(*(replayed(x, scenario.settings).shown for x in scenario.traces.values()))
