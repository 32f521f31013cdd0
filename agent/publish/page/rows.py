"""Inventory, ledger and configuration -> the value that the page shows, bounded however big the directory is."""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Mapping
from operator import attrgetter

from agent import __version__
from agent.config import Config
from agent.contract.events import Severity, Status
from agent.contract.finding import Finding
from agent.contract.incidents import Incident, gather
from agent.detectors.missing_fact import META as MISSING_FACT_META
from agent.engine.pipeline import Pipeline
from agent.engine.rows import Key, store_rows, worst_by_task
from agent.inventory.model import Application, Inventory, Task
from agent.inventory.settings import KEYS
from agent.judging.base import silenced_by
from agent.publish.page.data import (
    APPLICATIONS_SHOWN,
    BLIND_SHOWN,
    INCIDENTS_SHOWN,
    STORES_SHOWN,
    TASKS_SHOWN,
    ApplicationRow,
    BlindRow,
    PageData,
    SettingRow,
    TaskRow,
)

Worst = Mapping[Key, Severity]


def make_page(pipeline: Pipeline, config: Config, now_us: int, *, watches: int, ready: bool) -> PageData:
    """Describe everything for the page, at one moment; called by the worker."""
    inventory, settings = pipeline.inventory, config.agent
    incidents = _open_incidents(pipeline)
    counts = Counter(incident.severity for incident in incidents)
    lacking = [incident.lead for incident in incidents if incident.lead.detector == MISSING_FACT_META.id]
    missing_counts = Counter(finding.severity for finding in lacking)
    facts = {fact for finding in lacking for fact in finding.missing_facts}
    silenced = silenced_by(pipeline.detectors)
    worst = worst_by_task(pipeline.ledger.open_findings())
    shown = _chosen_tasks(inventory, worst)
    applications = sorted(
        (x for x in inventory.applications.values() if x.exists),
        key=lambda x: (-max((worst[key].rank + 1 for key in worst if key[0] == x.id), default=0), x.id),
    )
    return PageData(
        at_us=now_us,
        agent_version=__version__,
        pod=f"{settings.namespace}/{settings.pod}" if settings.namespace else settings.pod,
        state_dir=settings.state_dir,
        volume=inventory.volume,
        ready=ready,
        started_us=inventory.started_us,
        watches=watches,
        applications=tuple(
            _application(pipeline, x, shown.get(x.id, []), worst) for x in applications[:APPLICATIONS_SHOWN]
        ),
        applications_total=len(applications),
        incidents=tuple(incidents[:INCIDENTS_SHOWN]),
        counts=tuple((severity, counts[severity]) for severity in Severity),
        blind=_blind(inventory),
        settings=_own_settings(config),
        runbooks=settings.runbooks,
        facts_missing=len(facts),
        undecided=len({detector for fact in facts for detector in silenced.get(fact, ())}),
        missing_counts=tuple((severity, missing_counts[severity]) for severity in Severity),
        disabled=tuple(sorted((id_, why.value) for id_, why in pipeline.disabled.items())),
    )


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
    given = pipeline.settings.of(application.id).effective()
    return ApplicationRow(
        id=application.id,
        releases=str(pipeline.profiles.of(application).range),
        process_id=application.process_id,
        processes=tuple(
            f"pid {x.pid}"
            + (f" with Kafka Streams {x.kafka_streams_version}" if x.kafka_streams_version else "")
            for x in application.processes
        ),
        tasks=tuple(_task(task, worst.get((application.id, task.id))) for task in tasks),
        tasks_total=sum(task.exists for task in application.tasks.values()),
        settings=tuple(
            SettingRow(key.name, given[key.name].value, given[key.name].origin, key.meaning)
            if key.name in given
            else SettingRow(key.name, None, "unset", key.meaning)
            for key in KEYS
        ),
    )


def _task(task: Task, worst: Severity | None) -> TaskRow:
    checkpoint = task.checkpoint
    rows = store_rows(task)
    return TaskRow(
        id=task.id,
        worst=worst,
        held=task.held,
        held_since_us=task.held_since_us,
        released_us=task.released_us,
        checkpoint_us=checkpoint.written_us if checkpoint else None,
        checkpoint_problem=task.checkpoint_problem,
        incarnation=task.incarnation,
        stores=rows[:STORES_SHOWN],
        stores_left_out=max(0, len(rows) - STORES_SHOWN),
    )


def _blind(inventory: Inventory) -> tuple[BlindRow, ...]:
    rows = [
        BlindRow(
            x.started_us,
            x.ended_us,
            x.cause,
            "/".join(filter(None, (x.application, x.task, x.store))) or "everything",
        )
        for x in inventory.blind
    ]
    rows.sort(key=lambda x: (x.ended_us is not None, -x.started_us))
    return tuple(rows[:BLIND_SHOWN])


def _own_settings(config: Config) -> tuple[SettingRow, ...]:
    full = {name: name if "." in name else f"agent.{name}" for name in config.origins}
    return tuple(
        SettingRow(full[name], str(attrgetter(full[name])(config)), origin)
        for name, origin in config.origins.items()
    )
