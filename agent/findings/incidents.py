"""Incidents: one cause, one address, one next action; findings are its evidence. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, replace

from agent.contract import incidents as shared
from agent.contract.events import Affected, Confidence, Level, Severity, Status
from agent.contract.incidents import EvidenceRole, Precedence
from agent.contract.mechanisms import TITLES
from agent.findings.finding import Finding

Accepts = Callable[[str], Collection[str]]
"""Application -> detectors whose lasting exposures the operator accepted."""


@dataclass(frozen=True, slots=True)
class Incident:
    """One thing that went wrong, as people see it.

    Args of the dataclass:
        id: `i-` and the beginning of its first finding's id: stable over restarts and repeated replays.
        title: What goes wrong, by its mechanism; empty for a remark, of which nothing has gone wrong.
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
        first: Whose instruction the next step is, if it is not that of the lead: another incident's id, or the detector
            of another of its findings.
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
    findings: tuple[tuple[EvidenceRole, Finding], ...]
    lasting: bool = False
    accepted: bool = False
    first: str = ""


def gather(findings: Iterable[Finding], accepts: Accepts = lambda application: ()) -> list[Incident]:
    """Put findings together to incidents.

    Args:
        findings: Of one agent, each in its last state.
        accepts: What the operator accepted.

    Returns:
        The worst first: open before resolved, by severity, by confidence, the oldest first; accepted ones behind all
        others that are open.
    """
    groups: dict[str, list[Finding]] = defaultdict(list)
    for finding in findings:
        groups[finding.incident_id or shared.incident_of(finding.id)].append(finding)
    pairs = [_incident(id_, group, accepts) for id_, group in groups.items()]
    before = shared.precedents(claim for _, claim in pairs if claim is not None)
    agreed = (
        replace(one, next_action=shared.after(before[claim]), first=before[claim].incident_id)
        if claim is not None and claim in before
        else one
        for one, claim in pairs
    )
    return sorted(agreed, key=_order)


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


def _incident(
    incident_id: str, group: Sequence[Finding], accepts: Accepts
) -> tuple[Incident, Precedence | None]:
    """Make an incident, and what it asks for if it is open."""
    ordered = sorted(group, key=lambda x: (x.opened_at_us, x.detector, x.task_id or "", x.store or ""))
    lead = min(ordered, key=_weight)
    says = shared.instruction(lead, ordered)
    is_open = lead.status is Status.OPEN
    lasting = is_open and lead.lasting and lead.level is Level.EXPOSURE
    incident = Incident(
        id=incident_id,
        title=TITLES.get(lead.mechanism, "") if lead.severity is not Severity.INFO else "",
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
        sentence=shared.sentence(lead, ordered),
        next_action=shared.repeat_for(says.next_action, says.task_id, _others(says, ordered)),
        lead=lead,
        findings=tuple((shared.role(lead, x), x) for x in ordered),
        lasting=lasting,
        accepted=lasting and lead.detector in accepts(lead.application_id),
        first="" if says.detector == lead.detector else says.detector,
    )
    if not is_open or not about_state(incident):
        return incident, None
    home = (lead.application_id,)
    return incident, shared.claim(incident_id, home, incident.tasks, (), says, incident.since_us)


def _others(says: Finding, group: Sequence[Finding]) -> set[str]:
    """List the other tasks of which the same is open or over, as severe, and asks for the same."""
    every = {name for x in group for name in (x.task_id, x.store)}

    def asks(one: Finding) -> tuple[object, ...]:
        return one.detector, one.status, one.severity, shared.meaning(one.next_action, every)

    said = asks(says)
    return {x.task_id for x in group if x.task_id and x.task_id != says.task_id and asks(x) == said}


def _weight(finding: Finding) -> tuple[object, ...]:
    """Of what is equally bad, what needs something at once before what merely runs on an affected release.

    Among equals what came first.
    """
    *bad, unsure = shared.weight(finding)
    place = (finding.task_id or "", finding.store or "")
    return (*bad, finding.lasting, unsure, finding.opened_at_us, *place)
