"""The boards about state: fleet, application, task."""

from __future__ import annotations

from tools.dashboards.model import (
    APPLICATION,
    CLUSTER,
    NAMESPACE,
    OF_APPLICATION,
    OF_CLUSTER,
    OF_NAMESPACE,
    OF_TASK,
    TASK,
    Board,
    Kind,
    Meaning,
    Panel,
    Query,
    Row,
    incident_row,
    worst_first,
)

_WORST = "cluster_namespace_application:statewarden_task_severity:max"
_OPEN = "cluster_namespace_application_detector_severity:statewarden_findings_open:sum"
_PLACE = "cluster, namespace, application_id, pod, task_id, detector"
_AUDITED = (
    "sum by (cluster, namespace, application_id, incident_id, tasks, pods, rule, named_by, severity, confidence) (label_replace("
    f'statewarden_rollup_incident_info{{{OF_CLUSTER},audited_namespace=~"$namespace"}}, '
    '"namespace", "$1", "audited_namespace", "(.*)"))'
)
"""Namespace of what was audited, under the name that the other boards know, so that links lead there."""

_NO_ROLLUP = "no fleet audit has reported"

FLEET = Board(
    "statewarden-fleet",
    "statewarden / Fleet",
    "Which applications have state that can no longer be trusted, and how much of the fleet is watched.",
    (CLUSTER, NAMESPACE),
    (
        incident_row(OF_NAMESPACE, "of the fleet"),
        Row("Verdict", (
            Panel(Kind.STAT, "Applications with damage", "A critical finding is open: results are or become wrong.",
                  (Query(f"count({_WORST}{{{OF_NAMESPACE}}} == 3) or vector(0)"),), 4, 4, meaning=Meaning.BAD_FROM_1),
            Panel(Kind.STAT, "Applications with a warning", "Something to check in working hours.",
                  (Query(f"count({_WORST}{{{OF_NAMESPACE}}} == 2) or vector(0)"),), 4, 4, meaning=Meaning.WARN_FROM_1),
            Panel(Kind.STAT, "Agents", "Agents that answer scrapes.",
                  (Query(f"count(statewarden_agent_up{{{OF_NAMESPACE}}})"),), 4, 4, empty="no agent is scraped"),
            Panel(Kind.STAT, "Blind agents", "Agents that may miss changes right now: silence there is no proof.",
                  (Query(f"count(max by (cluster, namespace, pod) (statewarden_agent_blind{{{OF_NAMESPACE}}}) > 0) or vector(0)"),),
                  4, 4, meaning=Meaning.WARN_FROM_1),
            Panel(Kind.STAT, "Watched share", "Share of the pods' time that was watched, from the last fleet audit.",
                  (Query(f"max(statewarden_rollup_watched_ratio{{{OF_CLUSTER}}})"),), 4, 4, "percentunit", Meaning.SHARE, _NO_ROLLUP),
            Panel(Kind.STAT, "Last fleet audit", "Since the last audit that succeeded.",
                  (Query(f"time() - max(statewarden_rollup_last_success_timestamp_seconds{{{OF_CLUSTER}}})"),), 4, 4, "s", Meaning.AGE,
                  _NO_ROLLUP),
        )),
        Row("Where", (
            Panel(Kind.TABLE, "Worst applications", "0 none, 1 info, 2 warning, 3 critical. The link leads to the application.",
                  (Query(f"sort_desc({_WORST}{{{OF_NAMESPACE}}})"),), 8, 9, meaning=Meaning.SEVERITY,
                  empty="no application"),
            Panel(Kind.TABLE, "Open findings by detector", "As the agents see them, each pod by itself.",
                  (Query(f"sort_desc({_OPEN}{{{OF_NAMESPACE}}})"),), 16, 9, empty="nothing found"),
            Panel(Kind.TIMELINE, "Worst finding by application", "When it began.",
                  (Query(f"{_WORST}{{{OF_NAMESPACE}}}", "{{namespace}}/{{application_id}}"),), 24, 8,
                  meaning=Meaning.SEVERITY, empty="no application"),
            Panel(Kind.TABLE, "Incidents of the fleet audit", "Over all pods; the report has sentence, evidence and next step. The alert is the rule's; named_by names it by now.",
                  (Query(_AUDITED),), 24, 8, empty="no incident is open, or no audit ran"),
        )),
    ),
    since="now-24h",
)  # fmt: skip

APPLICATION_BOARD = Board(
    "statewarden-application",
    "statewarden / Application",
    "One application over all its pods: findings, holders, checkpoints, sizes.",
    (CLUSTER, NAMESPACE, APPLICATION),
    (
        incident_row(OF_APPLICATION, "of the application"),
        Row("Verdict", (
            Panel(Kind.STAT, "Worst finding", "Over all tasks and pods.",
                  (Query(f"max(statewarden_task_severity{{{OF_APPLICATION}}})"),), 5, 4, meaning=Meaning.SEVERITY,
                  empty="no task"),
            Panel(Kind.STAT, "Task directories", "On all pods: standbys and leftovers count.",
                  (Query(f"sum(statewarden_tasks{{{OF_APPLICATION}}})"),), 5, 4, empty="no task"),
            Panel(Kind.STAT, "Held tasks", "Task directories that a process holds.",
                  (Query(f"sum(statewarden_task_held{{{OF_APPLICATION}}}) or vector(0)"),), 5, 4),
            Panel(Kind.STAT, "State on disk", "Live SST files of all pods.",
                  (Query(f"sum(statewarden_task_bytes{{{OF_APPLICATION}}})"),), 5, 4, "bytes", empty="no task"),
            Panel(Kind.STAT, "Findings reported, 1 h", "Findings that opened within the last hour, info included.",
                  (Query(f"round(sum(increase(statewarden_findings_total{{{OF_APPLICATION}}}[1h])))"),), 4, 4),
        )),
        Row("Findings", (
            Panel(Kind.TABLE, "Findings by task", "Open findings, and events of the last hour. The link leads to the task.",
                  (Query(worst_first(OF_APPLICATION, _PLACE)),), 24, 9, meaning=Meaning.SEVERITY, empty="nothing found"),
        )),
        Row("Work", (
            Panel(Kind.SERIES, "Held tasks by pod", "A pod that loses its tasks, a rebalance that does not settle.",
                  (Query(f"sum by (pod) (statewarden_task_held{{{OF_APPLICATION}}})", "{{pod}}"),), empty="no process holds a task"),
            Panel(Kind.SERIES, "Oldest checkpoints", "Age of the ten oldest checkpoints; a held task's should not grow without end.",
                  (Query(f"topk(10, time() - statewarden_task_checkpoint_written_timestamp_seconds{{{OF_APPLICATION}}})",
                         "{{task_id}} on {{pod}}"),), unit="s", empty="no checkpoint file (4.3 keeps offsets in the store)"),
            Panel(Kind.SERIES, "State by pod", "Live SST files.",
                  (Query(f"sum by (pod) (statewarden_task_bytes{{{OF_APPLICATION}}})", "{{pod}}"),), unit="bytes"),
            Panel(Kind.SERIES, "Flushed puts by pod", "Writes that reached the disk; falls when a store is recreated.",
                  (Query(f"sum by (pod) (statewarden_task_flushed_puts{{{OF_APPLICATION}}})", "{{pod}}"),)),
        )),
    ),
)  # fmt: skip

TASK_BOARD = Board(
    "statewarden-task",
    "statewarden / Task timeline",
    "One task over all pods: who held it when, what its checkpoint said, when its directory began a new life.",
    (CLUSTER, NAMESPACE, APPLICATION, TASK),
    (
        incident_row(OF_APPLICATION, "of the task's application"),
        Row("Timeline", (
            Panel(Kind.TIMELINE, "Worst finding", "By pod.",
                  (Query(f"statewarden_task_severity{{{OF_TASK}}}", "{{task_id}} on {{pod}}"),), 24, 7,
                  meaning=Meaning.SEVERITY, empty="no such task"),
            Panel(Kind.TIMELINE, "Holder", "Two holders at once are fine for standbys and warm-ups, and for no others.",
                  (Query(f"statewarden_task_held{{{OF_TASK}}}", "{{task_id}} on {{pod}}"),), 24, 7,
                  meaning=Meaning.HELD, empty="the holder is unknown"),
            Panel(Kind.TIMELINE, "Life of the directory", "The number goes up when the directory is deleted and recreated.",
                  (Query(f"statewarden_task_incarnation{{{OF_TASK}}}", "{{task_id}} on {{pod}}"),), 24, 7,
                  meaning=Meaning.LIFE, empty="no such task"),
        )),
        Row("State", (
            Panel(Kind.SERIES, "Offset in the checkpoint", "It never goes back on one store; a step down is a finding.",
                  (Query(f"statewarden_task_checkpoint_offset{{{OF_TASK}}}", "{{task_id}} on {{pod}}"),),
                  empty="no checkpoint file (4.3 keeps offsets in the store)"),
            Panel(Kind.SERIES, "Flushed puts", "Puts without a moving offset: the state runs ahead of its checkpoint.",
                  (Query(f"statewarden_task_flushed_puts{{{OF_TASK}}}", "{{task_id}} on {{pod}}"),)),
            Panel(Kind.SERIES, "Size", "Live SST files.",
                  (Query(f"statewarden_task_bytes{{{OF_TASK}}}", "{{task_id}} on {{pod}}"),), unit="bytes"),
            Panel(Kind.SERIES, "Since last seen", "Grows for an hour after a directory is gone, then ends.",
                  (Query(f"time() - statewarden_task_last_seen_timestamp_seconds{{{OF_TASK}}}", "{{task_id}} on {{pod}}"),),
                  unit="s"),
        )),
        Row("Findings", (
            Panel(Kind.TABLE, "Findings of the task", "Open findings, and events of the last hour; evidence: the pod's own page.",
                  (Query(worst_first(OF_TASK, _PLACE)),), 24, 7, meaning=Meaning.SEVERITY, empty="nothing found"),
        )),
    ),
)  # fmt: skip
