"""Findings are logged when they say something new."""

from __future__ import annotations

import logging

import pytest

from agent.contract.events import Kind, Record
from agent.publish.text import FindingLog


def finding(
    severity: str = "warning", confidence: str = "suspected", status: str = "open", said_us: int | None = None
) -> Record:
    body = {
        "finding_id": "f1",
        "detector": "stale-eos-checkpoint",
        "level": "exposure",
        "severity": severity,
        "confidence": confidence,
        "status": status,
        "said_us": said_us,
        "application_id": "orders",
        "task_id": "0_1",
        "store": None,
        "upstream": ["KAFKA-20685"],
        "affected": "yes",
        "missing_facts": [],
        "summary": "task 0_1 is exposed",
        "next_action": "stop it cleanly",
        "evidence": [],
    }
    return Record(Kind.FINDING, 1_700_000_000_000_000, body)


def logged(caplog: pytest.LogCaptureFixture, records: list[Record]) -> list[tuple[str, str]]:
    """Write records and list level and change of what was logged."""
    log = FindingLog(logging.getLogger("agent.findings"))
    with caplog.at_level(logging.INFO, logger="agent.findings"):
        for record in records:
            log.write(record)
    return [(line.levelname, vars(line)["change"]) for line in caplog.records]


def test_opened_escalated_resolved(caplog: pytest.LogCaptureFixture) -> None:
    """A finding is logged when it opens, when it gets louder and when it is resolved; refreshes are not."""
    story = [
        finding(),
        finding(),
        finding(confidence="confirmed"),
        finding("critical", "confirmed"),
        finding("critical", "confirmed"),
        finding("critical", "confirmed", "resolved"),
    ]
    assert logged(caplog, story) == [
        ("WARNING", "opened"),
        ("WARNING", "escalated"),
        ("CRITICAL", "escalated"),
        ("INFO", "resolved"),
    ]


def test_flapping_is_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    """A finding that gets quieter and as loud again is not logged again."""
    assert len(logged(caplog, [finding("critical"), finding("info"), finding("critical")])) == 1


def test_a_reopened_finding_is_logged_again(caplog: pytest.LogCaptureFixture) -> None:
    """After its resolution the same finding opens again."""
    story = [finding(), finding(status="resolved"), finding()]
    assert [change for _, change in logged(caplog, story)] == ["opened", "resolved", "opened"]


def test_a_resolution_of_an_earlier_start_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    """A finding that this process never saw open is still reported as resolved."""
    assert logged(caplog, [finding(status="resolved")]) == [("INFO", "resolved")]


def test_what_an_earlier_start_logged_is_not_logged_again(caplog: pytest.LogCaptureFixture) -> None:
    """A repetition is no line; when it gets louder it is one."""
    assert logged(caplog, [finding(said_us=1), finding("critical")]) == [("CRITICAL", "escalated")]


def test_fields_travel_with_the_line(caplog: pytest.LogCaptureFixture) -> None:
    """The line carries the contract's fields, without what is empty; other kinds of records are ignored."""
    assert logged(caplog, [Record(Kind.HEARTBEAT, 1), finding()]) == [("WARNING", "opened")]
    fields = vars(caplog.records[0])
    assert caplog.records[0].getMessage() == "task 0_1 is exposed"
    assert (fields["task_id"], fields["upstream"], fields["finding_level"]) == (
        "0_1",
        ["KAFKA-20685"],
        "exposure",
    )
    assert "store" not in fields
    assert "missing_facts" not in fields
