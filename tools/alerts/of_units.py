"""Alerts of detectors (from the agents' series) and of rules (from the rollup's): one per incident, by what names it."""

from __future__ import annotations

from collections.abc import Sequence

from agent.contract.audited import FLEET
from agent.contract.events import Level, Severity
from agent.contract.incidents import where_to_read
from agent.contract.units import Twin
from agent.findings.alerts import alerted, wait_m
from agent.judging.base import DetectorMeta, Scope
from spark_rollup.fleet.meta import RuleMeta
from tools.alerts.exposed import exposed_alert
from tools.alerts.model import FLEET_INCIDENTS, INCIDENTS, TEXTS, Alert, Case

KEEP_M = 10
"""A page stays over a restart of the agent, instead of paging twice."""

BY_LEVEL = {
    Level.DAMAGE: "What is computed from this state may be wrong.",
    Level.EXPOSURE: "Nothing is lost yet, but the next restart or rebalance may lose data or cost a full restoration.",
    Level.EVENT: "This alone loses no data.",
    Level.SELF: "Nothing is watching the application meanwhile: no alerts does not mean no problem.",
}
"""Consequence where a rule names none."""

LOCAL, OF_FLEET = INCIDENTS, FLEET_INCIDENTS

SAME = "cluster, namespace, application_id, incident_id"
"""Labels that the agent's alert and the fleet's have in common: by them one of an incident's alerts inhibits others."""

_SHOWS = {LOCAL: "statewarden_tasks", OF_FLEET: "statewarden_rollup_lost_events"}
"""What is there beside incidents, so that the quiet is not that of an empty Prometheus."""

_INCIDENT = "i-0123456789ab"
SAYS = {"<application>": "orders", "<pod>": "shop/orders-0", "<namespace>": "shop", "<incident>": _INCIDENT}


def detector_alerts(meta: DetectorMeta) -> tuple[Alert, ...]:
    """Make the alerts of a detector: one per severity that needs an operator, and one for what lasts."""
    upstream = tuple(dict.fromkeys(x.key for x in meta.upstream if "no upstream" not in x.key))
    name = f"Statewarden{camel(meta.id)}"
    alerts = tuple(
        _alert(name, meta, severity, _says(meta, upstream, meta.consequence), meta.scope)
        for severity in alerted(meta.severity)
    )
    return (*alerts, exposed_alert(f"{name}Exposed", meta)) if meta.lowers_risk else alerts


def rule_alerts(meta: RuleMeta) -> tuple[Alert, ...]:
    """Make the alerts of a rule of the rollup, or of what `verify` proves."""
    says = _says(meta, meta.upstream, meta.consequence or BY_LEVEL[meta.level])
    name = f"StatewardenFleet{camel(meta.id)}"
    return tuple(_alert(name, meta, severity, says, None) for severity in alerted(meta.severity))


def _says(meta: DetectorMeta | RuleMeta, upstream: Sequence[str], consequence: str) -> str:
    """Say what stays so while an incident lasts: as what it began, and what follows; and where its step is."""
    bug = f"{meta.title[0].lower()}{meta.title[1:]}" + (f" ({', '.join(upstream)})" if upstream else "")
    step = f"Read it before you remove or start anything: {where_to_read('<incident>')}."
    condition = "If it is real: " if meta.level is Level.DAMAGE else ""
    return f"Incident <incident>, reported as: {bug}. {condition}{consequence} Next: {step}"


def camel(unit: str) -> str:
    """Spell an id as part of an alert's name."""
    return "".join(part.capitalize() for part in unit.split("-"))


def _alert(
    name: str, meta: DetectorMeta | RuleMeta, severity: Severity, says: str, scope: Scope | None
) -> Alert:
    is_lesser = severity is not meta.severity
    title = f"suspected: {meta.title[0].lower()}{meta.title[1:]}" if is_lesser else meta.title
    for_m = wait_m(meta.level, severity, meta.alert_after_m)
    keep_m = KEEP_M if severity is Severity.CRITICAL else 0
    return Alert(
        name=f"{name}Suspected" if is_lesser else name,
        expr=_expr(meta.id, severity, scope),
        severity=severity.value,
        for_m=for_m,
        keep_m=keep_m,
        place="<pod>" if scope else "<namespace>",
        summary=f"{'' if scope is Scope.AGENT else '<application>: '}{title}{'' if scope else ' (fleet audit)'}",
        description=says,
        runbook=f"{'detectors' if scope else 'rules'}/{meta.id}",
        board="statewarden-pod" if scope else "statewarden-application",
        labels={"reporter": "agent" if scope else "fleet"},
        cases=(
            *_cases(meta.id, severity, scope, for_m, keep_m),
            *_twin_case(meta.id, severity, scope, for_m, meta.twin),
        ),
    )


def _expr(unit: str, severity: Severity, scope: Scope | None) -> str:
    if scope is None:
        # the rollup repeats what an agent says alone; the agent's own alert is enough for that
        chosen = f'{OF_FLEET}{{rule="{unit}",severity="{severity}",reported_by="{FLEET}"}}'
        named = f'label_replace({chosen}, "namespace", "$1", "audited_namespace", "(.*)")'
        named = f'label_replace({named}, "cluster", "$1", "audited_cluster", "(.+)")'
        return f"max by ({SAME}, rule) ({named}) > 0"
    lasting = "" if severity is Severity.CRITICAL else ',configured_exposure="no"'
    chosen = f'{LOCAL}{{detector="{unit}",severity="{severity}"{lasting}}}'
    return f"max by ({SAME}, pod, detector) ({chosen}) > 0"


def _cases(unit: str, severity: Severity, scope: Scope | None, for_m: int, keep_m: int) -> tuple[Case, ...]:
    labels = _labels(unit, scope)
    series = _incident(unit, severity, scope)
    # agents of two copies of a volume give one id
    others = {_text(scope, "Of another pod.", "On another pod.", pod="another"): "1x200"} if scope else {}
    without = {series: "1x200", **others}
    cases = [
        Case("fires, and says so without the incident's text", without, for_m + 1, labels, SAYS),
        *_same_alert_cases(unit, severity, scope, for_m),
    ]
    if for_m:
        restart = {series: f"1x{for_m - 2} stale"}
        cases += [
            Case(f"does not fire yet after {for_m - 1} minutes", {series: "1x200"}, for_m - 1),
            Case("stays quiet: it came with a rolling restart and went with it", restart, for_m + 2),
        ]
    else:
        quieter = _incident(unit, Severity.WARNING, scope, confidence="suspected")
        cases += [
            Case("does not fire yet: suspected is a ticket, not a page", {quieter: "1x200"}, 120),
            Case("goes on over a restart of the agent", {series: "1x5 stale _x3 1x50"}, 8, labels, SAYS),
            Case("ends when the task was restored", {series: "1x5 stale"}, 7 + keep_m),
        ]
    if scope is not None and severity is not Severity.CRITICAL:
        lasting = _incident(unit, severity, scope, configured_exposure="yes")
        cases.append(Case("stays quiet: an exposure by release or settings", {lasting: "1x200"}, 180))
    why, benign = "the benign look-alike is reported as info", _incident(unit, Severity.INFO, scope)
    if severity is Severity.INFO:
        why, benign = "another unit reported it", _incident("another-unit", severity, scope)
    return (
        *cases,
        Case(f"stays quiet: {why}", {benign: "1x200"}, 180),
        Case("stays quiet: the series is missing", {'up{job="statewarden-agent"}': "0x200"}, 180),
    )


def _same_alert_cases(unit: str, severity: Severity, scope: Scope | None, for_m: int) -> tuple[Case, ...]:
    """Let what is known of an incident change: the alert stays, and its text says what is so now."""
    changes = {
        "what was suspected is confirmed": {"confidence": "suspected"},
        "another task joins the incident": {"tasks": "0_3, 0_4"},
        "another finding comes to name the incident": {"named_by": "another-unit"},
    }
    if scope is not None:
        changes["another incident comes first"] = {"do_first": "i-aaaaaaaaaaaa"}
    labels, was = _labels(unit, scope), _incident(unit, severity, scope)
    cases = []
    for what, label in changes.items():
        other = _incident(unit, severity, scope, **label)
        before, after = (other, was) if "confidence" in label else (was, other)
        now = (f"orders 0_3 (now: {what}).", f"The step since {what}.")
        until, since = f"1x{for_m + 2} stale", f"_x{for_m + 3} 1x50"
        series = {before: until, _text(scope, "It was.", "It was asked."): until}
        series |= {after: since, _text(scope, *now): since}
        cases.append(Case(f"is the same alert when {what}", series, for_m + 5, labels, SAYS, now))
    return tuple(cases)


def _text(scope: Scope | None, summary: str, next_step: str, pod: str = "orders-0") -> str:
    """Give the series with the text of the incident."""
    place = {"namespace": "shop", "pod": pod} if scope else {"namespace": "statewarden"}
    said = {"application_id": "orders", "incident_id": _INCIDENT, "summary": summary, "next_step": next_step}
    return _series(TEXTS["agent" if scope else "fleet"], {**place, **said})


def _twin_case(
    unit: str, severity: Severity, scope: Scope | None, for_m: int, twin: Twin | None
) -> tuple[Case, ...]:
    """Let the unit's benign twin show what it shows, for as long as it would take to fire."""
    if twin is None:
        return ()
    place = {x: y for x, y in _labels(unit, scope).items() if x in ("namespace", "pod", "application_id")}
    series = {_series(_SHOWS[OF_FLEET if scope is None else LOCAL], place): "0x400"}
    if twin.shows:
        series[_incident(unit, twin.shows, scope)] = "1x400"
    assert twin.shows is not severity, f"{unit}: the twin shows what the alert is about"
    return (Case(f"stays quiet: {twin.what} ({twin.recording})", series, for_m + 180),)


def _labels(unit: str, scope: Scope | None) -> dict[str, str]:
    """Give the labels of an alert, without those that depend on the incident's state."""
    labels = {"namespace": "shop"}
    if scope is not Scope.AGENT:
        labels["application_id"] = "orders"
    if scope is not None:
        labels["pod"] = "orders-0"
    return {**labels, "incident_id": _INCIDENT, "rule" if scope is None else "detector": unit}


def _incident(unit: str, severity: Severity, scope: Scope | None, **more: str) -> str:
    """Give the series of one incident."""
    labels = {**_labels(unit, scope), "severity": severity.value, "confidence": "confirmed", "tasks": "0_3"}
    if scope is None:
        labels["audited_namespace"] = labels.pop("namespace")
        return _series(OF_FLEET, {"namespace": "statewarden", **labels, "reported_by": FLEET, **more})
    return _series(LOCAL, {**labels, "configured_exposure": "no", **more})


def _series(metric: str, labels: dict[str, str]) -> str:
    words = ",".join(f'{name}="{value}"' for name, value in labels.items())
    return f"{metric}{{{words}}}"
