"""A finding: as users see it, as the contract's record, and read back from one."""

from __future__ import annotations

from dataclasses import dataclass, fields
from enum import StrEnum

from agent.contract.codec import rfc3339
from agent.contract.events import Affected, Confidence, Level, Severity, Status


@dataclass(frozen=True, slots=True)
class Evidence:
    """One observation in the chain that decided a verdict."""

    at_us: int
    what: str
    where: str


@dataclass(frozen=True, slots=True)
class Finding:
    """A finding as users see it.

    Args of the dataclass:
        id: Stable over its whole life.
        detector: Detector id.
        level: Kind of statement.
        severity: How severe.
        confidence: How sure.
        status: Open or resolved.
        application_id: Application; empty for the agent itself.
        task_id: Task; None for the application.
        store: Store; None for the task.
        identity: RocksDB IDENTITY of the incarnation.
        opened_at_us: When it opened.
        resolved_at_us: When it was resolved.
        upstream: Issue keys.
        affected: Is this release affected?
        missing_facts: Settings that would decide more.
        summary: One sentence.
        evidence: Ordered chain; escalation adds to it.
        next_action: What is safe to do next.
        mechanism: What goes wrong: findings with the same one can belong to one incident.
        incident_id: The incident that it is evidence of.
        process_ended_at_us: When the last process of the application had ended before it opened; None = none was seen.
        lasting: It comes from release or settings and stays as long as they do.
    """

    id: str
    detector: str
    level: Level
    severity: Severity
    confidence: Confidence
    status: Status
    application_id: str
    task_id: str | None
    store: str | None
    identity: str | None
    opened_at_us: int
    resolved_at_us: int | None
    upstream: tuple[str, ...]
    affected: Affected
    missing_facts: tuple[str, ...]
    summary: str
    evidence: tuple[Evidence, ...]
    next_action: str
    mechanism: str = ""
    incident_id: str = ""
    process_ended_at_us: int | None = None
    lasting: bool = False

    def body(self) -> dict[str, object]:
        """Fields of the contract's `finding` record, under its names."""
        named = (
            (_IN_CONTRACT.get(field.name, field.name), getattr(self, field.name)) for field in fields(self)
        )
        return {name: _plain(value) for name, value in named} | {
            "application_id": self.application_id or None
        }


_IN_CONTRACT = {"id": "finding_id"}


def _plain(value: object) -> object:
    if isinstance(value, StrEnum):
        return value.value
    if isinstance(value, tuple):
        return [_plain(each) for each in value]
    if isinstance(value, Evidence):
        return {"at": rfc3339(value.at_us), "what": value.what, "where": value.where}
    return value
