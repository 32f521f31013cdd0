"""Incidents of the fleet: what agents' incidents and the rules' findings make together. Pure, without Spark.

A fleet's incident takes in the agents' incidents that are part of it and keeps their ids: its own is that of the oldest
of them, so one id is valid everywhere; without any it is made from the first finding's id.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from agent.contract import incidents as shared
from agent.contract.events import Affected, Confidence, Level, Severity, Status
from agent.contract.incidents import EvidenceRole, Precedence
from agent.contract.mechanisms import TITLES, Mechanism
from spark_rollup.judging import lineage
from spark_rollup.judging.lineage import FindingRow, Group, Row


@dataclass(frozen=True, slots=True)
class FleetIncident:
    """One thing that went wrong in the fleet, as people see it.

    Args of the dataclass:
        id: That of the oldest agent's incident in it; without one `i-` and the beginning of its first finding's id.
        absorbed: Ids of all agents' incidents in it, its own id among them where an agent gave it.
        title: What goes wrong, by its mechanism, or by the rule; empty: a detector's that is a mechanism by itself.
        mechanism: Slug, of the lead; where that only refutes or explains, of the agents' incident.
        cluster: Cluster; empty until known.
        namespace: As in the tables: with the cluster before it (`eu-1/shop`) where one is known.
        application_id: Application; empty: no finding names one.
        pods: Pods concerned, sorted.
        tasks: Tasks concerned, sorted; none: the application or the pod as a whole.
        stores: Stores concerned, sorted, where findings name them.
        status: Of the lead.
        severity: Of the lead.
        confidence: Of the lead.
        upstream: Issues of the lead; empty: no known fault explains it.
        affected: Whether the release has one of them.
        since_us: When it began, microseconds since the epoch.
        ended_us: When it was resolved; None: it is open, or its end is not known.
        sentence: What is wrong, where.
        next_action: The one instruction to follow.
        lead: The row that names it.
        findings: All rows, with their roles, in the order in which they opened.
        members: Those that belong to it alone; the others are evidence of other incidents, too.
    """

    id: str
    absorbed: tuple[str, ...]
    title: str
    mechanism: str
    cluster: str
    namespace: str
    application_id: str
    pods: tuple[str, ...]
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
    lead: Row
    findings: tuple[tuple[EvidenceRole, Row], ...]
    members: tuple[Row, ...]

    @property
    def about_state(self) -> bool:
        """Whether it is about state on disk, not about what agents know."""
        return self.lead["level"] != Level.SELF.value


def gather(rows: Iterable[Row], titles: Mapping[str, str] = TITLES) -> list[FleetIncident]:
    """Put findings together to incidents; in any order of rows the same ones.

    Args:
        rows: Of the table `findings`.
        titles: By mechanism, of rules that are a mechanism by themselves too.

    Returns:
        The worst first: open before resolved, by severity, about state before what is about agents, by confidence,
        the oldest first.
    """
    pairs = [_incident(group, titles) for group in lineage.groups(lineage.read(row) for row in rows)]
    before = shared.precedents(claim for _, claim in pairs if claim is not None)
    agreed = (
        replace(one, next_action=shared.after(before[claim]))
        if claim is not None and claim in before
        else one
        for one, claim in pairs
    )
    return sorted(agreed, key=_order)


def _order(one: FleetIncident) -> tuple[bool, int, bool, int, int, str, str]:
    return (
        one.status is Status.RESOLVED,
        -one.severity.rank,
        not one.about_state,
        -one.confidence.rank,
        one.since_us,
        one.id,
        one.namespace,
    )


def _incident(group: Group, titles: Mapping[str, str]) -> tuple[FleetIncident, Precedence | None]:
    """Make an incident of a group, and what it asks for if it is open."""
    rows = group.rows or group.beside
    core = [x for x in rows if x.known] or rows  # what agents know of says where and since when
    lead = min(rows, key=_weight)
    # what only bears out another finding knows no better step than that one
    says = shared.instruction(lead, [x for x in rows if lineage.CONFIRMS not in _relations(x, group)])
    is_open = lead.status is Status.OPEN
    since_us, id_ = group.first
    place, mechanism = lead.namespace, lead.mechanism if group.rows else group.mechanism
    incident = FleetIncident(
        id=id_,
        absorbed=tuple(sorted(name for _, name in group.locals_)),
        title="" if lead.severity is Severity.INFO and mechanism in TITLES else titles.get(mechanism, ""),
        mechanism=mechanism,
        cluster=place.partition("/")[0] if "/" in place else "",
        namespace=place,
        application_id=str(lead.row.get("application_id") or ""),
        pods=tuple(sorted({pod for x in core for pod in _pods(x)})),
        tasks=tuple(sorted({x.task_id for x in rows if x.task_id})),
        stores=tuple(sorted({x.store for x in rows if x.store})),
        status=lead.status,
        severity=lead.severity,
        confidence=lead.confidence,
        upstream=_texts(lead.row, "upstream"),
        affected=Affected(str(lead.row["affected"])),
        since_us=min(since_us, *(x.opened_at_us for x in core)),
        ended_us=None if is_open else max(x.opened_at_us if x.ended_us is None else x.ended_us for x in rows),
        sentence=_sentence(lead, rows),
        next_action=_next_action(says, rows),
        lead=lead.row,
        findings=_with_roles(lead, group),
        members=tuple(x.row for x in group.rows or group.beside[:1]),
    )
    if not is_open or not incident.about_state:
        return incident, None
    home = (place, incident.application_id)
    return incident, shared.claim(id_, home, incident.tasks, incident.pods, says, incident.since_us)


def _weight(one: FindingRow) -> tuple[object, ...]:
    """Among equals what an agent knows of, in the fleet's words: it knows what the agent says, and more."""
    return shared.weight(one), not one.known, one.by_agent, one.order


def _with_roles(lead: FindingRow, group: Group) -> tuple[tuple[EvidenceRole, Row], ...]:
    bound = [(x, _role(lead, x, group)) for x in group.rows]
    beside = [(x, _beside(lead, x, group)) for x in group.beside]
    return tuple((role, x.row) for x, role in sorted((*bound, *beside), key=lambda x: x[0].order))


def _role(lead: FindingRow, one: FindingRow, group: Group) -> EvidenceRole:
    if one is lead:
        return EvidenceRole.CAUSE
    if lineage.CONFIRMS in _relations(one, group) or one.id in _texts(lead.row, "confirms"):
        return EvidenceRole.CONFIRMATION
    if lead.known and not one.known and one.detector != lead.detector:
        return EvidenceRole.CONSEQUENCE
    return shared.role(lead, one)


def _beside(lead: FindingRow, one: FindingRow, group: Group) -> EvidenceRole:
    if lineage.REFUTES in _relations(one, group):
        return EvidenceRole.REFUTATION
    return EvidenceRole.CAUSE if one is lead else EvidenceRole.CONSEQUENCE


def _relations(one: FindingRow, group: Group) -> set[str]:
    return {x.relation for x in one.known if x.incident in group.locals_}


def _sentence(lead: FindingRow, rows: Sequence[FindingRow]) -> str:
    """Say what is wrong, and of which other tasks, or pods, the same is true."""
    if lead.task_id:
        return shared.sentence(lead, rows, _names)
    same = [x for x in rows if x.detector == lead.detector and x.row.get("pod") and x.status is lead.status]
    every = {name for x in (lead, *same) for name in _names(x)}
    said = shared.meaning(lead.summary, every)
    pods = {str(x.row["pod"]) for x in same if shared.meaning(x.summary, every) == said}
    return shared.with_other_tasks(lead.summary, "pod", pods - {str(lead.row.get("pod"))})


def _next_action(says: FindingRow, rows: Sequence[FindingRow]) -> str:
    """Write the instruction, and for which other tasks and pods it is to be followed."""
    every, pod = {name for x in rows for name in _names(x)}, says.row.get("pod")

    def asks(one: FindingRow) -> tuple[object, ...]:
        return one.detector, one.status, one.severity, shared.meaning(str(one.row["next_action"]), every)

    said = asks(says)
    same = [x for x in rows if x.task_id and asks(x) == said]
    here = {str(x.task_id) for x in same if x.row.get("pod") == pod} - {says.task_id}
    places = sorted(
        {f"{x.task_id} on {x.row.get('pod')}" for x in same if x.row.get("pod") not in (None, pod)}
    )
    return shared.repeat_for(str(says.row["next_action"]), says.task_id, here, places)


def _names(one: FindingRow) -> tuple[str, ...]:
    """Names that differ in sentences of the same meaning."""
    return (*_pods(one), *_texts(one.row, "pods"), *(x for x in (one.task_id, one.store) if x))


def _pods(one: FindingRow) -> tuple[str, ...]:
    """List the pods that a row is about; `pods` also has those that it was compared with."""
    pod = one.row.get("pod")
    every = _texts(one.row, "pods")
    return every if not pod or one.mechanism == Mechanism.SHARED_STATE.slug else (str(pod),)


def _texts(row: Row, name: str) -> tuple[str, ...]:
    value = row.get(name)
    return tuple(map(str, value)) if isinstance(value, list | tuple) else ()
