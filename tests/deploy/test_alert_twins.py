"""What the alerts' own tests say of benign twins is what the recordings show."""

from __future__ import annotations

from pathlib import Path

import pytest

from agent.detectors import DETECTORS
from deploy.demo.scenarios import load_scenario
from spark_rollup.registry import NAMING
from tests.evaluate.run import HARMLESS
from tests.support.every import every
from tests.support.replays import replayed
from tools.alerts.files import groups
from tools.alerts.model import Alert

TRACES = Path(__file__).resolve().parents[1] / "data" / "traces"
UNITS = {x.meta.id: x.meta.twin for x in DETECTORS} | {f"fleet-{x.id}": x.twin for x in NAMING}
TWINS = {name: twin for name, twin in UNITS.items() if twin is not None}
WITHOUT = {"undecided", "fleet-state-differs", "fleet-replicas-differ"}
"""What judges a volume, settings or contents: no recording of a run shows these."""


def test_every_unit_has_its_twin() -> None:
    """A new detector or rule brings its benign look-alike."""
    assert set(UNITS) - set(TWINS) == WITHOUT


@pytest.mark.slow
@every("detector", [name for name in TWINS if not name.startswith("fleet-")])
def test_a_twin_shows_what_its_alerts_are_tested_with(detector: str) -> None:
    """Over the whole run the detector shows the stated severity, or nothing."""
    twin = TWINS[detector]
    scenario = load_scenario(TRACES / twin.recording)
    shown = frozenset().union(*(replayed(x, scenario.settings).shown for x in scenario.traces.values()))
    assert {severity for found, severity in shown if found == detector} == (
        {twin.shows.value} if twin.shows else set()
    )
    if twin.recording.startswith(HARMLESS):
        assert "critical" not in {severity for _, severity in shown}, "`make evaluate` asks this of every one"


@every("name", TWINS)
def test_every_alert_of_a_unit_is_tested_with_its_twin(name: str) -> None:
    """Each has a promtool case that names the recording and expects silence, or is the reading of an info."""
    twin = TWINS[name]
    alerts: tuple[Alert, ...] = dict(groups())[name]
    for alert in alerts:
        (case,) = (case for case in alert.cases if twin.recording in case.name)
        assert case.labels is None


def test_recordings_are_there() -> None:
    """The noise of a run that does not exist proves nothing."""
    used = {twin.recording for twin in TWINS.values()}
    assert [name for name in used if not (TRACES / name / "scenario.json").is_file()] == []
