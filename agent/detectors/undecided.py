"""Detector `undecided`: something is wrong under some settings that were not given, and nothing under others.

Fires while a task would be reported as a warning or more in one possible world and not in another. Worlds differ in
processing.guarantee, release, num.standby.replicas and enable.transactional.statestores, as far as these were not given
and disk does not show them. It names the one or two settings that decide; what changes nothing is not asked for.
Clears when the settings are given, or when the files on disk show the answer.
"""

from __future__ import annotations

from collections.abc import Iterable

from agent.contract.events import Affected, Confidence, Level, Severity
from agent.judging.base import ApplicationCase, DetectorMeta, Evidence, Kind, Scope, Verdict
from agent.judging.decision import next_action, summary

META = DetectorMeta(
    id="undecided",
    title="Damaged or not: a setting is missing",
    level=Level.EXPOSURE,
    severity=Severity.WARNING,
    kind=Kind.CONDITION,
    scope=Scope.APPLICATION,
    refreshed=True,
    next_action="Find out the settings that the summary names and give them to the agent, or to `scan --set`.",
    consequence="State may be damaged. One or two settings that you can look up decide.",
)


def judge(case: ApplicationCase) -> Iterable[Verdict]:
    """Judge one application."""
    decision = case.decision
    if decision is None:
        return
    said = (x for branch in decision.branches for one in branch.incidents for _, x in one.findings)
    first = min((x.opened_at_us, x.task_id or "", x.identity or "") for x in said)
    yield Verdict(
        subject="settings",
        began_with="/".join(first[1:]),
        opened_at_us=decision.since_us,
        summary=summary(decision),
        evidence=tuple(
            Evidence(
                one.since_us,
                f"{', '.join(branch.answers)}: {one.severity}, {one.confidence} {one.lead.detector}: {one.sentence}",
                f"{case.application.id}/{', '.join(one.tasks)}",
            )
            for branch, one in [(branch, one) for branch in decision.branches for one in branch.incidents]
        ),
        severity=Severity.WARNING,
        confidence=Confidence.UNKNOWN,
        affected=Affected.POSSIBLY,
        missing_facts=decision.question,
        next_action=next_action(decision),
    )
