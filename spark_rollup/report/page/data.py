"""What the page shows, as plain values, and how its rows are told apart."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from agent.contract.audited import FleetIncident
from agent.contract.codec import parse_us
from agent.contract.events import Severity, Status
from spark_rollup.fleet.restarts import UNDECIDED
from spark_rollup.report import unread
from spark_rollup.report.expected import Expected
from spark_rollup.report.missed import missed
from spark_rollup.report.since_last import SinceLast
from spark_rollup.report.story import texts

Row = Mapping[str, Any]

TaskKey = tuple[str, str, str]
"""Namespace, application, task."""

PodKey = tuple[str, str]
"""Namespace, pod."""

SEVERITIES = ("critical", "warning", "info")
"""The most severe first, as the page lists them."""

WORDS = {"critical": "critical", "warning": "warning", "info": "remark", UNDECIDED: UNDECIDED}
"""How the page calls an incident of each severity, and a question."""

REMARK = SEVERITIES[-1]


@dataclass(frozen=True, slots=True)
class PageData:
    """Rows of the audit's tables, as far as the page shows them."""

    as_of_us: int
    version: str
    incidents: Sequence[FleetIncident] = ()
    findings: Sequence[Row] = ()
    """`schemas.FINDING` rows, in the order of the page: they are counted and drawn."""
    coverage: Sequence[Row] = ()
    pods: Sequence[Row] = ()
    timelines: Sequence[Row] = ()
    """`schemas.TIMELINE` rows of the tasks that have findings, and of pods as a whole."""
    quarantine: Mapping[str, int] = field(default_factory=dict)  # number of unusable lines by reason
    unread: Mapping[str, int] = field(default_factory=dict)  # lines of another major version by namespace/pod
    unfinished: Mapping[str, str] = field(default_factory=dict)  # see `unpacked.unfinished`
    releases: Sequence[Row] = ()  # namespace, application_id and not_given of every application
    disabled: Sequence[Row] = ()
    """namespace, application_id, pod, detector and reason of detectors that agents have disabled."""
    restarts: Sequence[Row] = ()
    known_pods: Sequence[Row] = ()  # namespace, pod, doubt (null: none) and gone of every pod
    written_us: int = 0  # when the page was written, microseconds since the epoch; 0 = not known
    took_s: float | None = None  # how long the run took until then, seconds; None = not known
    since_last: SinceLast | None = None
    """What changed since the last audit of the same output; None = there is none, or of a later time."""
    expected: Expected | None = None  # what is missing of the pods that were expected; None = none were named

    def applications(self) -> list[str]:
        """List the names of all applications."""
        return sorted({name for row in self.pods for name in texts(row["applications"])})

    def several(self) -> bool:
        """Return whether pods and tasks must be named with their namespace."""
        spaces = {x.namespace for x in self.incidents} | {pod_key(row)[0] for row in self.pods}
        return len(spaces) > 1

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
    drawn: frozenset[TaskKey] = field(default_factory=frozenset)  # tasks whose timeline is on the page
    answered: frozenset[PodKey] = field(default_factory=frozenset)
    """Pods whose answer about a restart is on the page."""

    def card(self, incident: FleetIncident) -> str:
        """Find an incident's address; empty: it has no card."""
        return self.cards.get((incident.namespace, incident.id), "")


def counts_as(incident: FleetIncident) -> str:
    """Say what an incident is counted as: a question, or its severity."""
    return UNDECIDED if incident.lead.detector == UNDECIDED else incident.severity.value


def task_key(row: Row) -> TaskKey:
    """Name the task of a row."""
    return str(row["namespace"] or ""), str(row["application_id"]), str(row["task_id"])


def pod_key(row: Row) -> PodKey:
    """Name the pod of a row."""
    return str(row["namespace"] or ""), str(row["pod"])


def natural(key: Sequence[str]) -> list[tuple[int, int, str]]:
    """Order names as people count: `0_2` before `0_10`."""
    parts = re.split(r"([0-9]{1,18})", "/".join(key))
    return [(0, int(part), "") if part.isascii() and part.isdigit() else (1, 0, part) for part in parts]
