"""What the alerts' own tests say of benign twins is what the recordings show."""

from __future__ import annotations

import pytest

from agent.detectors import DETECTORS
from spark_rollup.correlate import RULES
from tests.support.rows_shown import TRACES, rows_shown
from tools.alerts import twins
from tools.alerts.files import groups
from tools.alerts.model import Alert

WITHOUT = {"ephemeral-state-dir", "missing-fact"}
"""Detectors that judge a volume or settings: no run of an application looks like that."""


def test_every_unit_has_its_twin() -> None:
    """A new detector or rule brings its benign look-alike, or is told here why it cannot."""
    assert set(twins.DETECTORS) == {x.meta.id for x in DETECTORS} - WITHOUT
    assert set(twins.RULES) == {x.meta.id for x in RULES}


@pytest.mark.parametrize("detector", list(twins.DETECTORS))
def test_a_twin_shows_what_its_alerts_are_tested_with(detector: str) -> None:
    """Over the whole run the detector shows the stated severity, or nothing."""
    twin = twins.DETECTORS[detector]
    severities = {severity for found, severity in rows_shown(twin.recording) if found == detector}
    assert severities == ({twin.shows.value} if twin.shows else set())


@pytest.mark.parametrize("name", [*twins.DETECTORS, *(f"fleet-{rule}" for rule in twins.RULES)])
def test_every_alert_of_a_unit_is_tested_with_its_twin(name: str) -> None:
    """Each has a promtool case that names the recording and expects silence, or is the reading of an info."""
    rule = name.removeprefix("fleet-")
    twin = twins.RULES[rule] if rule != name else twins.DETECTORS[name]
    alerts: tuple[Alert, ...] = dict(groups())[name]
    for alert in alerts:
        (case,) = (case for case in alert.cases if twin.recording in case.name)
        assert case.labels is None
        assert (TRACES / twin.recording / "scenario.json").is_file()


def test_recordings_are_there() -> None:
    """The noise of a run that does not exist proves nothing."""
    used = {twin.recording for twin in (*twins.DETECTORS.values(), *twins.RULES.values())}
    assert [name for name in used if not (TRACES / name).is_dir()] == []
