"""Alert noise: how events become series. What alerts make of them is in tests/spark_rollup/test_alert_noise.py."""

from __future__ import annotations

import pytest

from agent.contract.events import Affected, Confidence, Level, Severity, Status
from agent.contract.finding import Finding
from tests.support.noise import MINUTE_US, Span, Told, incident_spans, notation


def told(at_m: int, status: str, *, detector: str = "torn-store", severity: str = "warning") -> Told:
    """Make one finding event of one finding."""
    found = Finding(
        id="id-1", detector=detector, level=Level.EXPOSURE, severity=Severity(severity),
        confidence=Confidence.CONFIRMED, status=Status(status), application_id="orders", task_id="0_1", store=None,
        identity=None, opened_at_us=5 * MINUTE_US, resolved_at_us=None, upstream=(), affected=Affected.YES,
        missing_facts=(), summary="", evidence=(), next_action="", incident_id="i-1",
    )  # fmt: skip
    return Told("pod-a", at_m * MINUTE_US, found)


def rows(*events: Told) -> list[tuple[int, int, str]]:
    """Give from and to (minutes) and severity of each row that the events make in an hour and a half."""
    spans = incident_spans(events, 90 * MINUTE_US)
    return [(x.from_us // MINUTE_US, x.to_us // MINUTE_US, dict(x.labels)["severity"]) for x in spans]


def test_a_row_lasts_from_open_to_resolved() -> None:
    """An incident that nothing resolves is there to the end; order of arrival does not matter."""
    assert rows(told(9, "resolved"), told(5, "open")) == [(5, 9, "warning")]
    assert rows(told(5, "open")) == [(5, 90, "warning")]


def test_a_row_follows_the_severity() -> None:
    """An incident that gets worse is another series from then on."""
    assert rows(told(5, "open"), told(7, "open", severity="critical")) == [
        (5, 7, "warning"),
        (7, 90, "critical"),
    ]


def test_a_moment_is_shown_for_an_hour() -> None:
    """An event is over when it is reported, and alerts see it for an hour, as the agent shows it."""
    assert rows(told(5, "resolved", detector="overlaid-store")) == [(5, 65, "warning")]


@pytest.mark.parametrize(
    ("spans", "expected"),
    [
        ([], "_x6"),
        ([(0, 9)], "1.0x5"),
        ([(2, 3)], "_x2 1.0x1 stale _x1"),
        ([(0, 0), (5, 5)], "1.0x0 stale _x3 1.0x0"),
        ([(-3, 1), (4, 4)], "1.0x1 stale _x1 1.0x0 stale"),
    ],
)
def test_a_series_is_written_in_promtools_notation(spans: list[tuple[int, int]], expected: str) -> None:
    """Every minute has one value, a gap, or the mark that a scrape lacked the series."""
    made = [Span((), a * MINUTE_US, b * MINUTE_US) for a, b in spans]
    assert notation(made, 0, 6) == expected
