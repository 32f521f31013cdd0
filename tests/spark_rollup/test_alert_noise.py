"""Alert noise of a simulated fleet: what its agents and audits would have shown pages for its bugs only."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from agent.contract.events import Severity
from tests.prove.alert_noise import SMALL, measure

pytestmark = [pytest.mark.spark, pytest.mark.packages, pytest.mark.slow, pytest.mark.timeout(600)]


def test_a_simulated_fleet_pages_for_its_bugs_only(delta: SparkSession, tmp_path: Path) -> None:
    """`make prove` in small: agents' and audits' series of a simulated fleet, evaluated by Prometheus' rule engine."""
    if shutil.which("promtool") is None:
        pytest.skip("no promtool: apt-get install prometheus")
    noise = measure(delta, SMALL, tmp_path, print)
    assert (noise.wrong(), noise.unpaged()) == (set(), set())
    assert noise.pages()
    asks = {Severity.CRITICAL.value, Severity.WARNING.value}
    assert [x for x in noise.fired if x.application_id not in noise.truth.buggy and x.severity in asks] == []
