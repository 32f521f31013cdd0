"""Incidents: one cause, one address, one next action; findings are its evidence. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from agent.contract.events import Affected, Confidence, Level, Severity, Status
from agent.contract.mechanisms import TITLES
from agent.findings.finding import Finding

NAMED = 6
"""Tasks that a sentence names; of more it gives the number."""


Accepts = Callable[[str], Collection[str]]
"""Application -> detectors whose lasting exposures the operator accepted."""


class Role(StrEnum):
    """What a finding is for its incident."""

    CAUSE = "cause"
    CONSEQUENCE = "consequence"
    CONFIRMATION = "confirmation"


@dataclass(frozen=True, slots=True)
class Incident:
    """One thing that went wrong, as people see it.

    Args of the dataclass:
        id: `i-` and the beginning of its first finding's id: stable over restarts and repeated replays.
        title: What goes wrong, by its mechanism.
        application_id: Application; empty for the agent itself.
        tasks: Tasks concerned; none: the application as a whole.
        stores: Stores concerned, where findings name them.
        status: Of the lead.
        severity: Of the lead.
        confidence: Of the lead.
        upstream: Issues of the lead; empty: no known fault explains it.
        affected: Whether the release has one of them.
        since_us: When it began.
        ended_us: When it was resolved.
        sentence: What is wrong, where.
        next_action: The one instruction to follow.
        lead: The finding that names it.
        findings: All, with their roles, in the order in which they opened.
        lasting: An exposure by release or settings: it stays as long as they do, and nothing is to be done at once.
        accepted: The operator accepted that exposure: it stays open, and no alert is raised.
        first: The incident whose instruction comes before this one's; empty = none.
    """

    id: str
    title: str
    application_id: str
    tasks: tuple[str, ...]
    stores: tuple[str, ...]
    status: Status
    severity: Severity
    confidence: Confidence
    upstream: tuple[str, ...]
    affected: Affected
    since_us: int
    ended_us: int | None
    sentence: str
    next_action: str
    lead: Finding
    findings: tuple[tuple[Role, Finding], ...]
    lasting: bool = False
    accepted: bool = False
    first: str = ""


def gather(
    findings: Iterable[Finding], first: Sequence[str] = (), accepts: Accepts = lambda application: ()
) -> list[Incident]:
    """Put findings together to incidents.

    Args:
        findings: Of one agent, each in its last state.
        first: Detectors whose instruction comes before any other about the same task, in this order.
        accepts: What the operator accepted.

    Returns:
        The worst first: open before resolved, by severity, by confidence, the oldest first; accepted ones behind all
        others that are open.
    """
    groups: dict[str, list[Finding]] = defaultdict(list)
    for finding in findings:
        groups[finding.incident_id or finding.id].append(finding)
    incidents = _in_agreement([_incident(id_, group, accepts) for id_, group in groups.items()], first)
    return sorted(incidents, key=_order)


def about_state(incident: Incident) -> bool:
    """Return whether an incident is about state on disk, not about what the agent knows."""
    return incident.lead.level is not Level.SELF


def _order(incident: Incident) -> tuple[bool, bool, bool, int, int, int, str]:
    return (
        not about_state(incident),
        incident.status is Status.RESOLVED,
        incident.accepted,
        -incident.severity.rank,
        -incident.confidence.rank,
        incident.since_us,
        incident.id,
    )


def _incident(incident_id: str, group: Sequence[Finding], accepts: Accepts) -> Incident:
    ordered = sorted(group, key=lambda x: (x.opened_at_us, x.detector, x.task_id or "", x.store or ""))
    lead = min(ordered, key=_weight)
    is_open = lead.status is Status.OPEN
    lasting = is_open and lead.lasting and lead.level is Level.EXPOSURE
    return Incident(
        id=incident_id,
        title=TITLES.get(lead.mechanism, ""),
        application_id=lead.application_id,
        tasks=tuple(sorted({x.task_id for x in ordered if x.task_id})),
        stores=tuple(sorted({x.store for x in ordered if x.store})),
        status=lead.status,
        severity=lead.severity,
        confidence=lead.confidence,
        upstream=lead.upstream,
        affected=lead.affected,
        since_us=ordered[0].opened_at_us,
        ended_us=None if is_open else max(x.resolved_at_us or x.opened_at_us for x in ordered),
        sentence=_sentence(lead, ordered),
        next_action=lead.next_action,
        lead=lead,
        findings=tuple((_role(lead, x), x) for x in ordered),
        lasting=lasting,
        accepted=lasting and lead.detector in accepts(lead.application_id),
    )


def _weight(finding: Finding) -> tuple[bool, bool, int, bool, bool, int, int, str, str]:
    """What names an incident: no remark, what is open, worst, about damage, and urgent; among equals what came first.

    So what was severe and is over is not hidden behind a remark that is still open, nor a task that needs something
    at once behind one that only runs on an affected release.
    """
    return (
        finding.severity is Severity.INFO,
        finding.status is not Status.OPEN,
        -finding.severity.rank,
        finding.level is not Level.DAMAGE,
        finding.lasting,
        -finding.confidence.rank,
        finding.opened_at_us,
        finding.task_id or "",
        finding.store or "",
    )


def _role(lead: Finding, finding: Finding) -> Role:
    """The same detector says the same of other tasks and stores; what opened before the lead led to it."""
    if finding.detector == lead.detector:
        return Role.CAUSE if finding is lead else Role.CONFIRMATION
    return Role.CAUSE if finding.opened_at_us < lead.opened_at_us else Role.CONSEQUENCE


def _sentence(lead: Finding, group: Sequence[Finding]) -> str:
    same = {x.task_id for x in group if x.detector == lead.detector and x.task_id and x.status is lead.status}
    others = sorted(same - {lead.task_id})
    if not others:
        return lead.summary
    return f"{lead.summary} The same in {'task' if len(others) == 1 else 'tasks'} {named(others)}."


def named(tasks: Sequence[str]) -> str:
    """List tasks for a line of text, at most `NAMED`; the rest is a number."""
    more = f" and {len(tasks) - NAMED} more" if len(tasks) > NAMED else ""
    return ", ".join(tasks[:NAMED]) + more


def _in_agreement(incidents: list[Incident], first: Sequence[str]) -> list[Incident]:
    """Let the instruction that must come first come first wherever two open incidents are about the same task.

    A remark is no instruction.
    """
    urgent = sorted(
        (
            x
            for x in incidents
            if x.status is Status.OPEN and x.severity is not Severity.INFO and x.lead.detector in first
        ),
        key=lambda x: first.index(x.lead.detector),
    )
    return [_after(incident, urgent) for incident in incidents]


def _after(incident: Incident, urgent: Sequence[Incident]) -> Incident:
    if incident.status is Status.RESOLVED or not about_state(incident):
        return incident
    for other in urgent:
        if other is incident:
            return incident
        shares = not other.tasks or not incident.tasks or set(other.tasks) & set(incident.tasks)
        if other.application_id == incident.application_id and shares:
            first = (
                f"First do what incident {other.id} ({other.lead.detector}) asks for; remove nothing before."
            )
            return replace(incident, next_action=first, first=other.id)
    return incident
