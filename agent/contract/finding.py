"""A finding: as users see it, as the contract's record, and read back from one."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass, fields
from enum import StrEnum
from typing import Any, TypeVar

from agent.contract.codec import rfc3339
from agent.contract.events import Affected, Confidence, Level, Severity, Status
from agent.contract.units import Remedy

T = TypeVar("T")

REPAIRED = "repaired"
"""In the place of a detector: `statewarden repaired` proved it, and the agent says it."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """One observation in the chain that decided a verdict."""

    at_us: int
    what: str
    where: str


@dataclass(frozen=True, slots=True)
class Finding:
    """A finding as users see it."""

    id: str  # stable over its whole life
    detector: str
    level: Level  # kind of statement
    severity: Severity  # how severe
    confidence: Confidence  # how sure
    status: Status  # open or resolved
    application_id: str  # application; empty for the agent itself
    task_id: str | None  # task; None for the application
    store: str | None  # store; None for the task
    identity: str | None  # RocksDB IDENTITY of the incarnation
    opened_at_us: int  # when it opened
    resolved_at_us: int | None  # when it was resolved
    upstream: tuple[str, ...]  # issue keys
    affected: Affected  # is this release affected?
    missing_facts: tuple[str, ...]  # settings that would decide more
    summary: str  # one sentence
    evidence: tuple[Evidence, ...]  # ordered chain; escalation adds to it
    next_action: str  # what is safe to do next
    mechanism: str = ""  # what goes wrong: findings with the same one can belong to one incident
    incident_id: str = ""  # the incident that it is evidence of
    process_ended_at_us: int | None = None
    """When the last process of the application had ended before it opened; None = none was seen."""
    lasting: bool = False  # it comes from release or settings and stays as long as they do
    remedy: Remedy = Remedy.OTHER  # what its step does with the task's directory

    def body(self) -> dict[str, object]:
        """Fields of the contract's `finding` record, under its names."""
        named = (
            (_IN_CONTRACT.get(field.name, field.name), getattr(self, field.name)) for field in fields(self)
        )
        return {name: _plain(value) for name, value in named} | {
            "application_id": self.application_id or None
        }


def read_back(body: Mapping[str, Any]) -> Finding:
    """Read a finding from its record, without its evidence."""
    return Finding(
        id=body["finding_id"], identity=body.get("identity"), opened_at_us=body["opened_at_us"],
        resolved_at_us=body.get("resolved_at_us"), process_ended_at_us=body.get("process_ended_at_us"),
        lasting=bool(body.get("lasting")), **words_of(body),
    )  # fmt: skip


def words_of(said: Mapping[str, Any]) -> dict[str, Any]:
    """Read what records and rows of the fleet's table have in common, by the names of a finding's fields.

    Times of evidence may be none, such as of a clock that is broken: only the record, or the row, has them. Raises
    `KeyError`: a field is missing that every version had. Raises `ValueError`: a word is none of the contract's.
    """
    return {
        "detector": str(said["detector"]), "level": Level(said["level"]), "severity": Severity(said["severity"]),
        "confidence": Confidence(said["confidence"]), "status": Status(said["status"]),
        "application_id": said.get("application_id") or "", "task_id": said.get("task_id"),
        "store": said.get("store"), "upstream": tuple(said.get("upstream") or ()),
        "affected": Affected(said["affected"]), "missing_facts": tuple(said.get("missing_facts") or ()),
        "summary": str(said["summary"]), "evidence": (), "next_action": str(said["next_action"]),
        "mechanism": said.get("mechanism") or said["detector"], "incident_id": said.get("incident_id") or "",
        "remedy": Remedy(said.get("remedy") or Remedy.OTHER),
    }  # fmt: skip


def last_words(
    said: Iterable[T], about: Callable[[T], Hashable], when: Callable[[T], tuple[str, int, int]]
) -> list[T]:
    """Keep the last word about each: of one boot by sequence, as its clock may be set; of several by time.

    `when`: boot, sequence, microseconds since the epoch.
    """
    of_boot: dict[tuple[Hashable, str], T] = {}
    for x in said:
        key = about(x), when(x)[0]
        of_boot[key] = max(of_boot.get(key, x), x, key=lambda x: when(x)[1:])
    last: dict[Hashable, T] = {}
    for (what, _), x in of_boot.items():
        last[what] = max(last.get(what, x), x, key=lambda x: when(x)[:0:-1])
    return [*last.values()]


_IN_CONTRACT = {"id": "finding_id"}


def _plain(value: object) -> object:
    if isinstance(value, StrEnum):
        return value.value
    if isinstance(value, tuple):
        return [_plain(each) for each in value]
    if isinstance(value, Evidence):
        return {"at": rfc3339(value.at_us), "what": value.what, "where": value.where}
    return value
