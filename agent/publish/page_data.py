"""What the agent's page shows: made by the worker when somebody asks, and bounded however big the directory is."""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from agent import __version__
from agent.config import Config
from agent.contract.codec import Encoder
from agent.contract.events import Kind, Origin, Record, Severity, Status
from agent.contract.finding import Finding
from agent.contract.incidents import Incident, gather
from agent.engine.pipeline import Pipeline
from agent.engine.rows import Key, TaskRow, task_row, worst_by_task
from agent.inventory.model import Application, BlindInterval, Inventory, Task
from agent.publish.asked import Asked

TASKS_SHOWN = 200  # tasks with their own rows, the worst first; the rest is a number
INCIDENTS_SHOWN = 100
APPLICATIONS_SHOWN = 50
BLIND_SHOWN = 50
WAIT_S = 3.0  # how long a request waits for the worker, whose loop turns at least once a second

Worst = Mapping[Key, Severity]


@dataclass(frozen=True, slots=True)
class ApplicationRow:
    """One application directory, its bounded tasks, and what is known of it."""

    id: str
    releases: str
    process_id: str | None
    processes: tuple[str, ...]
    tasks: tuple[TaskRow, ...]
    tasks_total: int


@dataclass(frozen=True, slots=True)
class PageData:
    """Everything that the page shows, at one moment. Times in microseconds."""

    at_us: int
    agent_version: str
    pod: str  # with its namespace where known
    state_dir: str
    volume: str  # kind of volume; empty = not known
    ready: bool  # the first reading is done
    started_us: int
    watches: int
    applications: tuple[ApplicationRow, ...]
    applications_total: int
    incidents: tuple[Incident[Finding], ...]  # open ones, the worst first
    counts: tuple[tuple[Severity, int], ...]  # all open incidents
    blind: tuple[BlindInterval, ...]  # copies, newest first
    runbooks: str  # base of the links to runbooks; empty = none is known
    undecided: frozenset[tuple[str, str]] = (
        frozenset()
    )  # (application, task) that may be damaged, by a setting
    findings: tuple[Finding, ...] = ()  # everything that was found
    disabled: tuple[tuple[str, str], ...] = ()  # detectors that open no finding, each with the reason


def make_page(pipeline: Pipeline, config: Config, now_us: int, *, watches: int, ready: bool) -> PageData:
    """Describe everything for the page, at one moment; called by the worker."""
    inventory, settings = pipeline.inventory, config.agent
    incidents = _open_incidents(pipeline)
    counts = Counter(incident.severity for incident in incidents)
    worst = worst_by_task(pipeline.ledger.open_findings())
    shown = _chosen_tasks(inventory, worst)
    applications = sorted(
        (x for x in inventory.applications.values() if x.exists),
        key=lambda x: (-max((worst[key].rank + 1 for key in worst if key[0] == x.id), default=0), x.id),
    )
    return PageData(
        at_us=now_us, agent_version=__version__,
        pod=f"{settings.namespace}/{settings.pod}" if settings.namespace else settings.pod,
        state_dir=settings.state_dir, volume=inventory.volume, ready=ready, started_us=inventory.started_us,
        watches=watches,
        applications=tuple(
            _application(pipeline, x, shown.get(x.id, []), worst) for x in applications[:APPLICATIONS_SHOWN]
        ),
        applications_total=len(applications),
        incidents=tuple(incidents[:INCIDENTS_SHOWN]),
        counts=tuple((severity, counts[severity]) for severity in Severity),
        blind=_blind(inventory),
        runbooks=settings.runbooks,
        undecided=frozenset((x.application_id, y) for x in pipeline.worlds.decisions() for y in x.tasks),
        findings=tuple(pipeline.ledger.findings()),
        disabled=tuple(sorted((id_, why.value) for id_, why in pipeline.disabled.items())),
    )  # fmt: skip


def _open_incidents(pipeline: Pipeline) -> list[Incident[Finding]]:
    """List what is open; of an incident that is over, the remarks that are left."""
    accepts = pipeline.settings.accepts
    whole = gather(pipeline.ledger.findings(), accepts)
    over = {x.id for x in whole if x.status is Status.RESOLVED}
    left = [x for x in pipeline.ledger.open_findings() if x.incident_id in over]
    return [*(x for x in whole if x.id not in over), *gather(left, accepts)]


def _chosen_tasks(inventory: Inventory, worst: Worst) -> dict[str, list[Task]]:
    """Choose the tasks that get rows, the worst first, then by name, over all applications."""
    tasks = (t for a in inventory.applications.values() for t in a.tasks.values() if t.exists)
    chosen: dict[str, list[Task]] = {}
    for task in heapq.nsmallest(TASKS_SHOWN, tasks, key=lambda x: _order(x, worst)):
        chosen.setdefault(task.application, []).append(task)
    return chosen


def _order(task: Task, worst: Worst) -> tuple[object, ...]:
    severity = worst.get((task.application, task.id))
    numbers = tuple(int(x) if x.isdecimal() else -1 for x in task.id.split("_"))
    return -(severity.rank + 1) if severity else 0, task.application, numbers, task.id


def _application(
    pipeline: Pipeline, application: Application, tasks: list[Task], worst: Worst
) -> ApplicationRow:
    return ApplicationRow(
        id=application.id,
        releases=str(pipeline.profiles.of(application).range),
        process_id=application.process_id,
        processes=tuple(
            f"pid {x.pid}"
            + (f" with Kafka Streams {x.kafka_streams_version}" if x.kafka_streams_version else "")
            for x in application.processes
        ),
        tasks=tuple(task_row(task, worst.get((application.id, task.id)), with_stores=True) for task in tasks),
        tasks_total=sum(task.exists for task in application.tasks.values()),
    )


def _blind(inventory: Inventory) -> tuple[BlindInterval, ...]:
    rows = sorted(inventory.blind, key=lambda x: (x.ended_us is not None, -x.started_us))
    return tuple(replace(x) for x in rows[:BLIND_SHOWN])


class PageCache(Asked[PageData | None]):
    """What the page shows, made on request.

    The inventory belongs to the worker; a reader gets an immutable value, and if the worker does not complete a turn,
    the last one and the reason.
    """

    def __init__(self, unhealthy: Callable[[], str | None]) -> None:
        super().__init__(None)
        self._unhealthy = unhealthy

    def findings(self, origin: Origin) -> str | None:
        """Give what was found as lines of the event contract; called by threads of the server.

        None = it is not known now: the worker does not answer, or has not finished its first walk.
        """
        data, trouble = self.fetch()
        if data is None or trouble or not data.ready:
            return None
        encoder = Encoder(origin)
        records = (Record(Kind.FINDING, data.at_us, x.body()) for x in data.findings)
        return "".join(f"{encoder.encode(record, n)}\n" for n, record in enumerate(records, 1))

    def fetch(self) -> tuple[PageData | None, str | None]:
        """Ask the worker; return what there is, and why it is not of now. Called by threads of the server."""
        data, is_fresh = self.ask(WAIT_S)
        trouble = (
            None if is_fresh else self._unhealthy() or f"the worker did not answer within {WAIT_S:.0f} s"
        )
        return data, trouble
