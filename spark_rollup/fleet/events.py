"""What an agent's event says, as far as the audit reads it: narrow, and without Spark."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple, TypeVar

from agent.contract.events import Kind
from agent.contract.reporting import SILENT_AFTER_S, SUMMARY_S

MICROS = 1_000_000

SLOT_US = SILENT_AFTER_S * MICROS
"""Two events with more than the silence limit between them never share a slot (microseconds)."""

REPAIR_US = (SUMMARY_S + 1) * MICROS
"""No agent rescans after events that were lost: the next round of summaries repairs the picture."""

Row = TypeVar("Row")


class Event(NamedTuple):
    """One event: the fields of the contract under their names; `routine` as `columns.is_routine` says."""

    id: str
    kind: str
    routine: bool
    namespace: str
    pod: str
    pod_uid: str
    boot_id: str
    node: str | None
    agent_version: str | None
    schema_version: str | None
    sequence: int
    observed_at_us: int
    application_id: str | None
    process_id: str | None
    task_id: str | None
    store: str | None
    segment: str | None
    change: str | None
    detail: str | None
    occurred_at_us: int | None
    identity: str | None
    offset_before: int | None
    offset_after: int | None
    puts: int | None
    bytes: int | None
    entries_low: int | None
    entries_high: int | None
    comparable: bool | None
    shape: str | None
    held: bool | None
    finding_id: str | None
    detector: str | None
    level: str | None
    severity: str | None
    confidence: str | None
    status: str | None
    opened_at_us: int | None
    resolved_at_us: int | None
    upstream: Sequence[str] | None
    affected: str | None
    missing_facts: Sequence[str] | None
    summary: str | None
    next_action: str | None
    evidence: Sequence[Any] | None
    mechanism: str | None
    incident_id: str | None
    remedy: str | None
    said_us: int | None
    stores: Sequence[Any] | None
    offsets: Sequence[Any] | None
    blind: Sequence[Any] | None
    applications: Sequence[str] | None
    tasks: int | None
    open_criticals: int | None
    open_warnings: int | None
    open_ids: Sequence[str] | None
    settings: Sequence[Any] | None
    release_low: str | None
    release_high: str | None
    phase: str | None
    first_sequence: int | None
    last_sequence: int | None

    @property
    def is_summary(self) -> bool:
        """Whether it sums a task up."""
        return self.routine and self.kind == Kind.SUMMARY.value

    @property
    def at_us(self) -> int:
        """The artefact's own time where that is earlier than the reading."""
        own = self.occurred_at_us
        return self.observed_at_us if own is None else min(own, self.observed_at_us)


def last_known(rows: Iterable[Row], value: Callable[[Row], Any], order: Callable[[Row], Any]) -> Any:
    """Return the value of the last row in which it is known, of equally late ones the largest; None = in none."""
    known = [(order(row), value(row)) for row in rows if value(row) is not None]
    return max(known)[1] if known else None
