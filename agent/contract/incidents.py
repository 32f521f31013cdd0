"""Incidents: one cause, one address, one next action; findings are its evidence. The agent's and the fleet's. Pure.

A fleet's incident takes in the agents' incidents that are part of it and keeps their ids: its own is that of the oldest
of them, so one id is valid everywhere; without any it is made from the first finding's id.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from textwrap import shorten
from typing import Any, Generic

from agent.contract.events import Affected, Confidence, Level, Severity, Status
from agent.contract.finding import REPAIRED, Finding
from agent.contract.grouping import CONFIRMS, OF_ONE_AGENT, REFUTES, F, Group, Link, Member, groups
from agent.contract.mechanisms import ONLY_OF_DAMAGE, TITLES, comes_first
from agent.contract.units import Remedy
from agent.contract.wording import as_sure_as, named, pods_of, sentence, step, weight

Accepts = Callable[[str], Collection[str]]
"""Application -> detectors whose lasting exposures the operator accepted."""


class EvidenceRole(StrEnum):
    """What a finding is for its incident."""

    CAUSE = "cause"
    CONSEQUENCE = "consequence"
    CONFIRMATION = "confirmation"
    REFUTATION = "refutation"


class Configured(StrEnum):
    """Whether an incident is an exposure by release or settings only: it lasts, and nothing is to be done at once.

    ACCEPTED: the operator accepted it. It stays open, and no alert is raised.
    """

    NO = "no"
    YES = "yes"
    ACCEPTED = "accepted"


@dataclass(frozen=True, slots=True)
class Incident(Generic[F]):
    """One thing that went wrong, as people see it."""

    id: str
    """`i-` and the beginning of its first finding's id, or that of the oldest agent's incident in it: stable over
    restarts and repeated replays."""
    absorbed: tuple[str, ...]
    """Ids of all agents' incidents in it, its own id among them where an agent gave it."""
    title: str
    """What goes wrong, by its mechanism, or by the rule; empty: a remark, of which nothing has gone wrong, or a
    detector's that is a mechanism by itself."""
    mechanism: str  # Slug, of the lead; where that only refutes or explains, of the agents' incident
    namespace: str
    """As in the tables of an audit, with the cluster before it (`eu-1/shop`) where one is known."""
    pods: tuple[str, ...]  # pods concerned, sorted; an agent names none
    tasks: tuple[str, ...]  # tasks concerned, sorted; none: the application or the pod as a whole
    stores: tuple[str, ...]  # stores concerned, sorted, where findings name them
    since_us: int  # when it began, microseconds since the epoch
    ended_us: int | None  # when it was resolved; None: it is open, or its end is not known
    sentence: str  # what is wrong, where
    next_action: str  # the one instruction to follow
    lead: F  # the finding that names it
    findings: tuple[tuple[EvidenceRole, F], ...]  # all, with their roles, in the order in which they opened
    members: tuple[F, ...]  # those that belong to it alone; the others are evidence of other incidents, too
    configured_exposure: Configured = Configured.NO  # whether it comes from release or settings alone
    do_first: str = ""
    """Whose instruction the next step is, if it is not that of the lead: another incident's id, or the detector of
    another of its findings."""
    remedy: Remedy = Remedy.OTHER  # what the next step does with the directories of its tasks
    step_tasks: tuple[str, ...] = ()  # those tasks, of one pod, sorted: all before the one start

    @property
    def application_id(self) -> str:
        """Application; empty for the agent itself, or where no finding names one."""
        return self.lead.application_id

    @property
    def cluster(self) -> str:
        """Cluster; empty until known."""
        return self.namespace.partition("/")[0] if "/" in self.namespace else ""

    @property
    def status(self) -> Status:
        """Of the lead."""
        return self.lead.status

    @property
    def severity(self) -> Severity:
        """Of the lead."""
        return self.lead.severity

    @property
    def confidence(self) -> Confidence:
        """Of the lead."""
        return self.lead.confidence

    @property
    def upstream(self) -> tuple[str, ...]:
        """Issues of the lead; empty: no known fault explains it."""
        return self.lead.upstream

    @property
    def affected(self) -> Affected:
        """Whether the release has one of them."""
        return self.lead.affected

    @property
    def about_state(self) -> bool:
        """Whether it is about state on disk, not about what agents know."""
        return self.lead.level is not Level.SELF

    @property
    def claim(self) -> str:
        """What goes wrong, no surer than it is; empty without a title."""
        return as_sure_as(self.lead, self.title)

    @property
    def is_accepted(self) -> bool:
        """Whether the operator accepted it."""
        return self.configured_exposure is Configured.ACCEPTED

    @property
    def like_the_lead(self) -> list[str]:
        """List the tasks of which the same is said as of the lead: others may only be exposed."""

        def said(one: Finding) -> tuple[object, ...]:
            return one.detector, one.status, one.severity, one.lasting

        return sorted({x.task_id for _, x in self.findings if x.task_id and said(x) == said(self.lead)})


def gather(
    findings: Iterable[F],
    accepts: Accepts = lambda application: (),
    link: Callable[[F], Link] = lambda finding: OF_ONE_AGENT,
    titles: Mapping[str, str] = TITLES,
) -> list[Incident[F]]:
    """Put findings together to incidents; in any order of findings the same ones.

    `link`: what the fleet knows of a finding: where, and what it confirms, refutes or explains. `titles`: by
    mechanism, of rules that are a mechanism by themselves too. Gives the worst first: open before resolved,
    accepted ones behind all others that are open, remarks behind what is more, about state before what is about
    agents, by severity, by confidence, the oldest first.
    """
    made = [_incident(group, accepts, titles) for group in groups(findings, link)]
    return sorted(_agreed(made), key=_order)


def _order(one: Incident[F]) -> tuple[bool, bool, bool, bool, int, int, int, str, str]:
    return (
        one.status is Status.RESOLVED, one.is_accepted, one.severity is Severity.INFO, not one.about_state,
        -one.severity.rank, -one.confidence.rank, one.since_us, one.id, one.namespace,
    )  # fmt: skip


def _weight(one: Member[F]) -> tuple[object, ...]:
    """Among equals what an agent knows of, in the fleet's words: it knows what the agent says, and more."""
    return weight(one.finding), not one.known, one.link.by_agent, one.order


def _incident(group: Group[F], accepts: Accepts, titles: Mapping[str, str]) -> Incident[F]:
    rows = group.rows or group.beside
    core = [x for x in rows if x.known] or rows  # what agents know of says where and since when
    first = min(rows, key=_weight)
    lead = first.finding
    # what only bears out another finding knows no better step than that one
    says = _instruction(first, [x for x in rows if CONFIRMS not in _relations(x, group)])
    asked, is_open = step(says, rows), lead.status is Status.OPEN
    since_us, id_ = group.first
    mechanism = first.mechanism if group.rows else group.mechanism
    lasts = is_open and lead.lasting and lead.level is Level.EXPOSURE
    return Incident(
        id=id_, absorbed=tuple(sorted(name for _, name in group.locals_)),
        title="" if lead.severity is Severity.INFO and mechanism in TITLES else titles.get(mechanism, ""),
        mechanism=mechanism, namespace=first.link.namespace,
        pods=tuple(sorted({pod for x in core for pod in pods_of(x)})),
        tasks=tuple(sorted({x.finding.task_id for x in rows if x.finding.task_id})),
        stores=tuple(sorted({x.finding.store for x in rows if x.finding.store})),
        since_us=min(since_us, *(x.finding.opened_at_us for x in core)),
        ended_us=None if is_open else max(_ended_us(x.finding) for x in rows), sentence=_told(first, rows),
        next_action=asked.text, lead=lead, findings=_with_roles(first, group),
        members=tuple(x.finding for x in group.rows or group.beside[:1]),
        configured_exposure=_configured(lead, accepts) if lasts else Configured.NO,
        do_first="" if says.finding.detector == lead.detector else says.finding.detector,
        remedy=says.finding.remedy, step_tasks=asked.tasks,
    )  # fmt: skip


def _told(first: Member[F], rows: Sequence[Member[F]]) -> str:
    """Say what is wrong; of what is over, also that it is repaired, if that was proved since."""
    said, ended_us = sentence(first, rows), max(_ended_us(x.finding) for x in rows)
    proofs = [x for x in rows if x.finding.detector == REPAIRED and x.finding.opened_at_us == ended_us]
    if not proofs or first in proofs or first.finding.status is Status.OPEN:
        return said
    return f"{said.removesuffix('.')}. {sentence(proofs[0], proofs)}"


def _configured(lead: Finding, accepts: Accepts) -> Configured:
    return Configured.ACCEPTED if lead.detector in accepts(lead.application_id) else Configured.YES


def _ended_us(one: Finding) -> int:
    return one.opened_at_us if one.resolved_at_us is None else one.resolved_at_us


def _instruction(lead: Member[F], group: Iterable[Member[F]]) -> Member[F]:
    """Choose the finding whose next step is the incident's: the lead, but for an open one whose step comes first."""
    urgent = [] if asks_first(lead.finding) else [x for x in group if asks_first(x.finding)]
    return min(
        urgent,
        key=lambda x: (
            comes_first(x.finding.detector),
            weight(x.finding),
            x.finding.opened_at_us,
            x.finding.task_id or "",
        ),
        default=lead,
    )


def _with_roles(lead: Member[F], group: Group[F]) -> tuple[tuple[EvidenceRole, F], ...]:
    bound = [(x, _role(lead, x, group)) for x in group.rows]
    beside = [(x, _beside(lead, x, group)) for x in group.beside]
    return tuple((role, x.finding) for x, role in sorted((*bound, *beside), key=lambda x: x[0].order))


def _role(lead: Member[F], one: Member[F], group: Group[F]) -> EvidenceRole:
    """The same detector says the same of other tasks and stores; what opened before the lead led to it."""
    if one is lead:
        return EvidenceRole.CAUSE
    if CONFIRMS in _relations(one, group) or one.finding.id in lead.link.confirms:
        return EvidenceRole.CONFIRMATION
    if one.finding.detector == lead.finding.detector:
        return EvidenceRole.CONFIRMATION
    if lead.known and not one.known:
        return EvidenceRole.CONSEQUENCE
    is_before = one.finding.opened_at_us < lead.finding.opened_at_us
    return EvidenceRole.CAUSE if is_before else EvidenceRole.CONSEQUENCE


def _beside(lead: Member[F], one: Member[F], group: Group[F]) -> EvidenceRole:
    if REFUTES in _relations(one, group):
        return EvidenceRole.REFUTATION
    return EvidenceRole.CAUSE if one is lead else EvidenceRole.CONSEQUENCE


def _relations(one: Member[F], group: Group[F]) -> set[str]:
    return {x.relation for x in one.known if x.incident in group.locals_}


# -- whose instruction comes first ------------------------------------------------------------------------
#
# Two processes on one directory make every repair vain; where the changelog lacks records, a copy that another incident
# says to remove may be the only complete one.

_EVERYWHERE, _SOMEWHERE = "*", None
"""Beside pods: what names none concerns all, and what is about any of them concerns it."""

_Place = tuple[object, ...]


def asks_first(one: Finding) -> bool:
    """Return whether a finding's instruction comes before others. A remark is no instruction."""
    if one.detector in ONLY_OF_DAMAGE and one.level is not Level.DAMAGE:
        return False
    return comes_first(one.detector) > 0 and one.status is Status.OPEN and one.severity is not Severity.INFO


def _agreed(made: Sequence[Incident[F]]) -> list[Incident[F]]:
    """Replace the step of each incident about a task, or pod, of which another's instruction must come first."""
    asking = [x for x in made if x.status is Status.OPEN and x.about_state]
    first: dict[_Place, Incident[F]] = {}
    for one in sorted((x for x in asking if _urgency(x)[0]), key=_urgency):
        for place in _offered(one):
            first.setdefault(place, one)
    before = {
        id(one): min((first[x] for x in _sought(one) if x in first), key=_urgency, default=one)
        for one in asking
    }
    return [_behind(one, before.get(id(one), one)) for one in made]


def _behind(one: Incident[F], first: Incident[F]) -> Incident[F]:
    if first is one:
        return one
    text = f"First do what incident {first.id} ({_asking(first)}) asks for; remove nothing before."
    return replace(one, next_action=text, do_first=first.id, remedy=Remedy.OTHER, step_tasks=())


def _asking(one: Incident[Any]) -> str:
    """Name the detector whose instruction is the incident's."""
    return one.do_first or one.lead.detector


def _urgency(one: Incident[Any]) -> tuple[int, int, str]:
    """Give first the place before the instructions of others, from 1; 0 = none."""
    asks = any(x.detector == _asking(one) and asks_first(x) for _, x in one.findings)
    return comes_first(_asking(one)) if asks else 0, one.since_us, one.id


def _offered(one: Incident[Any]) -> list[_Place]:
    """List the places at which an instruction comes first: its tasks, and its pods for what names no task."""
    kind = "any" if one.tasks else "whole"
    pods = (*one.pods, _SOMEWHERE) if one.pods else (_EVERYWHERE, _SOMEWHERE)
    return [*_of_tasks(one), *((kind, *_home(one), x) for x in pods)]


def _sought(one: Incident[Any]) -> list[_Place]:
    """List the places at which something could come before it; what is about the application is on its own pods."""
    kinds = ("whole",) if one.tasks else ("whole", "any")
    pods = (*one.pods, _EVERYWHERE) if one.pods else (_SOMEWHERE,)
    return [*_of_tasks(one), *((kind, *_home(one), x) for kind in kinds for x in pods)]


def _of_tasks(one: Incident[Any]) -> list[_Place]:
    return [("task", *_home(one), x) for x in one.tasks]


def _home(one: Incident[Any]) -> tuple[str, str]:
    return one.namespace, one.application_id


SUMMARY_CHARACTERS, STEP_CHARACTERS = 300, 800
"""The step of KAFKA-20685, with the proof before it and three more tasks after it, takes 700."""


def where_to_read(incident_id: str) -> str:
    """Say where an incident is whole."""
    return f"`statewarden explain {incident_id} --events SOURCE`, the agent's page, or the newest report"


def summary_of(incident: Incident[F]) -> str:
    """Say what it is about, what names it by now, how sure that is, and what is wrong: one line for a chat."""
    where = " ".join(x for x in (incident.application_id, named(incident.like_the_lead)) if x)
    on = f" on {named(incident.pods)}" if incident.pods else ""
    how = f"{incident.lead.detector}, {incident.confidence.value}"
    return shorten(
        f"{where or 'The agent'}{on} ({how}): {incident.sentence}", SUMMARY_CHARACTERS, placeholder=" ..."
    )


def step_of(incident: Incident[F]) -> str:
    """Give the one step, whole or not at all: who follows half of it may lose what the other half would have saved."""
    if len(incident.next_action) <= STEP_CHARACTERS:
        return incident.next_action
    return f"Too long for an alert. Read it whole before you remove or start anything: {where_to_read(incident.id)}."
