"""Every metric of the agent as data: the one list that the collector, the docs page and the alerts agree on.

Names carry no label names and labels carry no target identity (the scrape adds the pod). Timestamps are
exported as such; ages are PromQL's business, but for the one that tells how far behind shipping is.
"""

from __future__ import annotations

from agent.contract.events import Kind, Severity
from agent.inventory.blind_causes import HIDING, SLOWING
from agent.inventory.disk import Unseen
from agent.publish.metric import Metric, MetricKind, Stability

PREFIX = "statewarden_"
AGENT_PREFIX = "statewarden_agent_"

ALLOWED_LABELS = frozenset(
    {"application_id", "task_id", "store", "detector", "severity", "cause", "outcome", "kind", "version"}
)
"""`store` only where an operator opted in; `version` only on the info metric."""

_LOSSES = ("queue-overflow", "mailbox-full", "root-replaced", "watch-lost", "canary-missed")
RESCAN_CAUSES = ("start", "periodic", *_LOSSES, "watch-limit", "watch-refused", "root-missing")
BLIND_CAUSES = HIDING
SLOW_CAUSES = SLOWING
MISSED_CAUSES = ("unannounced", "unwatched")
"""`unannounced`: the directory had a watch. `unwatched`: it should have had one."""

SELF_LIMIT_STEPS = ("slower-rescan", "longer-batches", "less-store-detail", "slowest-rescan")
INOTIFY_LIMITS = ("max_user_watches", "max_user_instances", "max_queued_events")

OUTCOMES = ("seen", *(outcome.value for outcome in Unseen))
SHIP_FAILURES = ("retryable", "permanent", "unexpected")
EVENT_OUTCOMES = ("sent", "failed", "suppressed")
UNKNOWN_KIND = "unknown"
"""Kind of dropped records that could not be read any more."""


_G, _C = MetricKind.GAUGE, MetricKind.COUNTER
_APP, _TASK = ("application_id",), ("application_id", "task_id")
_TRIAL = Stability.EXPERIMENTAL
_SEVERITIES = tuple(severity.value for severity in Severity)
_KINDS = (*(kind.value for kind in Kind), UNKNOWN_KIND)

_BY_STORE = (*_TASK, "store")
_STORE = (
    Metric(
        "statewarden_store_held",
        _G,
        "Whether a process holds the store; absent while that cannot be told. Opt-in.",
        labels=_BY_STORE,
    ),
    Metric(
        "statewarden_store_offset",
        _G,
        "Changelog offset that is on disk for the store, in the checkpoint or inside the store. Opt-in.",
        labels=_BY_STORE,
    ),
    Metric(
        "statewarden_store_flushed_puts",
        _G,
        "Puts flushed to disk by the store in its present incarnation. Opt-in.",
        labels=_BY_STORE,
        stability=_TRIAL,
    ),
    Metric("statewarden_store_bytes", _G, "Size of the store's live SST files. Opt-in.", "bytes", _BY_STORE),
)
"""Filled only where the operator wants one series per store (`metrics_detail = "store"`)."""

_STATE = (
    Metric("statewarden_tasks", _G, "Task directories on disk.", labels=_APP),
    Metric(
        "statewarden_findings_open",
        _G,
        "Open findings.",
        labels=(*_APP, "detector", "severity"),
        initial={"severity": _SEVERITIES},
    ),
    Metric(
        "statewarden_findings_total",
        _C,
        "Findings told since the agent started, by the severity with which they opened; exemplar: finding id.",
        labels=(*_APP, "detector", "severity"),
        initial={"severity": _SEVERITIES},
    ),
    Metric(
        "statewarden_task_findings",
        _G,
        "Open findings of the task, and events told within the last hour; absent = none, no task = the application.",
        labels=(*_TASK, "detector", "severity"),
    ),
    Metric(
        "statewarden_task_findings_unlisted",
        _G,
        "Findings that the family above leaves out because it lists so many already, the worst first.",
    ),
    Metric(
        "statewarden_task_severity",
        _G,
        "Worst open finding of the task: 0 none, 1 info, 2 warning, 3 critical.",
        labels=_TASK,
    ),
    Metric(
        "statewarden_task_held",
        _G,
        "Whether a process holds the task or one of its stores; absent while that cannot be told.",
        labels=_TASK,
    ),
    Metric(
        "statewarden_task_checkpoint_offset",
        _G,
        "Largest changelog offset in the task's checkpoint; absent without a checkpoint.",
        labels=_TASK,
    ),
    Metric(
        "statewarden_task_checkpoint_written_timestamp_seconds",
        _G,
        "Modification time of the task's checkpoint; absent without a checkpoint.",
        "seconds",
        _TASK,
    ),
    Metric(
        "statewarden_task_flushed_puts",
        _G,
        "Puts flushed to disk by the task's stores in their present incarnations.",
        labels=_TASK,
        stability=_TRIAL,
    ),
    Metric("statewarden_task_bytes", _G, "Size of the live SST files of the task's stores.", "bytes", _TASK),
    Metric(
        "statewarden_task_incarnation",
        _G,
        "Number of the task directory's present life, from 1.",
        labels=_TASK,
    ),
    Metric(
        "statewarden_task_last_seen_timestamp_seconds",
        _G,
        "When the task directory was last seen; kept for an hour after the directory is gone.",
        "seconds",
        _TASK,
    ),
    *_STORE,
)

_WATCH = (
    Metric("statewarden_agent_watches", _G, "Directories with a kernel watch."),
    Metric("statewarden_agent_watch_events_total", _C, "Notifications read from the kernel."),
    Metric(
        "statewarden_agent_queue_overflows_total",
        _C,
        "Times that a notification queue was full and notifications were lost.",
    ),
    Metric(
        "statewarden_agent_rescans_total",
        _C,
        "Walks over directories instead of single looks.",
        labels=("cause",),
        initial={"cause": RESCAN_CAUSES},
    ),
    Metric(
        "statewarden_agent_missed_changes_total",
        _C,
        "Changes that only a walk found although notifications should have announced them.",
        labels=("cause",),
        initial={"cause": MISSED_CAUSES},
    ),
    Metric(
        "statewarden_agent_blind_seconds_total",
        _C,
        "Time during which changes could go unseen, summed over places; finished intervals and the running ones.",
        "seconds",
        ("cause",),
        initial={"cause": BLIND_CAUSES},
    ),
    Metric(
        "statewarden_agent_blind",
        _G,
        "Whether changes can go unseen right now.",
        labels=("cause",),
        initial={"cause": BLIND_CAUSES},
    ),
    Metric(
        "statewarden_agent_slowed",
        _G,
        "Whether changes are seen later than they could be.",
        labels=("cause",),
        initial={"cause": SLOW_CAUSES},
    ),
    Metric("statewarden_agent_watches_needed", _G, "Directories that are to be watched."),
    Metric(
        "statewarden_agent_unwatched_directories",
        _G,
        "Directories that are to be watched and are only polled.",
    ),
    Metric(
        "statewarden_agent_inotify_limit",
        _G,
        "Kernel limits on inotify, per user on the node; absent where the kernel does not say.",
        labels=("kind",),
    ),
    Metric("statewarden_agent_watch_restarts_total", _C, "Times that the watch was started anew."),
    Metric(
        "statewarden_agent_canary",
        _G,
        "Whether a file of the agent's own proves that notifications come through.",
    ),
    Metric("statewarden_agent_canaries_missed_total", _C, "Canaries that were not announced in time."),
    Metric("statewarden_agent_mailbox_waiting", _G, "Notifications that wait for the worker."),
    Metric(
        "statewarden_agent_mailbox_coalesced_total",
        _C,
        "Notifications that a newer one on the same path replaced.",
    ),
    Metric(
        "statewarden_agent_mailbox_dropped_total",
        _C,
        "Notifications that found the mailbox full; a rescan stands for them.",
    ),
    Metric(
        "statewarden_agent_reconcile_entries_total", _C, "Entries that the walk beside the watch looked at."
    ),
    Metric(
        "statewarden_agent_reconcile_round_seconds",
        _G,
        "How long the last whole round of that walk took; 0 before its end.",
        "seconds",
    ),
    Metric(
        "statewarden_agent_clock_steps_total", _C, "Times that the wall clock was set while the agent ran."
    ),
    Metric(
        "statewarden_agent_observations_total",
        _C,
        "Looks at files and directories.",
        labels=("outcome",),
        initial={"outcome": OUTCOMES},
    ),
    Metric(
        "statewarden_agent_observation_delay_seconds",
        _G,
        "From the newest notification to the metrics that show its effect.",
        "seconds",
        stability=_TRIAL,
    ),
)

_SHIP = (
    Metric("statewarden_agent_spool_records", _G, "Records that wait to be shipped."),
    Metric("statewarden_agent_spool_bytes", _G, "How much of its cap the spool uses.", "bytes"),
    Metric("statewarden_agent_spool_segments", _G, "Spool segments that wait to be shipped."),
    Metric(
        "statewarden_agent_spool_oldest_unshipped_timestamp_seconds",
        _G,
        "When the oldest waiting record was observed; 0 while nothing waits.",
        "seconds",
    ),
    Metric(
        "statewarden_agent_spool_oldest_unshipped_age_seconds",
        _G,
        "Age of the oldest waiting record; 0 while nothing waits.",
        "seconds",
    ),
    Metric(
        "statewarden_agent_spool_aside_files",
        _G,
        "Kept for a look: a damaged database, and segments that the sink rejected.",
    ),
    Metric(
        "statewarden_agent_spool_drops_total",
        _C,
        "Records given up before they were shipped.",
        labels=("kind",),
        initial={"kind": _KINDS},
    ),
    Metric(
        "statewarden_agent_spool_corrupt_segments_total",
        _C,
        "Damage found in the spool: a database was set aside, or records of a segment were given up.",
    ),
    Metric("statewarden_agent_spool_write_failures_total", _C, "Records that the spool's disk refused."),
    Metric("statewarden_agent_shipped_segments_total", _C, "Segments that the sink acknowledged."),
    Metric("statewarden_agent_shipped_records_total", _C, "Records in segments that the sink acknowledged."),
    Metric(
        "statewarden_agent_ship_failures_total",
        _C,
        "Failed attempts to ship a segment.",
        labels=("cause",),
        initial={"cause": SHIP_FAILURES},
    ),
)

_KUBERNETES = (
    Metric(
        "statewarden_agent_kubernetes_events_total",
        _C,
        "Events about findings, by what became of them; stays 0 where they are switched off.",
        labels=("outcome",),
        stability=_TRIAL,
        initial={"outcome": EVENT_OUTCOMES},
    ),
)

_SELF = (
    Metric("statewarden_agent_build_info", MetricKind.INFO, "Version of the agent.", labels=("version",)),
    Metric("statewarden_agent_up", _G, "Whether the agent's worker is alive."),
    Metric("statewarden_agent_ready", _G, "Whether the watch is armed and the first scan is done."),
    Metric(
        "statewarden_agent_preflight",
        _G,
        "What came of each preflight check: 0 ok, 1 warning, 2 failed; absent before the first round.",
        labels=("kind",),
    ),
    Metric(
        "statewarden_agent_heartbeat_timestamp_seconds",
        _G,
        "When the worker's loop last came round.",
        "seconds",
    ),
    Metric("statewarden_agent_detector_runs_total", _C, "Runs of the detector.", labels=("detector",)),
    Metric(
        "statewarden_agent_detector_failures_total",
        _C,
        "Runs of the detector that raised.",
        labels=("detector",),
    ),
    Metric(
        "statewarden_agent_detector_duration_seconds_total",
        _C,
        "Time spent in the detector.",
        "seconds",
        ("detector",),
    ),
    Metric(
        "statewarden_agent_resident_memory_bytes",
        _G,
        "Resident memory of the agent; absent while it is not measured.",
        "bytes",
    ),
    Metric(
        "statewarden_agent_self_limited",
        _G,
        "Whether the agent does less to stay below its own ceilings of CPU and memory, by step.",
        labels=("kind",),
        initial={"kind": SELF_LIMIT_STEPS},
    ),
    Metric(
        "statewarden_agent_baselines_written_total", _C, "Times that the memory for a restart was written."
    ),
    Metric(
        "statewarden_agent_baseline_failures_total",
        _C,
        "Times that the memory for a restart could not be written.",
    ),
    Metric(
        "statewarden_agent_collector_errors_total",
        _C,
        "Metric families that could not be computed in a scrape and were left empty.",
    ),
)

CATALOGUE: tuple[Metric, ...] = (*_STATE, *_WATCH, *_SHIP, *_KUBERNETES, *_SELF)
"""Every family, in the order of the exposition and of the docs page."""

SERIES_BUDGET = 560
"""Series of one agent with 20 tasks of 3 stores of one application, per-store families not opted in."""

SERIES_BUDGET_BY_STORE = 4
"""Series more per store where they are."""

GROUPS: tuple[tuple[str, tuple[Metric, ...]], ...] = (
    ("State of the applications", _STATE),
    ("Watching and looking", _WATCH),
    ("Spool and shipping", _SHIP),
    ("Kubernetes Events", _KUBERNETES),
    ("The agent itself", _SELF),
)
