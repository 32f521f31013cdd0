"""What the page shows, as plain values: how its rows are told apart, where they are, what the filter knows of them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from agent.contract.audited import FleetIncident
from agent.contract.codec import parse_us
from agent.contract.events import Severity, Status
from spark_rollup.fleet.restarts import UNDECIDED
from spark_rollup.report import unread
from spark_rollup.report.expected import Expected
from spark_rollup.report.missed import missed
from spark_rollup.report.page import text
from spark_rollup.report.page.text import code, link, name
from spark_rollup.report.since_last import SinceLast
from spark_rollup.report.story import texts

Row = Mapping[str, Any]
Rows = Sequence[Row]

TaskKey = tuple[str, str, str]  # namespace, application, task
PodKey = tuple[str, str]  # namespace, pod

SEVERITIES = ("critical", "warning", "info")  # the most severe first, as the page lists them
WORDS = {"critical": "critical", "warning": "warning", "info": "remark", UNDECIDED: UNDECIDED}
"""How the page calls an incident of each severity, and a question."""


@dataclass(frozen=True)
class PageData:
    """Rows of the audit's tables, as far as the page shows them."""

    as_of_us: int
    version: str
    incidents: Sequence[FleetIncident] = ()
    findings: Rows = ()  # of `schemas.FINDING`, in the order of the page: they are counted and drawn
    coverage: Rows = ()
    pods: Rows = ()
    timelines: Sequence[
        Row
    ] = ()  # of `schemas.TIMELINE`: of tasks that have findings, and of pods as a whole
    quarantine: Mapping[str, int] = field(default_factory=dict)  # number of unusable lines by reason
    unread: Mapping[str, int] = field(default_factory=dict)  # lines of another major version by namespace/pod
    unfinished: Mapping[str, str] = field(default_factory=dict)  # see `unpacked.unfinished`
    releases: Rows = ()  # namespace, application_id and not_given of every application
    disabled: Sequence[
        Row
    ] = ()  # namespace, application_id, pod, detector and reason, as agents have disabled
    restarts: Rows = ()
    known_pods: Rows = ()  # namespace, pod, doubt (null: none) and gone of every pod
    written_us: int = 0  # when the page was written, microseconds since the epoch; 0 = not known
    took_s: float | None = None  # how long the run took until then, seconds; None = not known
    since_last: SinceLast | None = None  # what changed since the last audit; None = none, or of a later time
    expected: Expected | None = None  # what is missing of the pods that were expected; None = none were named

    def applications(self) -> list[str]:
        """List the names of all applications."""
        return sorted({name for row in self.pods for name in texts(row["applications"])})

    @cached_property
    def several(self) -> bool:
        """Whether pods and tasks must be named with their namespace."""
        return len({x.namespace for x in self.incidents} | {pod_key(row)[0] for row in self.pods}) > 1

    def called(self, key: Sequence[str]) -> str:
        """Name a pod or task, with its namespace where there are several."""
        return name("/".join((key[0] or "-", *key[1:]) if self.several else key[1:]))

    def first_seen_us(self) -> int:
        """Find when the covered time begins, microseconds since the epoch."""
        times = (parse_us(row["first_seen"]) or self.as_of_us for row in self.coverage)
        return min(times, default=self.as_of_us)

    def open_incidents(self) -> list[FleetIncident]:
        """List incidents of which something still has to be done."""
        return [x for x in self.incidents if x.status is Status.OPEN]

    def urgent(self) -> list[FleetIncident]:
        """List open incidents that are no remarks."""
        return [x for x in self.open_incidents() if x.severity is not Severity.INFO]

    def undecided(self) -> list[FleetIncident]:
        """List open incidents that are questions: their worst case may be critical."""
        return [x for x in self.urgent() if counts_as(x) == UNDECIDED]

    def open_findings(self) -> list[Row]:
        """List findings that are open."""
        return [row for row in self.findings if row["status"] == Status.OPEN.value]

    def worst_open(self) -> Severity | None:
        """Find the highest severity of what is open, known or only counted by agents; None: nothing, or questions."""
        found = self.open_findings()
        levels = [Severity(str(row["severity"])) for row in found if row["detector"] != UNDECIDED]
        return max((*levels, *missed(self.coverage)), key=lambda level: level.rank, default=None)

    def lacking(self) -> str:
        """Say what is missing of the expected pods and tasks, and which lines wait for an upgrade; empty: none."""
        expected = self.expected.in_words() if self.expected else ""
        return "; ".join(filter(None, (expected, unread.in_words(self.unread, files=self.unfinished))))

    def watched(self) -> tuple[float, float]:
        """Sum up the time of all pods, and how much of it was not watched (seconds)."""
        return sum(x["span_seconds"] for x in self.coverage), sum(x["unknown_seconds"] for x in self.coverage)

    def undetected(self) -> list[str]:
        """List the detectors that are disabled somewhere."""
        return sorted({str(row["detector"]) for row in self.disabled})


@dataclass(slots=True)
class Links:
    """Where things are on the page."""

    cards: Mapping[tuple[str, str], str]  # namespace and id of every incident that has a card -> its address
    drawn: frozenset[TaskKey] = frozenset()  # tasks whose timeline is on the page
    answered: frozenset[PodKey] = frozenset()  # pods whose answer about a restart is on the page

    def card(self, incident: FleetIncident) -> str:
        """Find an incident's address; empty: it has no card."""
        return self.cards.get((incident.namespace, incident.id), "")

    def to(self, incident: FleetIncident) -> str:
        """Name where an incident is, as a link if it has a card."""
        return link(at, short(incident)) if (at := self.card(incident)) else short(incident)

    def about(
        self, incidents: Iterable[FleetIncident], keys: Callable[[FleetIncident], Iterable[TaskKey]]
    ) -> Mapping[TaskKey, list[str]]:
        """Link each task to the cards of incidents about it."""
        found: dict[TaskKey, list[str]] = defaultdict(list)
        for one in incidents:
            if address := self.card(one):
                for key in keys(one):
                    found[key].append(link(address, code(one.id)))
        return found


def counts_as(incident: FleetIncident) -> str:
    """Say what an incident is counted as: a question, or its severity."""
    return UNDECIDED if incident.lead.detector == UNDECIDED else incident.severity.value


def task_key(row: Row) -> TaskKey:
    """Name the task of a row."""
    return str(row["namespace"] or ""), str(row["application_id"]), str(row["task_id"])


def tasks_of(incident: FleetIncident) -> list[TaskKey]:
    """List the tasks that an incident's findings are about."""
    return list(dict.fromkeys(task_key(one.row) for _, one in incident.findings if one.task_id))


def pod_key(row: Row) -> PodKey:
    """Name the pod of a row."""
    return str(row["namespace"] or ""), str(row["pod"])


def cards_of(incidents: Iterable[FleetIncident]) -> Mapping[tuple[str, str], str]:
    """Give incidents their addresses: the id, unless it could break one or another namespace has it already."""
    found: dict[tuple[str, str], str] = {}
    taken: set[str] = set()
    for one in incidents:
        address = text.local_id(one.id)
        if address in taken:
            address = text.anchor("i", (one.namespace, one.id))
        taken.add(address)
        found[one.namespace, one.id] = address
    return found


def whole(incident: FleetIncident) -> str:
    """Write the full address: namespace (its cluster before it), application, tasks, stores, pods."""
    names = (("task", incident.tasks, 12), ("store", incident.stores, 4), ("pod", incident.pods, 12))
    parts = [f"{noun}{'' if len(x) == 1 else 's'} {_named(x, limit)}" for noun, x, limit in names if x]
    return text.dotted(_service(incident) or "the whole fleet", *parts)


def short(incident: FleetIncident) -> str:
    """Write the address for a list or a headline."""
    tasks = f" {_named(incident.tasks, 3)}" if incident.tasks else ""
    pods = f" on {_named(incident.pods, 3)}" if incident.pods else ""
    return f"{_service(incident)}{tasks}{pods}" or "the whole fleet"


def _service(incident: FleetIncident) -> str:
    return "/".join(name(part) for part in (incident.namespace, incident.application_id) if part)


def _named(names: Iterable[str], limit: int) -> str:
    ordered = sorted(names, key=lambda x: text.natural((x,)))
    return text.named(ordered, limit)
