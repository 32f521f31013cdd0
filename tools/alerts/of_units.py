"""Alerts of detectors (from the agents' series) and of rules (from the rollup's): one per incident, by what names it."""

from __future__ import annotations

from agent.contract.events import Level, Severity
from agent.contract.units import Twin
from agent.findings.alerts import alerted, wait_m
from agent.findings.proof import can_be_proved, proof_first
from agent.judging.base import DetectorMeta, Scope
from spark_rollup.config import FLEET
from spark_rollup.fleet.meta import RuleMeta
from tools.alerts.exposed import exposed_alert
from tools.alerts.model import FLEET_INCIDENTS, INCIDENTS, Alert, Case

KEEP_M = 10
"""A page stays over a restart of the agent, instead of paging twice."""

BY_LEVEL = {
    Level.DAMAGE: "What is computed from this state may be wrong.",
    Level.EXPOSURE: "Nothing is lost yet; one more step loses data or costs a full restoration.",
    Level.EVENT: "Nothing is lost by itself.",
    Level.SELF: "Nothing is said about the application meanwhile: silence is no proof.",
}
"""Consequence where a rule names none."""

LOCAL, OF_FLEET = INCIDENTS, FLEET_INCIDENTS

SAME = "cluster, namespace, application_id, incident_id"
"""Labels that the agent's alert and the fleet's have in common: by them one of an incident's alerts inhibits others."""

_SHOWS = {LOCAL: "statewarden_tasks", OF_FLEET: "statewarden_rollup_lost_events"}
"""What is there beside incidents, so that the quiet is not that of an empty Prometheus."""

_FLEET_STEP = (
    "open the newest report of the rollup at this incident; it names pods, evidence and the next safe action. Do not "
    "delete any copy before."
)
_LED = "It was reported as: {began}. By now <lead> names it (`statewarden explain {kind}<lead>`)."
_LED_STEP = (
    "do what <lead> asks for; the agent's page has it, and so has `statewarden explain <incident> --events SOURCE`. Remove "
    "nothing before."
)
_PROOF = "`statewarden verify` (`statewarden explain {id}` has the whole command)"
SAYS = {
    "<application>": "orders", "<pod>": "shop/orders-0", "<namespace>": "shop", "<incident>": "i-0123456789ab",
    "<tasks>": "task 0_3 of ", "<audited>": "task 0_3 of ",
}  # fmt: skip


def detector_alerts(meta: DetectorMeta) -> tuple[Alert, ...]:
    """Make the alerts of a detector: one per severity that needs an operator, and one for what lasts."""
    upstream = ", ".join(dict.fromkeys(x.key for x in meta.upstream if "no upstream" not in x.key))
    bug = _bug(meta.title, upstream)
    where = "The agent on pod <pod>." if meta.scope is Scope.AGENT else "<tasks><application> on pod <pod>."
    head = f"Incident <incident>: {where}"
    proof = _PROOF.format(id=meta.id)
    unsure = proof_first(proof, meta.next_action) if can_be_proved(meta) else meta.next_action
    pressing = alerted(meta.severity)
    alerts = tuple(
        _alert(
            name=f"Statewarden{camel(meta.id)}",
            meta=meta,
            severity=severity,
            texts=_texts(head, bug, "", meta.consequence, (meta.next_action, unsure, _LED_STEP)),
            scope=meta.scope,
        )
        for severity in pressing
    )
    return (
        (*alerts, exposed_alert(f"Statewarden{camel(meta.id)}Exposed", meta)) if meta.lowers_risk else alerts
    )


def rule_alerts(meta: RuleMeta) -> tuple[Alert, ...]:
    """Make the alerts of a rule of the rollup, or of what `verify` proves."""
    consequence = meta.consequence or BY_LEVEL[meta.level]
    bug = _bug(meta.title, ", ".join(meta.upstream))
    head = "Incident <incident>: <audited><application> in namespace <namespace>."
    return tuple(
        _alert(
            name=f"StatewardenFleet{camel(meta.id)}",
            meta=meta,
            severity=severity,
            texts=_texts(head, bug, "rules/", consequence, (_FLEET_STEP,) * 3),
            scope=None,
        )
        for severity in alerted(meta.severity)
    )


def _texts(
    head: str, bug: str, kind: str, consequence: str, steps: tuple[str, str, str]
) -> tuple[str, str, str]:
    """Write the descriptions of what is sure, of what is suspected, and of what another unit names by now."""
    began = bug[0].lower() + bug[1:]
    return (
        f"{head} {bug}. {consequence} Next: {steps[0]}",
        f"{head} Suspected, not proved: {began}. If so: {consequence} Next: {steps[1]}",
        f"{head} {_LED.format(began=began, kind=kind)} Next: {steps[2]}",
    )


def camel(unit: str) -> str:
    """Spell an id as part of an alert's name."""
    return "".join(part.capitalize() for part in unit.split("-"))


def _bug(title: str, upstream: str) -> str:
    return f"{title} ({upstream})" if upstream else title


def _alert(
    *,
    name: str,
    meta: DetectorMeta | RuleMeta,
    severity: Severity,
    texts: tuple[str, str, str],
    scope: Scope | None,
) -> Alert:
    is_lesser = severity is not meta.severity
    title = meta.title if scope is not None else f"{meta.title} (fleet audit)"
    for_m = wait_m(meta.level, severity, meta.alert_after_m)
    keep_m = KEEP_M if severity is Severity.CRITICAL else 0
    return Alert(
        name=f"{name}Suspected" if is_lesser else name,
        expr=_expr(meta.id, severity, scope),
        severity=severity.value,
        for_m=for_m,
        keep_m=keep_m,
        summary=f"Suspected: {meta.title[0].lower()}{meta.title[1:]}" if is_lesser else title,
        description=texts[0],
        suspected=texts[1],
        led=texts[2],
        runbook=f"{'detectors' if scope is not None else 'rules'}/{meta.id}",
        board="statewarden-application" if scope is None else "statewarden-pod",
        labels={"reporter": "fleet" if scope is None else "agent"},
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
    cases = [
        Case("fires", {series: "1x200"}, for_m + 1, labels, SAYS),
        *_same_alert_cases(unit, severity, scope, for_m),
    ]
    if scope is not None:
        after = _incident(unit, severity, scope, do_first="i-aaaaaaaaaaaa")
        yields = {**SAYS, "<first>": "i-aaaaaaaaaaaa"}
        cases += [
            Case("sends to the incident that comes first", {after: "1x200"}, for_m + 1, labels, yields),
            Case("is the same alert, with the other step, when another incident comes first",
                 {series: f"1x{for_m + 5} stale", after: f"_x{for_m + 6} 1x50"}, for_m + 8, labels, yields),
        ]  # fmt: skip
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
    labels = _labels(unit, scope)
    series = _incident(unit, severity, scope)
    later = _incident(unit, severity, scope, tasks="0_3, 0_4")
    suspected = _incident(unit, severity, scope, confidence="suspected")
    more = {"<tasks>": "tasks 0_3, 0_4 of ", "<audited>": "tasks 0_3, 0_4 of "}
    led = _incident(unit, severity, scope, named_by="another-unit")
    return (
        Case("says that it is only suspected", {suspected: "1x200"}, for_m + 1, labels, SAYS, confirmed=False),
        Case("is the same alert when what was suspected is confirmed",
             {suspected: f"1x{for_m + 2} stale", series: f"_x{for_m + 3} 1x50"}, for_m + 5, labels, SAYS),
        Case("is the same alert when another task joins the incident",
             {series: f"1x{for_m} stale", later: f"_x{for_m + 1} 1x50"}, for_m + 2, labels, {**SAYS, **more}),
        Case("is the same alert when another finding comes to name the incident",
             {series: f"1x{for_m + 2} stale", led: f"_x{for_m + 3} 1x50"}, for_m + 5, labels,
             {**SAYS, "<lead>": "another-unit"}),
    )  # fmt: skip


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
    return {**labels, "incident_id": "i-0123456789ab", "rule" if scope is None else "detector": unit}


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
