"""Alerts of detectors (from the agents' series) and of rules (from the rollup's)."""

from __future__ import annotations

from agent.contract.events import Level, Severity
from agent.contract.units import Twin
from agent.judging.base import DetectorMeta, Scope
from spark_rollup.config import FLEET
from spark_rollup.judging.base import RuleMeta
from tools.alerts.model import Alert, Case

KEEP_M = 10
"""A page stays over a restart of the agent, instead of paging twice."""

WAIT_M = {Level.DAMAGE: 5, Level.EVENT: 5, Level.EXPOSURE: 15, Level.SELF: 15}
"""Minutes that a warning must last, by level: what a rolling restart shows for a while must not be a ticket."""

INFO_WAIT_M = 60

BY_LEVEL = {
    Level.DAMAGE: "What is computed from this state may be wrong.",
    Level.EXPOSURE: "Nothing is lost yet; one more step loses data or costs a full restoration.",
    Level.EVENT: "Nothing is lost by itself.",
    Level.SELF: "Nothing is said about the application meanwhile: silence is no proof.",
}
"""Consequence where a rule names none."""

SAYS = {"<application>": "orders", "<pod>": "shop/orders-0", "<task>": "task 0_3", "<audited>": "shop"}


def detector_alerts(meta: DetectorMeta) -> tuple[Alert, ...]:
    """Make the alerts of a detector: one per severity that needs an operator."""
    upstream = ", ".join(dict.fromkeys(x.key for x in meta.upstream if "no upstream" not in x.key))
    return tuple(
        _alert(
            name=f"Statewarden{camel(meta.id)}{_suffix(meta.severity, severity)}",
            kind="detector",
            meta=meta,
            severity=severity,
            text=f"{_bug(meta.title, upstream)}. {meta.consequence} Next: {meta.next_action}",
            metric="statewarden_task_findings",
            scope=meta.scope,
        )
        for severity in _alerted(meta.severity)
    )


def rule_alerts(meta: RuleMeta) -> tuple[Alert, ...]:
    """Make the alerts of a rule of the rollup."""
    consequence = meta.consequence or BY_LEVEL[meta.level]
    text = (
        f"{_bug(meta.title, ', '.join(meta.upstream))}. {consequence} Next: open the newest report of the rollup; the "
        "finding there names pods, evidence and the next safe action. Do not delete any copy before."
    )
    return tuple(
        _alert(
            name=f"StatewardenFleet{camel(meta.id)}{_suffix(meta.severity, severity)}",
            kind="rule",
            meta=meta,
            severity=severity,
            text=text,
            metric="statewarden_rollup_task_findings",
            scope=None,
        )
        for severity in _alerted(meta.severity)
    )


def camel(unit: str) -> str:
    """Spell an id as part of an alert's name."""
    return "".join(part.capitalize() for part in unit.split("-"))


def _alerted(severity: Severity) -> tuple[Severity, ...]:
    """Severities worth an alert: critical and warning as far as the unit goes, info where it goes no further."""
    if severity is Severity.CRITICAL:
        return (Severity.CRITICAL, Severity.WARNING)
    return (severity,)


def _suffix(highest: Severity, severity: Severity) -> str:
    return "" if severity is highest else "Suspected"


def _bug(title: str, upstream: str) -> str:
    return f"{title} ({upstream})" if upstream else title


def _alert(
    *,
    name: str,
    kind: str,
    meta: DetectorMeta | RuleMeta,
    severity: Severity,
    text: str,
    metric: str,
    scope: Scope | None,
) -> Alert:
    local = scope is not None
    # the rollup repeats what an agent says alone; the agent's own alert is enough for that
    reporter = "" if local else f',reported_by="{FLEET}"'
    selector = f'{metric}{{{kind}="{meta.id}",severity="{severity}"{reporter}}}'
    grouped = local and meta.level in (Level.EXPOSURE, Level.SELF)
    expr = f"sum without (task_id) ({selector}) > 0" if grouped else f"{selector} > 0"
    if severity is Severity.CRITICAL:
        wait_m, keep_m = 0, KEEP_M
    else:
        usual_m = INFO_WAIT_M if severity is Severity.INFO else WAIT_M[meta.level]
        wait_m, keep_m = meta.alert_after_m or usual_m, 0
    labels = (
        {"namespace": "shop", "pod": "orders-0"}
        if local
        else {"audited_namespace": "shop", "reported_by": FLEET}
    )
    if scope is not Scope.AGENT:
        labels["application_id"] = "orders"
    labels[kind] = meta.id
    if not grouped:
        labels["task_id"] = "0_3"
    return Alert(
        name=name,
        expr=expr,
        severity=severity.value,
        for_m=wait_m,
        keep_m=keep_m,
        summary=meta.title if local else f"{meta.title} (fleet audit)",
        description=f"{_place(scope, grouped)} {text}",
        runbook=f"{'detectors' if local else 'rules'}/{meta.id}",
        board="statewarden-task" if not grouped else "statewarden-pod",
        cases=(
            *_cases(metric, labels, severity, wait_m, keep_m, grouped),
            *_twin_case(metric, labels, severity, wait_m, meta.twin),
        ),
    )


def _place(scope: Scope | None, grouped: bool) -> str:
    if scope is None:
        return "<task> of <application> in namespace <audited>."
    if scope is Scope.AGENT:
        return "The agent on pod <pod>."
    if grouped:
        return "<application> on pod <pod> (<count> open)."
    return "<task> of <application> on pod <pod>."


def _cases(
    metric: str, labels: dict[str, str], severity: Severity, for_m: int, keep_m: int, grouped: bool
) -> tuple[Case, ...]:
    says = {**SAYS, "<count>": "2"}
    series = _series(metric, {**labels, "severity": severity.value, "task_id": "0_3"})
    sibling = _series(metric, {**labels, "severity": severity.value, "task_id": "0_4"})
    kind = "detector" if "detector" in labels else "rule"
    twin = (
        {"severity": "info"} if severity is not Severity.INFO else {kind: "another-unit", "severity": "info"}
    )
    benign = _series(metric, {**labels, **twin, "task_id": "0_3"})
    both = {series: "1x200", sibling: "1x200"} if grouped else {series: "1x200"}
    cases = [Case("fires", both, for_m + 1, labels, says)]
    if for_m:
        cases.append(Case(f"does not fire yet after {for_m - 1} minutes", both, for_m - 1))
        restart = {series: f"1x{for_m - 2} stale"}
        cases.append(Case("stays quiet: it came with a rolling restart and went with it", restart, for_m + 2))
    else:
        quieter = _series(metric, {**labels, "severity": "warning", "task_id": "0_3"})
        cases.append(Case("does not fire yet: suspected is a ticket, not a page", {quieter: "1x200"}, 120))
        gap = dict.fromkeys(both, "1x5 stale _x3 1x50")
        cases.append(Case("goes on over a restart of the agent", gap, 8, labels, says))
        gone = {series: "1x5 stale"}
        cases.append(Case("ends when the task was restored", gone, 7 + keep_m))
    cases.append(
        Case(
            "stays quiet: "
            + ("the benign look-alike is reported as info" if len(twin) == 1 else "another unit reported it"),
            {benign: "1x200"},
            180,
        )
    )
    cases.append(Case("stays quiet: the series is missing", {'up{job="statewarden-agent"}': "0x200"}, 180))
    return tuple(cases)


def _twin_case(
    metric: str, labels: dict[str, str], severity: Severity, for_m: int, twin: Twin | None
) -> tuple[Case, ...]:
    """Let the unit's benign twin show what it shows, for as long as it would take to fire."""
    if twin is None:
        return ()
    place = {name: value for name, value in labels.items() if name not in ("detector", "rule")}
    series = {_series(_CONTEXT[metric], place): "0x400"}
    if twin.shows:
        shown = {**labels, "severity": twin.shows.value, "task_id": "0_3"}
        series[_series(metric, shown)] = "1x400"
    assert twin.shows is not severity, f"{labels}: the twin shows what the alert is about"
    return (Case(f"stays quiet: {twin.what} ({twin.recording})", series, for_m + 180),)


_CONTEXT = {
    "statewarden_task_findings": "statewarden_task_severity",
    "statewarden_rollup_task_findings": "statewarden_rollup_lost_events",
}
"""What is there beside the findings, so that the quiet is not that of an empty Prometheus."""


def _series(metric: str, labels: dict[str, str]) -> str:
    words = ",".join(f'{name}="{value}"' for name, value in labels.items())
    return f"{metric}{{{words}}}"
