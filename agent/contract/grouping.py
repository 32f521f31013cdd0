"""Which findings belong to one incident, over one agent or a fleet. Pure.

By mechanism and lineage, never by time alone. An agent's finding says itself to which incident it belongs. In the fleet
a finding of a rule belongs together with
- the agents' incidents of its mechanism that it confirms: those become one;
- where it confirms none, findings of its mechanism that share its `lineage` (a task, a pod, an instruction: the rule
  says what) while both last.
What it refutes or only takes into account it is evidence of, and joins nothing to it; but what is open and worse than
all that these incidents say is part of the oldest of them: no incident may hide what its evidence says.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from agent.contract.events import Severity, Status
from agent.contract.finding import Finding

F = TypeVar("F", bound=Finding)

Local = tuple[str, str]  # an agent's incident: namespace, id. Of another namespace it is another one.

IS, CONFIRMS, REFUTES, EXPLAINS = "is", "confirms", "refutes", "explains"
"""How a finding is about an agent's incident: it is one of its own, or what a rule's columns of these names say."""

_NEVER = float("inf")

_MOST = max(severity.rank for severity in Severity)


@dataclass(frozen=True, slots=True)
class LocalIncident:
    """An agent's incident that a finding is about: how, of which mechanism, since when."""

    incident: Local
    relation: str
    mechanism: str
    since_us: int


@dataclass(frozen=True, slots=True)
class Link:
    """What the fleet knows of a finding; nothing of it is known to one agent."""

    namespace: str = ""  # as in the tables: with the cluster before it (`eu-1/shop`) where one is known
    pod: str = ""  # pod that it is about; empty: none, or several
    pods: tuple[str, ...] = ()  # pods that it is about or was compared with
    by_agent: bool = True  # whether an agent says it, and no rule
    about: tuple[LocalIncident, ...] = ()
    """Agents' incidents that it confirms, refutes or explains; an agent's finding is one of its own incident."""
    confirms: tuple[str, ...] = ()  # ids of agents' findings that it confirms
    lineage: tuple[str, ...] = ()
    """What findings of its mechanism have in common with it, if they belong together."""


OF_ONE_AGENT = Link()


def incident_of(finding_id: str) -> str:
    """Make the id of the incident that begins with this finding."""
    return f"i-{finding_id[:12]}"


class Member(Generic[F]):
    """A finding among others: the agents' incidents that it is about, and with which of them it is one (`bound`)."""

    __slots__ = ("bound", "finding", "known", "link", "mechanism", "order")

    def __init__(self, one: F, link: Link) -> None:
        self.finding, self.link, self.mechanism = one, link, one.mechanism or one.detector
        self.known = link.about
        if link.by_agent and not link.about:
            own = (link.namespace, one.incident_id or incident_of(one.id))
            self.known = (LocalIncident(own, IS, self.mechanism, one.opened_at_us),)
        self.bound = _bound(self.mechanism, self.known)
        place = (one.task_id or "", one.store or "", link.namespace, link.pod)
        self.order = (one.opened_at_us, one.detector, *place, one.id)

    @property
    def until(self) -> float:
        """When it ended; never, while it is open."""
        if self.finding.status is Status.OPEN:
            return _NEVER
        return (
            self.finding.opened_at_us if self.finding.resolved_at_us is None else self.finding.resolved_at_us
        )


def _bound(mechanism: str, known: Sequence[LocalIncident]) -> tuple[LocalIncident, ...]:
    """Choose the agents' incidents that a finding is one with: of its mechanism, else of that of the oldest."""
    sure = [x for x in known if x.relation in (IS, CONFIRMS)]
    if len(sure) < 2:
        return tuple(sure)
    oldest = min(sure, key=lambda x: (x.since_us, x.incident))
    same = tuple(x for x in sure if x.mechanism == mechanism)
    return same or tuple(x for x in sure if x is oldest or x.mechanism == oldest.mechanism)


@dataclass(slots=True)
class Group(Generic[F]):
    """What is one incident."""

    rows: list[Member[F]] = field(default_factory=list)  # rows that say what it is
    beside: list[Member[F]] = field(default_factory=list)
    """Rows that are evidence only: what they refute or take into account is here. Without `rows` the first one is
    why there is a group."""
    locals_: dict[Local, int] = field(default_factory=dict)
    """Agents' incidents in it, with their begin (microseconds)."""

    @property
    def mechanism(self) -> str:
        """That of the oldest of the agents' incidents that its evidence names; of rows without one, their own."""
        named = [(x.since_us, x.incident, x.mechanism) for one in self.beside for x in one.known]
        return min(x for x in named if x[1] in self.locals_)[2]

    @property
    def first(self) -> tuple[int, str]:
        """The oldest of the agents' incidents, or else what makes its id."""
        named = [(since_us, id_) for (_, id_), since_us in self.locals_.items()]
        oldest = (self.rows or self.beside)[0]
        return min(named, default=(oldest.finding.opened_at_us, incident_of(oldest.finding.id)))


def groups(findings: Iterable[F], link: Callable[[F], Link]) -> list[Group[F]]:
    """Group findings; in any order of them the same groups.

    Gives every group, with its rows in their order. A row is in one group; beside, it may be in several.
    """
    rows = sorted((Member(x, link(x)) for x in findings), key=lambda x: x.order)
    sets = _Sets()
    bound = [x for x in rows if x.bound]
    for one in bound:
        sets.join(one, *(x.incident for x in one.bound))
    own = [x for x in rows if not x.known]
    _link(own, bound, sets)
    found: dict[object, Group[F]] = defaultdict(Group)
    of_row = {}
    for one in (*bound, *own):
        of_row[one] = group = found[sets.of(one)]
        group.rows.append(one)
        _add(group, one.bound)
    made = _set_beside([*bound, *(x for x in rows if x.known and not x.bound)], of_row)
    for group in found.values():
        group.rows.sort(key=lambda x: x.order)
    return [*found.values(), *made]


def _add(group: Group[F], known: Iterable[LocalIncident]) -> None:
    for one in known:
        group.locals_[one.incident] = min(one.since_us, group.locals_.get(one.incident, one.since_us))


class _Sets:
    """Disjoint sets."""

    def __init__(self) -> None:
        self._above: dict[object, object] = {}

    def of(self, member: object) -> object:
        """Return the member that represents its set."""
        path = []
        while (above := self._above.setdefault(member, member)) is not member and above != member:
            path.append(member)
            member = above
        for each in path:
            self._above[each] = member
        return member

    def join(self, first: object, *others: object) -> None:
        """Make one set of those of all members."""
        for other in others:
            self._above[self.of(other)] = self.of(first)


def _link(own: Sequence[Member[F]], bound: Sequence[Member[F]], sets: _Sets) -> None:
    """Join what agents do not know by its lineage: to their oldest incident that has it, else with each other."""
    homes = _by_key(bound)
    left = []
    for one in own:
        met = (_first_beside(one, homes.get(key, ())) for key in _keys(one))
        home = min((x for x in met if x is not None), key=lambda x: x.order, default=None)
        if home is None:
            left.append(one)
        else:
            sets.join(home, one)
    for together in _by_key(left).values():
        until, before = together[0].until, together[0]
        for one in together[1:]:
            if one.finding.opened_at_us <= until:
                sets.join(before, one)
            until, before = max(until, one.until), one


def _by_key(rows: Iterable[Member[F]]) -> Mapping[tuple[str, str, str], Sequence[Member[F]]]:
    found: dict[tuple[str, str, str], list[Member[F]]] = defaultdict(list)
    for one in rows:
        for key in _keys(one):
            found[key].append(one)
    return found


def _keys(one: Member[F]) -> list[tuple[str, str, str]]:
    return [(one.link.namespace, one.mechanism, key) for key in one.link.lineage]


def _first_beside(one: Member[F], others: Iterable[Member[F]]) -> Member[F] | None:
    """Find the first of some rows, in their order, that lasted when this one did."""
    return next(
        (x for x in others if x.finding.opened_at_us <= one.until and one.finding.opened_at_us <= x.until),
        None,
    )


def _urgency(rows: Iterable[Member[F]]) -> int:
    """Rank the worst of what is open; a remark, and what is over, asks for nothing."""
    return max(
        (x.finding.severity.rank for x in rows if x.finding.status is Status.OPEN), default=Severity.INFO.rank
    )


def _set_beside(rows: Iterable[Member[F]], of_row: Mapping[Member[F], Group[F]]) -> list[Group[F]]:
    """Add rows as evidence to the incidents that they name without being one with them.

    What no row says any more goes where the row that settles it is, or is an incident with it alone.

    Gives groups that had to be made.
    """
    homes = {local: group for group in of_row.values() for local in group.locals_}
    says = {id(group): _urgency(group.rows) for group in of_row.values()}
    made = []
    for one in rows:
        if len(one.known) == len(one.bound):
            continue
        named = sorted(
            set(one.known).difference(one.bound), key=lambda x: (x.since_us, x.incident, x.relation)
        )
        at_home = list(
            {id(homes[x.incident]): homes[x.incident] for x in named if x.incident in homes}.values()
        )
        lost = [x for x in named if x.incident not in homes]
        own = of_row.get(one)
        # of a group that was made the evidence itself says how bad it is
        if own is None and at_home and _urgency([one]) > max(says.get(id(x), _MOST) for x in at_home):
            own = at_home[0]
            own.rows.append(one)
        for group in at_home:
            if group is not own:
                group.beside.append(one)
        if not lost:
            continue
        if own is None and at_home and all(x.relation == EXPLAINS for x in lost):
            own = at_home[0]
        if own is None:
            own = Group(beside=[one])
            made.append(own)
        _add(own, lost)
        homes |= {x.incident: own for x in lost}
    return made
