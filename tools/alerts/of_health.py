"""Alerts about the watchers themselves: agents and rollup. None of them pages: no data is at risk."""

from __future__ import annotations

from collections.abc import Mapping

from tools.alerts.model import Alert, Case

_POD = {"namespace": "shop", "pod": "orders-0"}
_SAYS = {"<pod>": "shop/orders-0", "<count>": "1"}
_QUIET_TARGET = {'up{job="prometheus"}': "1x400"}


def _on_pod(metric: str, **labels: str) -> str:
    words = ",".join(f'{name}="{value}"' for name, value in {**_POD, **labels}.items())
    return f"{metric}{{{words}}}"


def _agent_alert(
    name: str,
    expr: str,
    for_m: int,
    summary: str,
    text: str,
    bad: Mapping[str, str],
    good: Mapping[str, str],
    why_quiet: str,
    *,
    at_m: int,
    early_m: int,
    runbook: str = "detectors/auditor-blind",
    severity: str = "warning",
) -> Alert:
    """One alert on one agent: `bad` fires it at `at_m` and not at `early_m`, `good` never does."""
    cases = (
        Case("fires", bad, at_m, _POD, _SAYS),
        Case("does not fire yet", bad, early_m),
        Case(f"stays quiet: {why_quiet}", good, at_m),
        Case("stays quiet: the series is missing", _QUIET_TARGET, at_m),
    )
    return Alert(
        name=name, expr=expr, severity=severity, for_m=for_m, summary=summary,
        description=f"The agent on pod <pod>: {text}", runbook=runbook, board="statewarden-agent", cases=cases,
    )  # fmt: skip


_UP = "statewarden_agent_heartbeat_timestamp_seconds"
_OLDEST = "statewarden_agent_spool_oldest_unshipped_timestamp_seconds"

AGENT: tuple[Alert, ...] = (
    Alert(
        name="StatewardenAgentDown",
        expr='up{job=~".*statewarden-agent.*"} == 0',
        severity="warning",
        for_m=10,
        summary="A statewarden agent does not answer",
        description=(
            "The agent on pod <pod> has not answered scrapes for 10 minutes. Nothing is watching this pod: no alerts does not "
            "mean no problem. Next: check the container (kubectl describe pod, its log). There is no need to restart the application."
        ),
        runbook="detectors/auditor-blind",
        board="statewarden-agent",
        cases=(
            Case("fires", {_on_pod("up", job="statewarden-agent"): "0x60"}, 11, {**_POD, "job": "statewarden-agent"}, _SAYS),
            Case("does not fire yet after 9 minutes", {_on_pod("up", job="statewarden-agent"): "0x60"}, 9),
            Case("stays quiet: a rolling restart", {_on_pod("up", job="statewarden-agent"): "1x5 0x4 1x60"}, 20),
            Case("stays quiet: another job is down", {_on_pod("up", job="orders"): "0x60"}, 30),
        ),
    ),
    Alert(
        name="StatewardenAgentsAbsent",
        expr="absent(statewarden_agent_up)",
        severity="warning",
        for_m=15,
        summary="No statewarden agent is scraped at all",
        description=(
            "No agent has been scraped for 15 minutes. Nothing is watched, and every other alert on state is silent. Next: "
            "check the scrape configuration (PodMonitor, labels, network policy), then the pods."
        ),
        runbook="detectors/auditor-blind",
        board="statewarden-agent",
        cases=(
            Case("fires when the series is missing", _QUIET_TARGET, 16, {}),
            Case("does not fire yet after 14 minutes", _QUIET_TARGET, 14),
            Case("stays quiet: one agent of two is there", {_on_pod("statewarden_agent_up"): "1x60"}, 30),
            Case("stays quiet: a rolling restart", {_on_pod("statewarden_agent_up"): "1x5 _x9 1x60"}, 30),
        ),
    ),
    _agent_alert(
        "StatewardenAgentStuck", f"time() - {_UP} > 120", 5, "A statewarden agent's worker is stalled",
        "its worker has not completed a turn for more than two minutes. Its data is out of date. Next: keep its log, restart the "
        "agent's container only.",
        {_on_pod(_UP): "0x100"}, {_on_pod(_UP): "0+60x100"}, "the heart beats", at_m=9, early_m=6,
    ),
    _agent_alert(
        "StatewardenAgentNotReady", "statewarden_agent_ready == 0", 10, "A statewarden agent is not ready",
        "it has not finished its first reading after 10 minutes. Next: read its log; an unreadable directory and "
        "a missing volume are the usual causes.",
        {_on_pod("statewarden_agent_ready"): "0x60"}, {_on_pod("statewarden_agent_ready"): "0x8 1x60"},
        "a slow start", at_m=11, early_m=9,
    ),
    _agent_alert(
        "StatewardenAgentPreflightFailed", "max without (kind) (statewarden_agent_preflight) == 2", 15,
        "A pod is misconfigured for its statewarden agent",
        "a preflight check fails: something in the pod's manifest keeps it from seeing, storing or shipping. Next: run "
        "`statewarden preflight` in the container statewarden: it names the line to change in the next rollout.",
        {_on_pod("statewarden_agent_preflight", kind="access"): "2x60", _on_pod("statewarden_agent_preflight", kind="clock"): "0x60"},
        {_on_pod("statewarden_agent_preflight", kind="spool"): "2x10 1x60"},
        "what failed came right, a warning stays", at_m=16, early_m=14,
    ),
    _agent_alert(
        "StatewardenAgentOftenBlind", "max without (cause) (avg_over_time(statewarden_agent_blind[1h])) > 0.25", 5,
        "A statewarden agent is blind much of the time",
        "it could have missed changes for more than a quarter of the last hour. Anything may have happened in that time. Next: look up the "
        "cause on the board and its remedy on the auditor-blind page.",
        {_on_pod("statewarden_agent_blind", cause="watch-limit"): "0x60 1x100"},
        {_on_pod("statewarden_agent_blind", cause="queue-overflow"): "0x60 1x5 0x100"},
        "one burst that a rescan repaired", at_m=100, early_m=70,
    ),
    _agent_alert(
        "StatewardenAgentMissesChanges",
        "sum without (cause) (increase(statewarden_agent_missed_changes_total[1h])) > 0", 10,
        "A statewarden agent finds changes it was not notified of",
        "a walk found changes that notifications should have announced. Next: check that the volume is a local one (network "
        "file systems announce nothing) and see the page of auditor-blind.",
        {_on_pod("statewarden_agent_missed_changes_total", cause="unannounced"): "0x30 3x100"},
        {_on_pod("statewarden_agent_missed_changes_total", cause="unannounced"): "0x200"},
        "every change was announced", at_m=45, early_m=35,
    ),
    _agent_alert(
        "StatewardenAgentUnwatched", "statewarden_agent_unwatched_directories > 0", 15,
        "A statewarden agent polls directories that it cannot watch",
        "some directories have no kernel watch and are only polled. Changes there are seen late, and short ones not at all. Next: raise "
        "fs.inotify.max_user_watches on the node (the board shows need and limit), then restart the agent's container only.",
        {_on_pod("statewarden_agent_unwatched_directories"): "7x100"},
        {_on_pod("statewarden_agent_unwatched_directories"): "7x10 0x100"},
        "a burst of new tasks that got their watches", at_m=16, early_m=14,
    ),
    _agent_alert(
        "StatewardenAgentSpoolFilling", f"({_OLDEST} > 0) and (time() - {_OLDEST} > 900)", 5,
        "A statewarden agent cannot ship its events",
        "its oldest waiting event is older than 15 minutes: the fleet audit does not see this pod, and the spool will drop events when "
        "it is full. Next: check the sink and the agent's log; do not remove the spool.",
        {_on_pod(_OLDEST): "60x200"}, {_on_pod(_OLDEST): "0x200"}, "nothing waits", at_m=30, early_m=18,
        runbook="rules/unaudited",
    ),
    _agent_alert(
        "StatewardenAgentDropsEvents", "sum without (kind) (increase(statewarden_agent_spool_drops_total[30m])) > 0", 1,
        "A statewarden agent dropped events",
        "its spool was full and events were dropped. The fleet audit has a gap there. Next: fix the sink and give the spool more room.",
        {_on_pod("statewarden_agent_spool_drops_total", kind="summary"): "0x30 50x100"},
        {_on_pod("statewarden_agent_spool_drops_total", kind="summary"): "50x200"},
        "drops of long ago", at_m=35, early_m=29, runbook="rules/unaudited",
    ),
    _agent_alert(
        "StatewardenAgentSpoolRefused", "increase(statewarden_agent_spool_write_failures_total[30m]) > 0", 5,
        "A statewarden agent's spool disk refuses writes",
        "its spool refused records. The fleet audit will not see them. Next: check the spool's volume (full, read-only).",
        {_on_pod("statewarden_agent_spool_write_failures_total"): "0x30 9x100"},
        {_on_pod("statewarden_agent_spool_write_failures_total"): "0x200"}, "all was written", at_m=40, early_m=33,
        runbook="rules/unaudited",
    ),
    _agent_alert(
        "StatewardenAgentDetectorFails",
        "sum without (detector) (increase(statewarden_agent_detector_failures_total[30m])) > 0", 5,
        "A detector of a statewarden agent fails",
        "a detector raised an error and does not run. The others still do. Next: keep the agent's log (detector failed) and report it.",
        {_on_pod("statewarden_agent_detector_failures_total", detector="torn-store"): "0x30 9x100"},
        {_on_pod("statewarden_agent_detector_failures_total", detector="torn-store"): "0x200"},
        "all detectors run", at_m=40, early_m=33,
    ),
    _agent_alert(
        "StatewardenIncidentsUnlisted", "statewarden_incidents_unlisted > 0", 30,
        "More incidents on one pod than alerts can see",
        "this pod has more open incidents than the metrics carry. The worst come first, so minor ones may raise no alert. "
        "Next: read all of them on the agent's page or with `statewarden scan`.",
        {_on_pod("statewarden_incidents_unlisted"): "12x200"}, {_on_pod("statewarden_incidents_unlisted"): "0x200"},
        "all are listed", at_m=31, early_m=29, severity="info",
    ),
)  # fmt: skip

_UNLISTED = "statewarden_rollup_incidents_unlisted"
_LAST = "statewarden_rollup_last_success_timestamp_seconds"
_MARK = "statewarden_rollup_watermark_timestamp_seconds"


def _of_clusters(cluster: str, *values: str) -> dict[str, str]:
    both = zip((_LAST, _MARK), values, strict=False)
    return {f'{series}{{cluster="{cluster}"}}': told for series, told in both}


def _rollup_alert(
    name: str, expr: str, for_m: int, summary: str, text: str, *cases: Case, severity: str = "warning"
) -> Alert:
    return Alert(
        name=name, expr=expr, severity=severity, for_m=for_m, summary=summary, description=text,
        runbook="rules/unaudited", board="statewarden-fleet", cases=cases,
    )  # fmt: skip


ROLLUP: tuple[Alert, ...] = (
    _rollup_alert(
        "StatewardenRollupStale",
        f"time() - max by (cluster) ({_LAST}) > 10800",
        5,
        "The fleet audit has not succeeded for three hours",
        "No fleet audit has finished for three hours. Problems that only show across pods are not detected. Next: check its "
        "last job (kubectl get jobs, its log); the next run catches up by itself. Raise the three hours if it runs less than hourly.",
        Case("fires", {_LAST: "600x400"}, 200, {}),
        Case("fires for one of two clusters", _of_clusters("a", "600x400") | _of_clusters("b", "0x30 9600x400"), 200,
             {"cluster": "a"}),
        Case("does not fire yet after 3 hours", {_LAST: "600x400"}, 190),
        Case("stays quiet: a run each hour, one late", {_LAST: "0x60 3600x100 9600x200"}, 250),
        Case("stays quiet: there is no rollup (see absence)", _QUIET_TARGET, 300),
    ),
    _rollup_alert(
        "StatewardenRollupBehind",
        f"max by (cluster) ({_LAST}) - max by (cluster) ({_MARK}) > 3600",
        30,
        "The fleet audit runs, but on old events",
        "The newest event of the last audit was more than an hour old when it ran: agents are not shipping, or not to where the "
        "fleet audit reads. Next: check StatewardenAgentSpoolFilling and the fleet audit's input.",
        Case("fires", {_LAST: "20000x100", _MARK: "10000x100"}, 31, {}),
        Case("fires for one of two clusters",
             _of_clusters("a", "20000x100", "10000x100") | _of_clusters("b", "20000x100", "19000x100"), 31,
             {"cluster": "a"}),
        Case("does not fire yet after 29 minutes", {_LAST: "20000x100", _MARK: "10000x100"}, 29),
        Case("stays quiet: the usual delay", {_LAST: "20000x100", _MARK: "19000x100"}, 60),
        Case("stays quiet: the series is missing", _QUIET_TARGET, 60),
    ),
    _rollup_alert(
        "StatewardenRollupIncidentsUnlisted",
        f"max by (cluster) ({_UNLISTED}) > 0",
        30,
        "More incidents of the fleet than alerts can carry",
        "<count> of the fleet audit's incidents raise no alert. Criticals are kept first, then what only "
        "the audit found. Next: read all of them in the "
        "fleet audit's newest report, or in its incidents.jsonl.",
        Case("fires", {_UNLISTED: "12x200"}, 31, {}, {"<count>": "12"}),
        Case("does not fire yet after 29 minutes", {_UNLISTED: "12x200"}, 29),
        Case("stays quiet: all are listed", {_UNLISTED: "0x200"}, 60),
        Case("stays quiet: the next audit lists all", {_UNLISTED: "12x20 0x200"}, 60),
        Case("stays quiet: the series is missing", _QUIET_TARGET, 60),
        severity="info",
    ),
)  # fmt: skip

ROLLUP_ABSENT: tuple[Alert, ...] = (
    _rollup_alert(
        "StatewardenRollupAbsent",
        f"absent({_LAST}) and on () count(statewarden_agent_up) > 0",
        180,
        "There are agents but no fleet audit",
        "Agents are scraped, but no fleet audit has reported. Problems that only show across pods are not detected. Next: deploy the fleet audit, or "
        "let Prometheus scrape what it writes (metrics.prom, or its Pushgateway). If you want neither, disable this alert.",
        Case("fires when the series is missing", {_on_pod("statewarden_agent_up"): "1x400"}, 181, {}),
        Case("does not fire yet", {_on_pod("statewarden_agent_up"): "1x400"}, 179),
        Case("stays quiet: there is one", {_on_pod("statewarden_agent_up"): "1x400", _LAST: "1x400"}, 300),
        Case("stays quiet: there is no agent either", _QUIET_TARGET, 300),
    ),
)
"""Only where something takes what audits push or write: elsewhere it would fire without end."""

DEAD_MAN: tuple[Alert, ...] = (
    Alert(
        name="StatewardenDeadMan",
        expr="vector(1)",
        severity="none",
        for_m=0,
        summary="Always firing: proof that alerts get through",
        description=(
            "This alert always fires. Route it to something outside that raises an alarm when it stops coming: then Prometheus, "
            "Alertmanager or the way between them is broken, and no alert on state gets through."
        ),
        runbook="detectors/auditor-blind",
        board="statewarden-agent",
        cases=(
            Case("fires at once", _QUIET_TARGET, 0, {}),
            Case("fires without a single series", {}, 5, {}),
            Case("still fires after hours", _QUIET_TARGET, 300, {}),
        ),
    ),
)
