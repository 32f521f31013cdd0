"""The boards about one pod: may it be restarted, and is its agent well?"""

from __future__ import annotations

from tools.dashboards.model import (
    CLUSTER,
    NAMESPACE,
    OF_NAMESPACE,
    OF_POD,
    POD,
    Board,
    Kind,
    Meaning,
    Panel,
    Query,
    Row,
    incident_row,
    worst_first,
)

_EXPOSED = f'statewarden_task_findings{{{OF_POD},detector=~"stale-eos-checkpoint|stale-segment-offset|unowned-task"}}'
_RESTART = (
    "max by (cluster, namespace, pod) ("
    f'label_replace(3 * (max by (cluster, namespace, pod) (statewarden_agent_blind{{{OF_POD}}}) > bool 0), "why", "blind", "", "") or '
    f'label_replace(2 * (max by (cluster, namespace, pod) (statewarden_task_severity{{{OF_POD}}}) == bool 3), "why", "damage", "", "") '
    f'or label_replace(max by (cluster, namespace, pod) ({_EXPOSED}) > bool 0, "why", "exposure", "", ""))'
)

POD_BOARD = Board(
    "statewarden-pod",
    "statewarden / Pod",
    "Safe to restart? What a stop of this pod would do to its state, and which tasks have no other copy.",
    (CLUSTER, NAMESPACE, POD),
    (
        incident_row(OF_POD, "of the pod"),
        Row("Safe to restart?", (
            Panel(Kind.STAT, "Restart",
                  "Orderly: a clean stop with a grace period longer than a commit. Damage: read the runbook first, the next "
                  "start may spread it. Unknown: the agent is blind. The fleet audit knows about copies on other pods.",
                  (Query(_RESTART, "{{pod}}"),), 8, 5, meaning=Meaning.RESTART, empty="this pod is not watched"),
            Panel(Kind.STAT, "Held tasks without another copy",
                  "No other pod has a directory of these tasks: a lost volume means a restoration from the changelog.",
                  (Query(f"count((statewarden_task_held{{{OF_POD}}} == 1) unless on (cluster, namespace, application_id, task_id) "
                         f'(statewarden_task_severity{{{OF_NAMESPACE},pod!~"$pod"}})) or vector(0)'),), 8, 5),
            Panel(Kind.STAT, "Exposed tasks", "A SIGKILL now would lose data or cost a full restoration.",
                  (Query(f"count(count by (application_id, task_id, pod) ({_EXPOSED})) or vector(0)"),), 8, 5,
                  meaning=Meaning.WARN_FROM_1),
        )),
        Row("Tasks", (
            Panel(Kind.TABLE, "Findings on this pod", "Open findings, and events of the last hour. The link leads to the task.",
                  (Query(worst_first(OF_POD, "cluster, namespace, application_id, pod, task_id, detector")),), 24, 8,
                  meaning=Meaning.SEVERITY, empty="nothing found"),
            Panel(Kind.TIMELINE, "Holders", "Tasks that a process on this pod holds.",
                  (Query(f"statewarden_task_held{{{OF_POD}}}", "{{application_id}} {{task_id}}"),), 12, 9,
                  meaning=Meaning.HELD, empty="the holder is unknown"),
            Panel(Kind.TIMELINE, "Worst finding", "By task.",
                  (Query(f"statewarden_task_severity{{{OF_POD}}}", "{{application_id}} {{task_id}}"),), 12, 9,
                  meaning=Meaning.SEVERITY, empty="no task"),
            Panel(Kind.SERIES, "State on disk", "Live SST files by application.",
                  (Query(f"sum by (application_id) (statewarden_task_bytes{{{OF_POD}}})", "{{application_id}}"),), unit="bytes"),
            Panel(Kind.SERIES, "Age of checkpoints", "The oldest of each application.",
                  (Query(f"max by (application_id) (time() - statewarden_task_checkpoint_written_timestamp_seconds{{{OF_POD}}})",
                         "{{application_id}}"),), unit="s", empty="no checkpoint file (4.3 keeps offsets in the store)"),
        )),
    ),
)  # fmt: skip

_P = f"{{{OF_POD}}}"


def _rate(metric: str, by: str) -> str:
    return f"sum by ({by}) (rate({metric}{_P}[$__rate_interval]))"


AGENT_BOARD = Board(
    "statewarden-agent",
    "statewarden / Agent health",
    "Whether the agents see everything, keep up, and get rid of what they saw.",
    (CLUSTER, NAMESPACE, POD),
    (
        incident_row(OF_POD, "of these pods"),
        Row("Alive", (
            Panel(Kind.STAT, "Ready", "Whether the first walk is finished.", (Query(f"min(statewarden_agent_ready{_P})"),), 4, 4,
                  meaning=Meaning.YES_NO, empty="no agent is scraped"),
            Panel(Kind.STAT, "Worst heartbeat", "Since the worker's loop last completed a turn.",
                  (Query(f"max(time() - statewarden_agent_heartbeat_timestamp_seconds{_P})"),), 4, 4, "s", Meaning.AGE,
                  "no agent is scraped"),
            Panel(Kind.STAT, "Blind agents", "Changes can go unseen right now.",
                  (Query(f"count(max by (cluster, namespace, pod) (statewarden_agent_blind{_P}) > 0) or vector(0)"),), 4, 4,
                  meaning=Meaning.WARN_FROM_1),
            Panel(Kind.STAT, "Failed detector runs, 1 h", "A detector that raises is blind.",
                  (Query(f"round(sum(increase(statewarden_agent_detector_failures_total{_P}[1h])))"),), 4, 4,
                  meaning=Meaning.WARN_FROM_1, empty="no agent is scraped"),
            Panel(Kind.STAT, "Dropped events, 1 h", "Given up because the spool was full.",
                  (Query(f"round(sum(increase(statewarden_agent_spool_drops_total{_P}[1h])))"),), 4, 4,
                  meaning=Meaning.WARN_FROM_1, empty="no agent is scraped"),
            Panel(Kind.STAT, "Unlisted findings", "Left out of the series by task; the pod's own page has all.",
                  (Query(f"sum(statewarden_task_findings_unlisted{_P})"),), 4, 4, meaning=Meaning.WARN_FROM_1,
                  empty="no agent is scraped"),
        )),
        Row("Seeing", (
            Panel(Kind.TIMELINE, "Blindness by cause", "Remedies by cause: the page of auditor-blind.",
                  (Query(f"max by (cause) (statewarden_agent_blind{_P})", "{{cause}}"),), 24, 9,
                  meaning=Meaning.YES_NO, empty="no agent is scraped"),
            Panel(Kind.SERIES, "Notifications", "Read from the kernel, per second.",
                  (Query(_rate("statewarden_agent_watch_events_total", "pod"), "{{pod}}"),), unit="ops"),
            Panel(Kind.SERIES, "Rescans", "Walks instead of single readings, per second.",
                  (Query(_rate("statewarden_agent_rescans_total", "cause"), "{{cause}}"),), unit="ops"),
            Panel(Kind.SERIES, "Readings by outcome", "Per second; anything but seen and vanished wants an explanation.",
                  (Query(_rate("statewarden_agent_observations_total", "outcome"), "{{outcome}}"),), unit="ops"),
            Panel(Kind.SERIES, "Delay", "Time from the newest notification to the metrics that show its effect.",
                  (Query(f"statewarden_agent_observation_delay_seconds{_P}", "{{pod}}"),), unit="s"),
            Panel(Kind.SERIES, "Kernel watches", "Directories with a watch, those that need one, and the node's limit per user.",
                  (Query(f"statewarden_agent_watches{_P}", "{{pod}} has"),
                   Query(f"statewarden_agent_watches_needed{_P}", "{{pod}} needs"),
                   Query(f'min(statewarden_agent_inotify_limit{{{OF_POD},kind="max_user_watches"}}) by (pod)', "{{pod}} limit"))),
            Panel(Kind.SERIES, "Slowed", "Agents that see changes later than they could, by cause.",
                  (Query(f"sum by (cause) (statewarden_agent_slowed{_P})", "{{cause}}"),)),
            Panel(Kind.SERIES, "Self-limits", "Steps taken to stay below the agent's own ceilings, by kind.",
                  (Query(f"sum by (kind) (statewarden_agent_self_limited{_P})", "{{kind}}"),)),
            Panel(Kind.SERIES, "Missed changes", "Found by a walk although they should have been announced, per second.",
                  (Query(_rate("statewarden_agent_missed_changes_total", "pod"), "{{pod}}"),), unit="ops"),
        )),
        Row("Cost", (
            Panel(Kind.SERIES, "Memory", "Resident.", (Query(f"statewarden_agent_resident_memory_bytes{_P}", "{{pod}}"),),
                  unit="bytes"),
            Panel(Kind.SERIES, "Time in detectors", "Seconds per second, the five dearest.",
                  (Query(f"topk(5, {_rate('statewarden_agent_detector_duration_seconds_total', 'detector')})", "{{detector}}"),),
                  unit="percentunit"),
        )),
        Row("Shipping", (
            Panel(Kind.SERIES, "Waiting events", "In the spool.", (Query(f"statewarden_agent_spool_records{_P}", "{{pod}}"),)),
            Panel(Kind.SERIES, "Spool", "Bytes on disk.", (Query(f"statewarden_agent_spool_bytes{_P}", "{{pod}}"),), unit="bytes"),
            Panel(Kind.SERIES, "Oldest waiting event", "Its age; the rollup is at least so far behind.",
                  (Query(f"(time() - statewarden_agent_spool_oldest_unshipped_timestamp_seconds{_P}) * "
                         f"(statewarden_agent_spool_oldest_unshipped_timestamp_seconds{_P} > bool 0)", "{{pod}}"),), unit="s"),
            Panel(Kind.SERIES, "Shipped and failed", "Per second.",
                  (Query(_rate("statewarden_agent_shipped_records_total", "pod"), "{{pod}} shipped"),
                   Query(_rate("statewarden_agent_ship_failures_total", "cause"), "failed: {{cause}}")), unit="ops"),
        )),
    ),
)  # fmt: skip
