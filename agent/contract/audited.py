"""Incidents of the fleet: rows of the table `findings`, read back and grouped as agents group theirs. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from agent.contract import incidents
from agent.contract.codec import parse_us
from agent.contract.finding import Finding, words_of
from agent.contract.grouping import Link, LocalIncident
from agent.contract.incidents import Incident
from agent.contract.mechanisms import TITLES

Row = Mapping[str, Any]
"""One row of the table `findings` (`spark_rollup.schemas.FINDING`)."""

FLEET, AGENT = "fleet", "agent"
"""Values of `reported_by`: a rule of the fleet, or a single agent."""


@dataclass(frozen=True, slots=True)
class FleetFinding(Finding):
    """A finding of the table, with its row: what it confirms, refutes or explains is its `link`."""

    link: Link = field(default_factory=Link)
    row: Row = field(default_factory=dict, compare=False)

    @property
    def runbook(self) -> str:
        """What `statewarden explain` prints about it."""
        return self.detector if self.link.by_agent else f"rules/{self.detector}"


FleetIncident = Incident[FleetFinding]


def gather(rows: Iterable[Row], titles: Mapping[str, str] = TITLES) -> list[FleetIncident]:
    """Put rows of `findings` together to incidents; in any order of rows the same ones.

    `titles`: by mechanism, of rules that are a mechanism by themselves too.
    """
    return incidents.gather(map(read, rows), link=lambda x: x.link, titles=titles)


def read(row: Row) -> FleetFinding:
    """Read one row.

    Raises:
        KeyError: a column is missing that every version had.
        ValueError: a word is none of the table's.
    """
    namespace = str(row.get("namespace") or "")
    return FleetFinding(
        id=str(row["id"]),
        identity=row.get("identity"),
        opened_at_us=parse_us(row["opened_at"]) or 0,
        resolved_at_us=parse_us(row.get("resolved_at")),
        link=Link(
            namespace=namespace,
            pod=row.get("pod") or "",
            pods=_texts(row, "pods"),
            by_agent=row.get("reported_by") == AGENT,
            about=tuple(
                LocalIncident((namespace, x["incident_id"]), x["relation"], x["mechanism"], x["since_us"])
                for x in row.get("local_incidents") or ()
            ),
            confirms=_texts(row, "confirms"),
            lineage=_texts(row, "lineage"),
        ),
        row=row,
        **words_of(row),
    )


def _texts(row: Row, name: str) -> tuple[str, ...]:
    return tuple(map(str, row.get(name) or ()))
