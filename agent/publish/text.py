"""Findings as log lines: one when a finding opens, escalates or is resolved, and none in between."""

from __future__ import annotations

import logging
from collections.abc import Mapping

from agent.contract.events import Confidence, Kind, Record, Severity, Status

_LOG = logging.getLogger("agent.findings")
_LEVELS = {
    Severity.INFO: logging.INFO,
    Severity.WARNING: logging.WARNING,
    Severity.CRITICAL: logging.CRITICAL,
}
_NOT_SHOWN = ("level", "identity", "opened_at_us", "resolved_at_us", "summary", "evidence")
"""Fields of a finding that its line says in another way, or not at all."""


def severity_rank(body: Mapping[str, object]) -> tuple[int, int]:
    """Return the rank of a finding's severity, then of its confidence; to compare."""
    return Severity(str(body["severity"])).rank, Confidence(str(body["confidence"])).rank


class FindingLog:
    """Remembers the rank of each open finding when it was last logged."""

    def __init__(self) -> None:
        self._logged: dict[str, tuple[int, int]] = {}

    def write(self, record: Record) -> None:
        """Log a finding record if it says something new; other kinds are ignored.

        `record`: every record of the stream, in order.
        """
        if record.kind is not Kind.FINDING:
            return
        word = self._news(record.body)
        if word is None:
            return
        shown = ((name, value) for name, value in record.body.items() if name not in _NOT_SHOWN)
        extra = {name: value for name, value in shown if value not in (None, (), [])}
        extra |= {"change": word, "finding_level": record.body["level"]}
        extra["observed_at_us"] = record.observed_at_us
        level = logging.INFO if word == "resolved" else _LEVELS[Severity(str(record.body["severity"]))]
        _LOG.log(level, "%s", record.body["summary"], extra=extra)

    def _news(self, body: Mapping[str, object]) -> str | None:
        finding_id = str(body["finding_id"])
        if body["status"] == Status.RESOLVED.value:
            self._logged.pop(finding_id, None)
            return "resolved"  # also when an earlier start of the agent logged that it opened
        now = severity_rank(body)
        before = self._logged.get(finding_id)
        if before is None:
            self._logged[finding_id] = now
            # an earlier start of the agent logged that it opened
            return None if body.get("said_us") is not None else "opened"
        self._logged[finding_id] = max(before, now)  # never logged twice for going down and up again
        return "escalated" if now > before else None
