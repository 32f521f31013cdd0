"""Which rows of the table `findings` belong to one incident. Pure, without Spark.

By mechanism and lineage, never by time alone. A row belongs together with
- the agents' incidents of its mechanism that it confirms: those become one;
- where it confirms none, rows of its mechanism that share its `lineage` (a task, a pod, an instruction: the rule says
  what) while both last.
What it refutes or only takes into account it is evidence of, and joins nothing to it; but what is open and worse than
all that these incidents say is part of the oldest of them: no incident may hide what its evidence says.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

from agent.contract.events import Confidence, Level, Severity, Status
from agent.contract.incidents import incident_of

Row = Mapping[str, object]
"""One row of the table `findings` (`schemas.FINDING`)."""

Local = tuple[str, str]
"""An agent's incident: namespace, id. Of another namespace it is another one."""

IS, CONFIRMS, REFUTES, EXPLAINS = "is", "confirms", "refutes", "explains"
"""How a row is about an agent's incident: it is a finding of it, or what the columns of these names say."""

_EPOCH = datetime.fromtimestamp(0, UTC)

_NEVER = float("inf")

_MOST = max(severity.rank for severity in Severity)


@dataclass(frozen=True, slots=True)
class LocalIncident:
    """An agent's incident that a row names: how, of which mechanism, since when."""

    incident: Local
    relation: str
    mechanism: str
    since_us: int


@dataclass(frozen=True, slots=True, eq=False)
class FindingRow:
    """A row, read: what `agent.contract.incidents` asks of a finding, and the agents' incidents that it is about.

    It is one with those that are `bound`; rows are listed in their `order`: as they opened.
    """

    row: Row
    id: str
    namespace: str
    detector: str
    mechanism: str
    level: Level
    severity: Severity
    confidence: Confidence
    status: Status
    task_id: str | None
    store: str | None
    opened_at_us: int
    ended_us: int | None
    summary: str
    by_agent: bool
    known: tuple[LocalIncident, ...]
    bound: tuple[LocalIncident, ...]
    lineage: tuple[str, ...]
    order: tuple[int, str, str, str, str, str, str]

    @property
    def until(self) -> float:
        """When it ended; never, while it is open."""
        if self.status is Status.OPEN:
            return _NEVER
        return self.opened_at_us if self.ended_us is None else self.ended_us


def read(row: Row) -> FindingRow:
    """Read one row.

    Raises:
        KeyError: a column is missing that every version had.
        ValueError: a word is none of the table's.
    """
    detector, by_agent = str(row["detector"]), row.get("reported_by") == "agent"
    namespace, opened_us = str(row.get("namespace") or ""), _micros(row["opened_at"]) or 0
    mechanism = str(row.get("mechanism") or detector)
    known = tuple(_known(namespace, x) for x in _list(row, "local_incidents") if isinstance(x, Mapping))
    if by_agent and not known:
        own = str(row.get("incident_id") or incident_of(str(row["id"])))
        known = (LocalIncident((namespace, own), IS, mechanism, opened_us),)
    task, store = _text(row, "task_id"), _text(row, "store")
    return FindingRow(
        row=row,
        id=str(row["id"]),
        namespace=namespace,
        detector=detector,
        mechanism=mechanism,
        level=Level(str(row["level"])),
        severity=Severity(str(row["severity"])),
        confidence=Confidence(str(row["confidence"])),
        status=Status(str(row["status"])),
        task_id=task,
        store=store,
        opened_at_us=opened_us,
        ended_us=_micros(row.get("resolved_at")),
        summary=str(row["summary"]),
        by_agent=by_agent,
        known=known,
        bound=_bound(mechanism, known),
        lineage=tuple(str(x) for x in _list(row, "lineage")),
        order=(
            opened_us,
            detector,
            task or "",
            store or "",
            namespace,
            str(row.get("pod") or ""),
            str(row["id"]),
        ),
    )


def _bound(mechanism: str, known: Sequence[LocalIncident]) -> tuple[LocalIncident, ...]:
    """Choose the agents' incidents that a row is one with: of its mechanism, else of that of the oldest."""
    sure = [x for x in known if x.relation in (IS, CONFIRMS)]
    if len(sure) < 2:
        return tuple(sure)
    oldest = min(sure, key=lambda x: (x.since_us, x.incident))
    same = tuple(x for x in sure if x.mechanism == mechanism)
    return same or tuple(x for x in sure if x is oldest or x.mechanism == oldest.mechanism)


def _known(namespace: str, named: Row) -> LocalIncident:
    return LocalIncident(
        (namespace, str(named["incident_id"])),
        str(named["relation"]),
        str(named["mechanism"]),
        int(str(named["since_us"])),
    )


def _micros(text: object) -> int | None:
    if text is None:
        return None
    try:
        at = datetime.fromisoformat(str(text)) - _EPOCH
    except ValueError:  # Spark writes years after 9999, too: a clock that is broken
        return None
    return (at.days * 86_400 + at.seconds) * 1_000_000 + at.microseconds


def _text(row: Row, name: str) -> str | None:
    value = row.get(name)
    return None if value is None else str(value)


def _list(row: Row, name: str) -> Sequence[object]:
    value = row.get(name)
    return value if isinstance(value, Sequence) else ()


@dataclass(slots=True)
class Group:
    """What is one incident.

    Args of the dataclass:
        rows: Rows that say what it is.
        beside: Rows that are evidence only: what they refute or take into account is here. Without `rows` the first
            one is why there is a group.
        locals_: Agents' incidents in it, with their begin (microseconds).
    """

    rows: list[FindingRow] = field(default_factory=list)
    beside: list[FindingRow] = field(default_factory=list)
    locals_: dict[Local, int] = field(default_factory=dict)

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
        return min(named, default=(oldest.opened_at_us, incident_of(oldest.id)))


def groups(said: Iterable[FindingRow]) -> list[Group]:
    """Group rows; in any order of them the same groups.

    Returns:
        Every group, with its rows in their order. A row is in one group; beside, it may be in several.
    """
    rows = sorted(said, key=lambda x: x.order)
    sets = _Sets()
    bound = [x for x in rows if x.bound]
    for one in bound:
        sets.join(one, *(x.incident for x in one.bound))
    own = [x for x in rows if not x.known]
    _link(own, bound, sets)
    found: dict[object, Group] = defaultdict(Group)
    of_row = {}
    for one in (*bound, *own):
        of_row[one] = group = found[sets.of(one)]
        group.rows.append(one)
        _add(group, one.bound)
    made = _set_beside([*bound, *(x for x in rows if x.known and not x.bound)], of_row)
    for group in found.values():
        group.rows.sort(key=lambda x: x.order)
    return [*found.values(), *made]


def _add(group: Group, known: Iterable[LocalIncident]) -> None:
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


def _link(own: Sequence[FindingRow], bound: Sequence[FindingRow], sets: _Sets) -> None:
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
            if one.opened_at_us <= until:
                sets.join(before, one)
            until, before = max(until, one.until), one


def _by_key(rows: Iterable[FindingRow]) -> Mapping[tuple[str, str, str], Sequence[FindingRow]]:
    found: dict[tuple[str, str, str], list[FindingRow]] = defaultdict(list)
    for one in rows:
        for key in _keys(one):
            found[key].append(one)
    return found


def _keys(one: FindingRow) -> list[tuple[str, str, str]]:
    return [(one.namespace, one.mechanism, key) for key in one.lineage]


def _first_beside(one: FindingRow, others: Iterable[FindingRow]) -> FindingRow | None:
    """Find the first of some rows, in their order, that lasted when this one did."""
    return next((x for x in others if x.opened_at_us <= one.until and one.opened_at_us <= x.until), None)


def _urgency(rows: Iterable[FindingRow]) -> int:
    """Rank the worst of what is open; a remark, and what is over, asks for nothing."""
    return max((x.severity.rank for x in rows if x.status is Status.OPEN), default=Severity.INFO.rank)


def _set_beside(rows: Iterable[FindingRow], of_row: Mapping[FindingRow, Group]) -> list[Group]:
    """Add rows as evidence to the incidents that they name without being one with them.

    What no row says any more goes where the row that settles it is, or is an incident with it alone.

    Returns:
        Groups that had to be made.
    """
    homes = {local: group for group in of_row.values() for local in group.locals_}
    says = {id(group): _urgency(group.rows) for group in of_row.values()}
    made = []
    for one in rows:
        named = sorted(
            set(one.known).difference(one.bound), key=lambda x: (x.since_us, x.incident, x.relation)
        )
        if not named:
            continue
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
