"""What the series cost, and that Prometheus' own linter has nothing to say about them."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Sequence

import pytest

from agent.detectors import DETECTORS
from agent.engine.rows import StoreRow, TaskRow
from agent.judging.base import Detector
from agent.preflight.checks import CHECKS
from agent.publish.catalogue import SERIES_BUDGET, SERIES_BUDGET_BY_STORE
from agent.publish.exposition import Exposition
from agent.publish.series_scope import reach_of, series_of
from agent.publish.snapshot import MetricsSnapshot

TASKS, STORES = 20, 3


def lines(by_store: bool, detectors: Sequence[Detector] = DETECTORS) -> list[str]:
    """Scrape one agent with 20 tasks of 3 stores."""
    stores = tuple(StoreRow(f"store-{number}", True, 1, 1, 1) for number in range(STORES))
    tasks = tuple(
        TaskRow("orders", f"0_{number}", True, 1, 1, 1, 1, 1, 1, stores=stores if by_store else ())
        for number in range(TASKS)
    )
    snapshot = MetricsSnapshot(
        agent_version="1",
        applications=("orders",),
        tasks=tasks,
        exactly_once={"orders": True},
        resident_memory_bytes=1,
        preflight=dict.fromkeys(CHECKS, 0),
    )
    text = Exposition(lambda: snapshot, [reach_of(x.meta) for x in detectors]).answer()[1].decode()
    return text.splitlines()


def test_the_series_budget_holds() -> None:
    """20 tasks of 3 stores stay inside the budget that docs/metrics.md states, and stores cost what it says."""
    counted = {by_store: sum(not x.startswith("#") for x in lines(by_store)) for by_store in (False, True)}
    without = sum(not x.startswith("#") for x in lines(by_store=False, detectors=()))
    assert without <= SERIES_BUDGET
    assert counted[False] - without <= sum(sum(series_of(reach_of(x.meta))) for x in DETECTORS)
    assert counted[True] - counted[False] == TASKS * STORES * SERIES_BUDGET_BY_STORE


@pytest.mark.packages
def test_promtool_finds_nothing() -> None:
    """`promtool check metrics` reads the exposition and complains about no name, type or help."""
    promtool = shutil.which("promtool")
    if promtool is None:
        pytest.skip("no promtool: apt-get install prometheus (see docs/metrics.md)")
    text = "\n".join(lines(by_store=True)) + "\n"
    checked = subprocess.run([promtool, "check", "metrics"], input=text, capture_output=True, text=True)
    assert (checked.returncode, checked.stdout, checked.stderr) == (0, "", "")
