"""Recordings with windows of 0, 0.25, 1 and 5 s: the same findings, also where far more is merged than usual."""

from __future__ import annotations

from pathlib import Path

import pytest

from agent.contract.events import Kind
from agent.engine import windows
from tests.evaluate.run import TRACES, Told, evaluate

WINDOWS_US = (250_000, 1_000_000, 5_000_000)
EASILY = 2
"""A run of two readings: recordings have no longer ones that are fast, so none of their changes waits otherwise."""

MERGED = ("control-8187-2.2.2", "kafka-7672-gap")
LOUD = ("changelog-truncated-3.9.2",)


def findings(folder: Path, window_us: int, told: Told = Told.ALL) -> list[str]:
    """List the findings that an agent with such a window reports, with all that they say."""
    outcome = evaluate(folder, told=told, merge_window_us=window_us)
    assert (outcome.missed, outcome.false_alarms, outcome.faults) == ([], [], [])
    return [x for x in outcome.records if f'["{Kind.FINDING.value}"' in x]


@pytest.mark.parametrize("name", [pytest.param(MERGED[0], marks=pytest.mark.heavy), MERGED[1], *LOUD])
def test_windows_change_no_finding(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not even where a run of two counts as steady."""
    monkeypatch.setattr(windows, "CHECKPOINTS_KEPT", EASILY)
    exact = findings(TRACES / name, 0)
    assert exact
    assert [findings(TRACES / name, x) == exact for x in WINDOWS_US] == [True] * len(WINDOWS_US)


def test_something_is_merged(monkeypatch: pytest.MonkeyPatch) -> None:
    """With a run of two; with the agent's own rule these recordings are the same to the record."""
    folder = TRACES / MERGED[1]
    exact, usual = (evaluate(folder, merge_window_us=x).records for x in (0, 5_000_000))
    assert usual == exact
    monkeypatch.setattr(windows, "CHECKPOINTS_KEPT", EASILY)
    assert evaluate(folder, merge_window_us=5_000_000).records != exact


@pytest.mark.heavy
@pytest.mark.parametrize("told", [Told.ALL, Told.TWO, Told.NOTHING])
@pytest.mark.parametrize(
    "folder", sorted(x.parent for x in TRACES.glob("*/scenario.json")), ids=lambda x: x.name
)
def test_windows_change_no_finding_of_any_recording(
    folder: Path, told: Told, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All of them, whatever was configured."""
    monkeypatch.setattr(windows, "CHECKPOINTS_KEPT", EASILY)
    exact, *others = (evaluate(folder, told=told, merge_window_us=x) for x in (0, *WINDOWS_US))
    for other in others:
        assert [(pod, x) for pod, x in other.found] == exact.found
        assert (other.missed, other.false_alarms) == (exact.missed, exact.false_alarms)
