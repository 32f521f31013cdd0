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
        "finding_id": "f1", "detector": "stale-eos-checkpoint", "level": "exposure", "severity": severity,
        "confidence": confidence, "status": status, "said_us": said_us, "application_id": "orders",
        "task_id": "0_1", "store": None, "upstream": ["KAFKA-20685"], "affected": "yes", "missing_facts": [],
        "summary": "task 0_1 is exposed", "next_action": "stop it cleanly", "evidence": [],
    }  # fmt: skip
    return Record(Kind.FINDING, 1_700_000_000_000_000, body)


def logged(caplog: pytest.LogCaptureFixture, records: list[Record]) -> list[tuple[str, str]]:
    """Write records and list level and change of what was logged."""
    log = FindingLog()
    with caplog.at_level(logging.INFO, logger="agent.findings"):
        for record in records:
            log.write(record)
    return [(line.levelname, vars(line)["change"]) for line in caplog.records]


@pytest.mark.parametrize(
    ("story", "lines"),
    [
        ([finding(), finding(), finding(confidence="confirmed"), *[finding("critical", "confirmed")] * 2,
          finding("critical", "confirmed", "resolved")],
         [("WARNING", "opened"), ("WARNING", "escalated"), ("CRITICAL", "escalated"), ("INFO", "resolved")]),
        ([finding("critical"), finding("info"), finding("critical")], [("CRITICAL", "opened")]),  # it comes and goes
        ([finding(), finding(status="resolved"), finding()],
         [("WARNING", "opened"), ("INFO", "resolved"), ("WARNING", "opened")]),
        # an earlier start logged that it opened
        ([finding(status="resolved")], [("INFO", "resolved")]),
        ([finding(said_us=1), finding("critical")], [("CRITICAL", "escalated")]),
    ],
)  # fmt: skip
def test_what_is_news_is_logged(
    caplog: pytest.LogCaptureFixture, story: list[Record], lines: list[tuple[str, str]]
) -> None:
    """When it opens, gets louder or is resolved; repetitions, and what gets quieter and as loud again, are not."""
    assert logged(caplog, story) == lines


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
