"""What becomes of a detector's verdict before it is settled: the issues that it names, and how sure it stays."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

from agent.contract.events import Confidence, Severity
from agent.inventory.blind_causes import BY_SLUG, CLOCK_DIFFERS
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


NEAR_US = 10_000_000
"""Clocks that a time service keeps differ by less: the order of two times that are nearer rests on one clock."""
BLIND = "The auditor was blind for part of that time."
NOT_COMPARED = "The order of its file times is not sure (clock-differs)."


def doubted(case: AgentCase, meta: DetectorMeta, verdict: Verdict) -> Verdict:
    """What rests on a time in which the agent was blind is suspected, never confirmed.

    Of damage that is the whole chain of evidence, and it is no more than a warning. A condition is there, however
    it came: only evidence from within a blind interval makes it unsure, and its severity stays. The same holds
    for times of a file server whose clock was not compared, where they are near each other.
    """
    if not isinstance(case, TaskCase) or not verdict.evidence:
        return verdict
    times = sorted(step.at_us for step in verdict.evidence)
    if meta.kind is Kind.DAMAGE and _is_blind(case, times[0], times[-1], verdict.store):
        severity = min(verdict.severity, Severity.WARNING, key=lambda x: x.rank)
        return _suspected(replace(verdict, severity=severity), BLIND)
    if verdict.confidence is not Confidence.CONFIRMED:
        return verdict
    if any(_was_unseen(case, at_us) for at_us in times):
        return _suspected(verdict, BLIND)
    is_near = any(0 < later - earlier < NEAR_US for earlier, later in pairwise(times))
    if CLOCK_DIFFERS in case.inventory.slowed and case.inventory.ahead_us is None and is_near:
        return _suspected(verdict, NOT_COMPARED)
    return verdict


def _was_unseen(case: TaskCase, at_us: int) -> bool:
    """Return whether the agent missed what happened at a time; what it has not been able to read is another matter."""
    return any(
        interval.started_us <= at_us <= (at_us if interval.ended_us is None else interval.ended_us)
        and interval.application in (None, case.application.id)
        and interval.task in (None, case.task.id)
        and not BY_SLUG[interval.cause].lasts
        for interval in case.inventory.blind
        if interval.cause in BY_SLUG
    )


def _is_blind(case: TaskCase, from_us: int, to_us: int, store: str | None) -> bool:
    return is_blind(case.inventory, case.application.id, case.task.id, from_us, to_us, store)


def _suspected(verdict: Verdict, why: str) -> Verdict:
    confidence = Confidence.UNKNOWN if verdict.confidence is Confidence.UNKNOWN else Confidence.SUSPECTED
    return replace(verdict, confidence=confidence, summary=f"{verdict.summary} {why}")
