"""Detector `auditor-blind`: the agent itself missed something, or has nothing to watch.

Fires while a blind interval lasts and once for each that ended; and when no application directory has been seen
for five minutes: the most common first-hour mistake is an application whose `state.dir` is not on the volume
that the agent watches.
"""

from __future__ import annotations

from collections.abc import Iterable

from agent.contract.events import Affected, Confidence, Level, Severity
from agent.detectors.base import Case, DetectorMeta, Evidence, Kind, Scope, Verdict, seconds
from agent.inventory.model import BlindInterval

META = DetectorMeta(
    id="auditor-blind",
    title="The auditor missed something or has nothing to watch",
    level=Level.SELF,
    severity=Severity.WARNING,
    kind=Kind.CONDITION,
    scope=Scope.AGENT,
    next_action=(
        "Treat what happened in the interval as unknown: findings that rest on it say so. Read the cause and mend"
        " it; the page of this detector lists causes and remedies."
    ),
)

NOTHING_AFTER_US = 300_000_000


def judge(case: Case) -> Iterable[Verdict]:
    """Judge the agent itself."""
    for interval in case.inventory.blind:
        if interval.ended_us is None or case.now_us - interval.ended_us < NOTHING_AFTER_US:
            yield _missed(interval)
    seen = any(application.exists for application in case.inventory.applications.values())
    waited_us = case.now_us - case.inventory.started_us
    if not seen and waited_us >= NOTHING_AFTER_US:
        yield _nothing(case, waited_us)


def _missed(interval: BlindInterval) -> Verdict:
    whom = "the whole state directory"
    if interval.application is not None:
        whom = interval.application if interval.task is None else f"{interval.application}/{interval.task}"
    lasted = "lasts" if interval.ended_us is None else seconds(interval.ended_us - interval.started_us)
    steps = [Evidence(interval.started_us, f"blind: {interval.cause}", whom)]
    if interval.ended_us is not None:
        steps.append(Evidence(interval.ended_us, "everything looked at again", whom))
    return Verdict(
        subject=f"{interval.cause}@{interval.started_us}",
        opened_at_us=interval.started_us,
        summary=f"The auditor was blind for {whom} ({interval.cause}, {lasted}); what happened then is unknown.",
        evidence=tuple(steps),
        severity=Severity.WARNING,
        confidence=Confidence.CONFIRMED,
        affected=Affected.NO,
    )


def _nothing(case: Case, waited_us: int) -> Verdict:
    there = case.inventory.root_seen
    summary = (
        f"No application directory for {seconds(waited_us)}: an application without persistent stores makes"
        " none; otherwise its state.dir is not the directory that is watched (default: /tmp/kafka-streams up to"
        " 2.7, kafka-streams below the JVM's temporary directory since 2.8)."
        if there
        else "The state directory does not exist: mount the application's state volume here, or correct the path."
    )
    return Verdict(
        subject="nothing-to-watch",
        opened_at_us=case.inventory.started_us + NOTHING_AFTER_US,
        summary=summary,
        evidence=(Evidence(case.now_us, "no application directory seen since the start", "state directory"),),
        severity=Severity.INFO if there else Severity.WARNING,
        confidence=Confidence.UNKNOWN if there else Confidence.CONFIRMED,
        affected=Affected.NO,
    )
