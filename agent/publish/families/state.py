"""What is known of the applications: tasks, stores, findings."""

from __future__ import annotations

from collections import Counter

from agent.contract.events import Severity
from agent.engine.rows import TaskRow
from agent.publish.metric import (
    Exemplars,
    Metric,
    Series,
    Stability,
    of_stores,
    of_tasks,
    seconds,
)
from agent.publish.snapshot import INCIDENT_LABELS, MetricsSnapshot

_APP, _TASK = ("application_id",), ("application_id", "task_id")
_BY_STORE = (*_TASK, "store")
_SEVERITIES = tuple(severity.value for severity in Severity)


def _tasks(snapshot: MetricsSnapshot) -> Series:
    there = {(task.application_id, task.task_id) for task in snapshot.tasks if task.exists}
    return Counter((application,) for application, _ in there)


def _reported(snapshot: MetricsSnapshot) -> Series:
    return {key: x.times for key, x in snapshot.reported.items()}


def _newest(snapshot: MetricsSnapshot) -> Exemplars:
    return {key: {"finding_id": x.newest_id} for key, x in snapshot.reported.items()}


def _severity(task: TaskRow) -> float | None:
    if not task.exists:
        return None
    return task.worst_severity.rank + 1 if task.worst_severity else 0


def _last_seen(snapshot: MetricsSnapshot) -> Series:
    now_us = snapshot.tasks_seen_at_us or None
    return of_tasks(lambda task: seconds(task.last_seen_at_us or now_us))(snapshot)


def _incidents(snapshot: MetricsSnapshot) -> Series:
    counted = snapshot.incident_counts.items()
    return {(name, severity): count for (name, severity, accepted), count in counted if not accepted}


def _accepted(snapshot: MetricsSnapshot) -> Series:
    counted: Counter[tuple[str, ...]] = Counter()
    for (name, _, accepted), count in snapshot.incident_counts.items():
        if accepted:
            counted[name,] += count
    return counted


def _incident_info(snapshot: MetricsSnapshot) -> Series:
    return dict.fromkeys((x[: len(INCIDENT_LABELS)] for x in snapshot.incidents), 1.0)


def _incident_text(snapshot: MetricsSnapshot) -> Series:
    return {(x.application_id, x.incident_id, x.summary, x.next_step): 1.0 for x in snapshot.incidents}


# fmt: off
STATE = (
    Metric("statewarden_tasks", "Task directories on disk.", _tasks, labels=_APP),
    Metric("statewarden_incidents", "Open incidents, without those that the operator accepted.", _incidents,
           labels=(*_APP, "severity"), initial={"severity": _SEVERITIES}),
    Metric("statewarden_incidents_accepted",
           "Open incidents that the operator accepted: exposures by release or settings.", _accepted, labels=_APP),
    Metric("statewarden_incident_info",
           "An open incident, or a moment of the last hour, by the finding that names it; detector: whose alert it is.",
           _incident_info, labels=INCIDENT_LABELS),
    Metric("statewarden_incident_text",
           "Alert text and next step of each incident in statewarden_incident_info.", _incident_text,
           labels=(*_APP, "incident_id", "summary", "next_step")),
    Metric("statewarden_incidents_unlisted",
           "Incidents not exported by statewarden_incident_info, which is limited to the 100 worst.",
           lambda s: s.incidents_unlisted),
    Metric("statewarden_exposed_tasks",
           "Tasks that release or settings expose, as long as they stay; no series = none.", lambda s: s.exposures,
           labels=(*_APP, "detector", "release", "accepted")),
    Metric("statewarden_findings_open", "Open findings.", lambda s: s.findings, labels=(*_APP, "detector", "severity"),
           initial={"severity": _SEVERITIES}, only_open=True),
    Metric("statewarden_findings_total",
           "Findings reported since the agent started, by the severity with which they opened; exemplar: finding id.",
           _reported, labels=(*_APP, "detector", "severity"), initial={"severity": _SEVERITIES}, exemplars=_newest),
    Metric("statewarden_task_findings",
           "Open findings of the task, and events of the last hour; no series = none, no task_id = the application.",
           lambda s: s.task_findings, labels=(*_TASK, "detector", "severity")),
    Metric("statewarden_task_findings_unlisted",
           "Findings not exported by statewarden_task_findings, which is limited to the 500 worst.",
           lambda s: s.unlisted),
    Metric("statewarden_task_severity", "Worst open finding of the task: 0 none, 1 info, 2 warning, 3 critical.",
           of_tasks(_severity), labels=_TASK),
    Metric("statewarden_task_held",
           "Whether a process holds the task or one of its stores; absent while that is unknown.",
           of_tasks(lambda x: x.held), labels=_TASK),
    Metric("statewarden_task_checkpoint_offset",
           "Largest changelog offset in the task's checkpoint; absent without a checkpoint.",
           of_tasks(lambda x: x.checkpoint_offset), labels=_TASK),
    Metric("statewarden_task_checkpoint_written_timestamp_seconds",
           "Modification time of the task's checkpoint; absent without a checkpoint.",
           of_tasks(lambda x: seconds(x.checkpoint_written_at_us)), labels=_TASK),
    Metric("statewarden_task_flushed_puts",
           "Puts flushed to disk by the task's stores in their present incarnations.",
           of_tasks(lambda x: x.flushed_puts), labels=_TASK, stability=Stability.EXPERIMENTAL),
    Metric("statewarden_task_bytes", "Size of the live SST files of the task's stores.", of_tasks(lambda x: x.bytes),
           labels=_TASK),
    Metric("statewarden_task_incarnation", "Number of the task directory's present incarnation, from 1.",
           of_tasks(lambda x: x.incarnation), labels=_TASK),
    Metric("statewarden_task_last_seen_timestamp_seconds",
           "When the task directory was last seen; kept for an hour after the directory is gone.", _last_seen,
           labels=_TASK),
    # filled only where the operator wants one series per store (`metrics_detail = "store"`)
    Metric("statewarden_store_held", "Whether a process holds the store; absent while that is unknown. Opt-in.",
           of_stores(lambda x: x.held), labels=_BY_STORE),
    Metric("statewarden_store_offset",
           "Changelog offset that is on disk for the store, in the checkpoint or inside the store. Opt-in.",
           of_stores(lambda x: x.offset), labels=_BY_STORE),
    Metric("statewarden_store_flushed_puts", "Puts flushed to disk by the store in its present incarnation. Opt-in.",
           of_stores(lambda x: x.flushed_puts), labels=_BY_STORE, stability=Stability.EXPERIMENTAL),
    Metric("statewarden_store_bytes", "Size of the store's live SST files. Opt-in.", of_stores(lambda x: x.bytes),
           labels=_BY_STORE),
    Metric("statewarden_detector_disabled",
           "1 for each detector that is disabled, with the reason that was given; it opens no finding.",
           lambda s: dict.fromkeys(s.disabled.items(), 1.0), labels=("detector", "reason")),
)
# fmt: on
