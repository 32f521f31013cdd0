"""Every metric of the agent: the one list that the exposition, the docs page and the alerts agree on.

Names carry no label names and labels carry no target identity (the scrape adds the pod). Timestamps are
exported as such; ages are PromQL's business, but for the one that says how far behind shipping is.
"""

from __future__ import annotations

from collections import Counter

from agent.contract.events import Kind, Severity
from agent.engine.rows import TaskRow
from agent.inventory.blind_causes import HIDING, SLOWING, Missed, Step
from agent.inventory.disk import SEEN, Unseen
from agent.inventory.hints import LOSSES, PERIODIC
from agent.publish.kubernetes import OUTCOMES
from agent.publish.metric import Metric, Series, Stability, by, flags, of_stores, of_tasks, seconds
from agent.publish.snapshot import INCIDENT_LABELS, MetricsSnapshot
from agent.ship.drops import UNKNOWN_KIND
from agent.ship.shipper import Outcome
from agent.watch.watches import Cause

_APP, _TASK = ("application_id",), ("application_id", "task_id")
_BY_STORE = (*_TASK, "store")
_SEVERITIES = tuple(severity.value for severity in Severity)
_RESCANS = tuple(dict.fromkeys((*(cause.value for cause in Cause), *sorted(LOSSES), PERIODIC)))


def _tasks(snapshot: MetricsSnapshot) -> Series:
    there = {(task.application_id, task.task_id) for task in snapshot.tasks if task.exists}
    return Counter((application,) for application, _ in there)


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


def oldest_age(snapshot: MetricsSnapshot) -> float:
    """Return how far behind shipping is, in seconds."""
    oldest_us = snapshot.spool.oldest_at_us
    # a wall clock that was set back must not give a negative age
    return 0 if oldest_us is None else max(0, snapshot.heartbeat_at_us - oldest_us) / 1_000_000


# fmt: off
_STATE = (
    Metric("statewarden_tasks", "Task directories on disk.", _tasks, labels=_APP),
    Metric("statewarden_incidents", "Open incidents, without those that the operator accepted.", _incidents,
           labels=(*_APP, "severity"), initial={"severity": _SEVERITIES}),
    Metric("statewarden_incidents_accepted",
           "Open incidents that the operator accepted: exposures by release or settings.", _accepted, labels=_APP),
    Metric("statewarden_incident_info",
           "An open incident, or a moment of the last hour, by the finding that names it; detector: whose alert it is.",
           lambda s: flags(x[: len(INCIDENT_LABELS)] for x in s.incidents), labels=INCIDENT_LABELS),
    Metric("statewarden_incident_text",
           "Alert text and next step of each incident in statewarden_incident_info.",
           lambda s: flags((x.application_id, x.incident_id, x.summary, x.next_step) for x in s.incidents),
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
           lambda s: {key: x.times for key, x in s.reported.items()}, labels=(*_APP, "detector", "severity"),
           initial={"severity": _SEVERITIES},
           exemplars=lambda s: {key: {"finding_id": x.newest_id} for key, x in s.reported.items()}),
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
           lambda s: flags(s.disabled.items()), labels=("detector", "reason")),
)

_WATCH = (
    Metric("statewarden_agent_watches", "Directories with a kernel watch.", lambda s: s.watch.watches),
    Metric("statewarden_agent_watch_events_total", "Notifications read from the kernel.", lambda s: s.watch.events),
    Metric("statewarden_agent_queue_overflows_total",
           "Times that a notification queue was full and notifications were lost.",
           lambda s: s.watch.queue_overflows),
    Metric("statewarden_agent_rescans_total", "Rescans: walks over whole directories, by cause.",
           lambda s: by(s.watch.rescans), labels=("cause",), initial={"cause": _RESCANS}),
    Metric("statewarden_agent_missed_changes_total",
           "Changes that only a walk found although notifications should have announced them.",
           lambda s: by(s.watch.missed_changes), labels=("cause",),
           initial={"cause": tuple(cause.value for cause in Missed)}),
    Metric("statewarden_agent_blind_seconds_total",
           "Time during which changes could go unseen, summed over places, running intervals included.",
           lambda s: by(s.watch.blind_s), labels=("cause",), initial={"cause": HIDING}),
    Metric("statewarden_agent_blind", "Whether changes can go unseen right now.",
           lambda s: flags((x,) for x in s.watch.blind_now), labels=("cause",), initial={"cause": HIDING}),
    Metric("statewarden_agent_slowed", "Whether changes are seen later than they could be.",
           lambda s: flags((x,) for x in s.watch.slowed_now), labels=("cause",), initial={"cause": SLOWING}),
    Metric("statewarden_agent_watches_needed", "Directories that are to be watched.",
           lambda s: s.watch.watches + s.watch.unwatched),
    Metric("statewarden_agent_unwatched_directories", "Directories that are to be watched and are only polled.",
           lambda s: s.watch.unwatched),
    Metric("statewarden_agent_inotify_limit",
           "Kernel limits on inotify, per user on the node; absent where the kernel does not say.",
           lambda s: by(s.watch.limits), labels=("kind",)),
    Metric("statewarden_agent_watch_restarts_total", "Times that the watch was restarted.",
           lambda s: s.watch.restarts),
    Metric("statewarden_agent_canary", "Whether the agent's canary file proves that notifications arrive.",
           lambda s: s.watch.canary),
    Metric("statewarden_agent_canaries_missed_total", "Canaries that were not announced in time.",
           lambda s: s.watch.canaries_missed),
    Metric("statewarden_agent_mailbox_waiting", "Notifications waiting for the worker.", lambda s: s.watch.waiting),
    Metric("statewarden_agent_mailbox_coalesced_total", "Notifications that a newer one on the same path replaced.",
           lambda s: s.watch.coalesced),
    Metric("statewarden_agent_mailbox_dropped_total",
           "Notifications that found the mailbox full; a rescan replaces them.", lambda s: s.watch.dropped),
    Metric("statewarden_agent_reconcile_entries_total", "Entries that the background walk read.",
           lambda s: s.watch.reconcile_entries),
    Metric("statewarden_agent_reconcile_round_seconds",
           "How long the last whole round of that walk took; 0 before its end.", lambda s: s.watch.reconcile_round_s),
    Metric("statewarden_agent_clock_steps_total", "Times that the wall clock was set while the agent ran.",
           lambda s: s.watch.clock_steps),
    Metric("statewarden_agent_observations_total", "Reads of files and directories, by outcome.",
           lambda s: by(s.observations), labels=("outcome",),
           initial={"outcome": (SEEN, *(unseen.value for unseen in Unseen))}),
    Metric("statewarden_agent_observation_delay_seconds",
           "Time from the newest notification to the metrics that show its effect.", lambda s: s.last_delay_s,
           stability=Stability.EXPERIMENTAL),
)

_SHIPPING = (
    Metric("statewarden_agent_spool_records", "Records waiting to be shipped.", lambda s: s.spool.records),
    Metric("statewarden_agent_spool_bytes", "How much of its cap the spool uses.", lambda s: s.spool.bytes),
    Metric("statewarden_agent_spool_segments", "Spool segments waiting to be shipped.", lambda s: s.spool.segments),
    Metric("statewarden_agent_spool_oldest_unshipped_timestamp_seconds",
           "When the oldest waiting record was observed; 0 while nothing waits.",
           lambda s: seconds(s.spool.oldest_at_us) or 0),
    Metric("statewarden_agent_spool_oldest_unshipped_age_seconds",
           "Age of the oldest waiting record; 0 while nothing waits.", oldest_age),
    Metric("statewarden_agent_spool_aside_files",
           "Files kept for inspection: a damaged database, and segments that the sink rejected.",
           lambda s: s.spool.aside),
    Metric("statewarden_agent_spool_drops_total", "Records dropped before they were shipped.",
           lambda s: by(s.spool.dropped), labels=("kind",),
           initial={"kind": (*(kind.value for kind in Kind), UNKNOWN_KIND)}),
    Metric("statewarden_agent_spool_corrupt_segments_total",
           "Damage found in the spool: a database was set aside, or records of a segment were dropped.",
           lambda s: s.spool.corrupt_segments),
    Metric("statewarden_agent_spool_write_failures_total", "Records that the spool's disk refused.",
           lambda s: s.spool.write_failures),
    Metric("statewarden_agent_shipped_segments_total", "Segments that the sink acknowledged.",
           lambda s: s.ship.shipped_segments),
    Metric("statewarden_agent_shipped_records_total", "Records in segments that the sink acknowledged.",
           lambda s: s.ship.shipped_records),
    Metric("statewarden_agent_ship_failures_total", "Failed attempts to ship a segment.",
           lambda s: by(s.ship.failures), labels=("cause",),
           initial={"cause": (Outcome.RETRYABLE.value, Outcome.PERMANENT.value, Outcome.UNEXPECTED.value)}),
)

_DIGESTS = (
    Metric(
        "statewarden_agent_digests_total",
        "Closed stores by outcome of their digest: made, overtaken, left-out, failed; absent where digests are off.",
        lambda s: by(s.digests.outcomes) if s.digests else {},
        labels=("outcome",),
        stability=Stability.EXPERIMENTAL,
    ),
    Metric("statewarden_agent_digest_cpu_seconds_total",
           "CPU time of digests; absent where they are off.",
           lambda s: s.digests.cpu_s if s.digests else None, stability=Stability.EXPERIMENTAL),
)

_KUBERNETES = (
    Metric("statewarden_agent_kubernetes_events_total",
           "Kubernetes Events about findings, by outcome; 0 where they are off.",
           lambda s: by(s.kubernetes_events), labels=("outcome",), stability=Stability.EXPERIMENTAL,
           initial={"outcome": OUTCOMES}),
)

_AGENT = (
    Metric("statewarden_agent_build_info", "Version of the agent.", lambda s: flags([(s.agent_version,)]),
           labels=("version",)),
    Metric("statewarden_agent_up", "Whether the agent's worker is alive.", lambda s: s.up),
    Metric("statewarden_agent_ready", "Whether the watch is armed and the first scan is done.", lambda s: s.ready),
    Metric("statewarden_agent_preflight",
           "Result of each preflight check: 0 ok, 1 warning, 2 failed; absent before the first round.",
           lambda s: by(s.preflight), labels=("kind",)),
    Metric("statewarden_agent_heartbeat_timestamp_seconds", "When the worker's loop last completed a turn.",
           lambda s: seconds(s.heartbeat_at_us)),
    Metric("statewarden_agent_detector_runs_total", "Runs of the detector.",
           lambda s: by({id_: x.runs for id_, x in s.detectors.items()}), labels=("detector",)),
    Metric("statewarden_agent_detector_failures_total", "Runs of the detector that raised.",
           lambda s: by({id_: x.failures for id_, x in s.detectors.items()}), labels=("detector",)),
    Metric("statewarden_agent_detector_duration_seconds_total",
           "Time spent in the detector, extrapolated from every 16th judgement.",
           lambda s: by({id_: x.seconds for id_, x in s.detectors.items()}), labels=("detector",)),
    Metric("statewarden_agent_resident_memory_bytes",
           "Resident memory of the agent; absent while it is not measured.", lambda s: s.resident_memory_bytes),
    Metric("statewarden_agent_self_limited",
           "Whether the agent does less to stay below its CPU and memory ceilings, by step.",
           lambda s: flags((x,) for x in s.watch.self_limited), labels=("kind",),
           initial={"kind": tuple(step.slug for step in Step if step)}),
    Metric("statewarden_agent_baselines_written_total",
           "Baseline writes; a restarted agent resumes from the baseline.",
           lambda s: s.watch.baselines_written),
    Metric("statewarden_agent_baseline_failures_total",
           "Failed baseline writes.",
           lambda s: s.watch.baseline_failures),
    Metric("statewarden_agent_collector_errors_total",
           "Metric families left empty because of an error.",
           lambda s: s.collector_errors),
)

GROUPS: tuple[tuple[str, tuple[Metric, ...]], ...] = (
    ("State of the applications", _STATE), ("Watching and reading", _WATCH), ("Spool and shipping", _SHIPPING),
    ("Digests of stores", _DIGESTS), ("Kubernetes Events", _KUBERNETES), ("The agent itself", _AGENT),
)
# fmt: on

CATALOGUE: tuple[Metric, ...] = tuple(metric for _, metrics in GROUPS for metric in metrics)
"""Every family, in the order of the exposition and of the docs page."""
