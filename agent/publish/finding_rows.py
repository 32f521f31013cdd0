"""Ledger and inventory -> the rows of a snapshot that alerts are made of: findings by task, tasks that are gone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from agent.contract.finding import Finding
from agent.detectors import BY_ID
from agent.engine.rows import TaskRow
from agent.findings.ledger import Ledger
from agent.inventory.model import Task
from agent.judging.base import Kind
from agent.publish.snapshot import Counts

EVENT_SHOWN_US = 3_600_000_000
"""An event is over when it is reported; alerts see it for this long."""

GONE_SHOWN_US = 3_600_000_000
"""When a directory that is gone was last seen is reported for this long."""

ROWS_LISTED = 500
"""Rows of findings by task at most: ten thousand exposed tasks must not make ten thousand series."""


def task_rows(ledger: Ledger, now_us: int) -> tuple[Counts, int]:
    """Count findings by task: the open ones, and events of the last hour.

    Gives counts by the labels of the series, the worst first, and how many findings are in none of them.
    """
    counts = Counter(
        (-x.severity.rank, x.application_id, x.task_id or "", x.detector, x.severity.value)
        for x in shown_findings(ledger, now_us)
    )
    listed: dict[tuple[str, ...], int] = {key[1:]: counts[key] for key in sorted(counts)[:ROWS_LISTED]}
    return listed, counts.total() - sum(listed.values())


def shown_findings(ledger: Ledger, now_us: int) -> list[Finding]:
    """List what alerts see: open findings, and events of the last hour."""
    return [*ledger.open_findings(), *_events(ledger, now_us)]


def gone_row(task: Task, now_us: int) -> TaskRow | None:
    """Return when a task's directory that is gone was last seen, for a while."""
    if task.exists or not task.past:
        return None
    ended_us = task.past[-1].ended_us
    if now_us - ended_us > GONE_SHOWN_US:
        return None
    return TaskRow(task.application, task.id, last_seen_at_us=ended_us, exists=False)


def _events(ledger: Ledger, now_us: int) -> Iterable[Finding]:
    closed = ledger.closed_since(now_us - EVENT_SHOWN_US)
    return (x for x in closed if x.detector in BY_ID and BY_ID[x.detector].meta.kind is Kind.EVENT)
