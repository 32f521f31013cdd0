"""What an audit prints first: its verdict, and what keeps it from being an all-clear."""

from __future__ import annotations

from pathlib import Path

from spark_rollup.report.terminal import Shown, readable
from spark_rollup.report.write import Outcome


def first_line(*not_given: str, elsewhere: tuple[str, ...] = ()) -> str:
    """Print an audit without any incident, of an application in two namespaces whose agents lack these settings."""
    row = {"namespace": "", "application_id": "orders", "release": "4.1.2", "not_given": list(not_given)}
    other = {**row, "namespace": "shop", "not_given": list(elsewhere)}
    outcome = Outcome(
        findings=[],
        page=Path("out/report.html"),
        as_of="2026-11-21T03:06:15Z",
        quarantined=0,
        releases=[row, other],
    )
    return readable(outcome, Shown())[0]


def test_no_all_clear_without_the_settings_that_decide():
    """Without guarantee or release the agents' detectors are silent: that is said where nothing is open."""
    assert first_line("kafka_streams_version", "processing_guarantee").startswith(
        "no incident open; no all-clear: agents were not given kafka_streams_version, processing_guarantee"
        " for orders ("
    )


def test_nothing_is_said_of_settings_that_were_given():
    """The verdict is short where nothing is missing."""
    assert first_line().startswith("no incident open (")


def test_each_namespace_counts():
    """One name in two namespaces is two applications; what either lacks is named."""
    line = first_line("kafka_streams_version", elsewhere=("processing_guarantee",))
    assert "agents were not given kafka_streams_version, processing_guarantee for orders (" in line
