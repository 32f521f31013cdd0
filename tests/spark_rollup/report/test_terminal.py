"""What an audit prints first: its verdict, and what keeps it from being an all-clear."""

from __future__ import annotations

from pathlib import Path

from agent.contract.events import Severity
from spark_rollup.cli import exit_code
from spark_rollup.report.page import PageData, render
from spark_rollup.report.terminal import Shown, readable
from tests.spark_rollup.report.page.page_rows import finding, page

REPORT = Path("out/report.html")


def nothing(**given: object) -> PageData:
    """Give what an audit found that found nothing."""
    return PageData(1_700_000_000_000_000, "1", **given)  # type: ignore[arg-type]


def first_line(*not_given: str, elsewhere: tuple[str, ...] = ()) -> str:
    """Print an audit without any incident, of an application in two namespaces whose agents lack these settings."""
    row = {"namespace": "", "application_id": "orders", "release": "4.1.2", "not_given": list(not_given)}
    other = {**row, "namespace": "shop", "not_given": list(elsewhere)}
    return readable(nothing(releases=[row, other]), REPORT, Shown())[0]


def test_no_all_clear_without_the_settings_that_decide():
    """Without guarantee or release the agents' detectors are silent: that is said where nothing is open."""
    assert first_line("kafka_streams_version", "processing_guarantee").startswith(
        "no incidents found; not an all-clear: agents were not given kafka_streams_version, processing_guarantee"
        " for orders ("
    )


def test_what_agents_count_and_is_not_there_is_no_all_clear():
    """It is said where nothing is open, and decides the exit code."""
    row = {
        "namespace": "shop", "pod": "orders-0", "first_seen": None, "span_seconds": 10.0, "unknown_seconds": 0.0,
        "missed_criticals": 0, "missed_warnings": 1,
    }  # fmt: skip
    found = nothing(coverage=[row])
    assert readable(found, REPORT, Shown())[0] == (
        "no incidents found; not an all-clear: agents count 1 warning that is not in the input (orders-0)"
        " (1 pod, 100.0 % of their time watched)"
    )
    assert found.worst_open() is Severity.WARNING
    elsewhere = {**row, "namespace": "eu-1/shop", "missed_warnings": 0}
    beside = readable(nothing(coverage=[row, elsewhere]), REPORT, Shown())[0]
    assert "agents count 1 warning that is not in the input (shop/orders-0) (2 pods" in beside


def test_a_question_is_counted_apart():
    """Its worst case may be critical: it is neither a warning nor an all-clear, whatever `--fail-on` is."""
    asked: dict[str, object] = {
        "id": "f2", "detector": "undecided", "level": "exposure", "severity": "warning", "reported_by": "agent",
        "confirms": [], "task_id": None, "store": None,
    }  # fmt: skip
    found = page(findings=[finding(**asked)])
    lines = readable(found, REPORT, Shown())
    assert lines[0].startswith("1 undecided (")
    assert any(
        line.startswith("UNDECIDED shop/orders on pod-a  (confirmed, open; reported by") for line in lines
    )
    assert [exit_code(found, level) for level in ("info", "warning", "critical")] == [3, 3, 3]
    beside = page(findings=[finding(severity="warning"), finding(**asked)])
    assert readable(beside, REPORT, Shown())[0].startswith("1 incident open: 1 warning; 1 undecided (")
    assert [exit_code(beside, level) for level in ("warning", "critical")] == [1, 3]
    over = page(findings=[finding(**asked, status="resolved")])
    assert readable(over, REPORT, Shown())[0].startswith("no incidents found; 1 resolved (")
    assert exit_code(over, "info") == 0


def test_lines_of_another_major_version_are_no_all_clear():
    """How many, and of which pods; those that name no pod count, too."""
    found = nothing(unread={"shop/orders-1": 2, "shop/orders-0": 1, "": 1})
    assert readable(found, REPORT, Shown())[0].startswith(
        "no incidents found; not an all-clear: 4 lines of shop/orders-0, shop/orders-1 are of an unknown contract"
        " version: upgrade statewarden-rollup ("
    )
    assert "<h1>Unknown: 4 lines of shop/orders-0, shop/orders-1 are of an" in render(found)


def test_nothing_is_said_of_settings_that_were_given():
    """The verdict is short where nothing is missing."""
    assert first_line().startswith("no incidents found (")


def test_each_namespace_counts():
    """One name in two namespaces is two applications; what either lacks is named."""
    line = first_line("kafka_streams_version", elsewhere=("processing_guarantee",))
    assert "agents were not given kafka_streams_version, processing_guarantee for orders (" in line
