"""The rows of a snapshot: of tasks and their findings, of incidents, and of exposures by release or settings."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence

from agent.contract.events import Severity, Status
from agent.contract.finding import Finding
from agent.contract.incidents import Accepts, Configured, Incident, step_of, summary_of
from agent.contract.wording import named
from agent.detectors import BY_ID
from agent.engine.pipeline import Pipeline
from agent.engine.rows import Key, TaskRow, task_row, worst_by_task
from agent.findings.ledger import Ledger
from agent.inventory.model import Task
from agent.judging.base import Kind
from agent.publish.snapshot import Counts, IncidentRow

EVENT_SHOWN_US = 3_600_000_000  # an event is over when it is reported; alerts see it for this long
GONE_SHOWN_US = 3_600_000_000  # when a directory that is gone was last seen is reported for this long

ROWS_LISTED = 500
"""Rows of findings by task at most: ten thousand exposed tasks must not make ten thousand series."""

INCIDENTS_LISTED = 100  # incidents with a series each at most; what is left out is counted in one series


class TaskTable:
    """Rows of all tasks, kept from one snapshot to the next; a row is recreated when its task may have changed.

    Of ten thousand tasks a few hundred change within a second, and making every row took a twentieth of a core.
    """

    def __init__(self, *, with_stores: bool = False) -> None:
        """Start empty.

        `with_stores`: whether there are rows of single stores.
        """
        self._with_stores = with_stores
        self._rows: dict[str, dict[str, TaskRow]] = {}  # by application, by task
        self._worst: Mapping[Key, Severity] = {}
        self._gone: set[Key] = set()
        self._all: tuple[TaskRow, ...] = ()
        self.there: Mapping[str, int] = {}  # application -> how many of its task directories are there

    def update(self, pipeline: Pipeline, now_us: int) -> tuple[TaskRow, ...]:
        """Bring the rows up to date; takes the list of tasks that were read."""
        found = worst_by_task(pipeline.ledger.open_findings())
        worst = {key: severity for key, severity in found.items() if key[1]}
        judged = {key for key, _ in worst.items() ^ self._worst.items()}
        # a directory that is gone is reported for a while only
        keys = pipeline.looker.pop_read_tasks() | judged | self._gone
        self._worst = worst
        for key in keys:
            self._renew(pipeline, key, now_us)
        if keys:  # else all ten thousand are as they were
            self._all = tuple(row for rows in self._rows.values() for row in rows.values())
            self.there = {name: sum(row.exists for row in rows.values()) for name, rows in self._rows.items()}
        return self._all

    def _renew(self, pipeline: Pipeline, key: Key, now_us: int) -> None:
        application = pipeline.inventory.applications.get(key[0])
        task = application.tasks.get(key[1]) if application is not None else None
        rows = self._rows.setdefault(key[0], {})
        self._gone.discard(key)
        if task is not None and task.exists:
            rows[task.id] = task_row(task, self._worst.get(key), with_stores=self._with_stores)
        elif task is not None and (row := gone_row(task, now_us)) is not None:
            rows[task.id] = row
            self._gone.add(key)
        else:
            rows.pop(key[1], None)


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
    closed = ledger.closed_since(now_us - EVENT_SHOWN_US)
    moments = (x for x in closed if x.detector in BY_ID and BY_ID[x.detector].meta.kind is Kind.EVENT)
    return [*ledger.open_findings(), *moments]


def gone_row(task: Task, now_us: int) -> TaskRow | None:
    """Return when a task's directory that is gone was last seen, for a while."""
    if task.exists or not task.past:
        return None
    ended_us = task.past[-1].ended_us
    if now_us - ended_us > GONE_SHOWN_US:
        return None
    return TaskRow(task.application, task.id, last_seen_at_us=ended_us, exists=False)


def incident_rows(
    incidents: Sequence[Incident[Finding]], names: Mapping[str, str] | None = None
) -> tuple[tuple[IncidentRow, ...], int]:
    """List incidents: what raises an alert before what is for reading only, the worst first.

    `incidents`: in the order of people, who see what is over and what the agent does not know last. `names`:
    incident -> detector whose alert it raises; without one that of its lead. Gives the rows, and how many
    incidents are in none of them.
    """
    listed = sorted(incidents, key=lambda x: (x.configured_exposure is not Configured.NO, -x.severity.rank))[
        :INCIDENTS_LISTED
    ]
    rows = tuple(_row(x, (names or {}).get(x.id, x.lead.detector)) for x in listed)
    return rows, len(incidents) - len(listed)


def counts(incidents: Iterable[Incident[Finding]]) -> Mapping[tuple[str, str, bool], int]:
    """Count open incidents by application and severity, accepted ones by themselves."""
    return Counter(
        (x.application_id, x.severity.value, x.is_accepted) for x in incidents if x.status is Status.OPEN
    )


def exposures(
    findings: Iterable[Finding], tasks: Mapping[str, int], accepts: Accepts, release: Callable[[str], str]
) -> Counts:
    """Count the tasks that are exposed by release or settings.

    `tasks`: application that is there -> task directories that it has. `release`: application -> the releases that
    it may run. What is about the application as a whole concerns all its tasks.
    """
    exposed: dict[tuple[str, str], set[str | None]] = defaultdict(set)
    for finding in findings:
        if finding.lasting:
            exposed[finding.application_id, finding.detector].add(finding.task_id)
    return {
        (name, detector, release(name), "true" if detector in accepts(name) else "false"): (
            tasks.get(name, 0) if None in found else len(found)
        )
        for (name, detector), found in sorted(exposed.items())
    }


def _row(incident: Incident[Finding], alert: str) -> IncidentRow:
    lead = incident.lead.detector
    return IncidentRow(
        incident.application_id, incident.id, named(incident.like_the_lead), alert, incident.severity,
        incident.confidence, incident.lead.level, incident.configured_exposure, incident.do_first,
        "" if alert == lead else lead, summary_of(incident), step_of(incident),
    )  # fmt: skip
