"""What becomes of a detector's verdict before it is settled: the issues that it names, and how sure it stays."""

from __future__ import annotations

from dataclasses import replace

from agent.contract.events import Confidence, Severity
from agent.inventory.blindness import is_blind
from agent.judging.base import AgentCase, ApplicationCase, DetectorMeta, Kind, TaskCase, Verdict
from agent.judging.wording import concerned


def with_issues(case: AgentCase, meta: DetectorMeta, verdict: Verdict) -> Verdict:
    """Name only issues that may affect the release; all of them where none may.

    A verdict with its own mechanism has its own issues, or none.
    """
    if (
        verdict.upstream
        or verdict.mechanism is not None
        or not meta.upstream
        or not isinstance(case, ApplicationCase)
    ):
        return verdict
    return replace(verdict, upstream=concerned(case, meta.upstream))


def doubted(case: AgentCase, meta: DetectorMeta, verdict: Verdict) -> Verdict:
    """Damage whose chain of evidence has a blind interval in it is suspected, never confirmed."""
    if meta.kind is not Kind.DAMAGE or not isinstance(case, TaskCase) or not verdict.evidence:
        return verdict
    application_id, task_id = case.application.id, case.task.id
    times = [step.at_us for step in verdict.evidence]
    if not is_blind(case.inventory, application_id, task_id, min(times), max(times), verdict.store):
        return verdict
    severity = min(verdict.severity, Severity.WARNING, key=lambda x: x.rank)
    confidence = Confidence.UNKNOWN if verdict.confidence is Confidence.UNKNOWN else Confidence.SUSPECTED
    summary = f"{verdict.summary} The auditor was blind for part of that time."
    return replace(verdict, severity=severity, confidence=confidence, summary=summary)
