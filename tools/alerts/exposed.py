"""Alerts about exposures by release or settings: for reading, one per application and release, repeated each week."""

from __future__ import annotations

from agent.contract.units import Twin
from agent.judging.base import DetectorMeta
from tools.alerts.model import Alert, Case

WAIT_M, KEEP_M = 60, 1_440
"""A day's keeping: a rolling restart, after which nothing is exposed for a while, sends nothing again."""

REPEAT = {"repeat": "weekly"}
"""Label by which the routes repeat it rarely."""

_METRIC = "statewarden_exposed_tasks"


def exposed_alert(name: str, meta: DetectorMeta) -> Alert:
    """Make the alert of what a detector reports as lasting."""
    chosen = f'{_METRIC}{{detector="{meta.id}",accepted="false"}}'
    # of several mechanisms one lasts: `lowers_risk` says which
    does = f"{meta.consequence} " if meta.mechanism else ""
    text = (
        f"<application> in namespace <namespace><release>: {meta.title}, on <count> pod(s). It stays until release or "
        f"settings change. {does}Next: lower the risk. {meta.lowers_risk} To silence this alert, set "
        f"accepts={meta.id} for this application (in the sidecar's chart: facts.accepts)."
    )
    return Alert(
        name=name, expr=f"count by (cluster, namespace, application_id, release) ({chosen} > 0)", severity="info",
        for_m=WAIT_M, keep_m=KEEP_M, summary=f"Release or settings: {meta.title[0].lower()}{meta.title[1:]}",
        description=text, runbook=f"detectors/{meta.id}", board="statewarden-application", labels=REPEAT,
        cases=(*_cases(meta.id), *_twin_case(meta.twin)),
    )  # fmt: skip


def _cases(detector: str) -> tuple[Case, ...]:
    labels = {"namespace": "shop", "application_id": "orders", "release": "3.9.1"}
    place = {"<application>": "orders", "<namespace>": "shop"}
    says = {**place, "<release>": ", Kafka Streams 3.9.1", "<count>": "2"}
    both = {_series(detector, "orders-0"): "20x3000", _series(detector, "orders-1"): "7x3000"}
    restarted = {x: f"{y[: y.index('x')]}x100 stale _x600 {y}" for x, y in both.items()}
    return (
        Case("fires once for all pods of an application", both, WAIT_M + 1, labels, says),
        Case(f"does not fire yet after {WAIT_M - 1} minutes", both, WAIT_M - 1),
        Case("goes on over a rolling restart", restarted, 500, labels, says),
        Case("stays quiet: it is accepted", {_series(detector, "orders-0", "true"): "20x3000"}, 300),
        Case("stays quiet: another detector", {_series("another-unit", "orders-0"): "20x3000"}, 300),
        Case("ends a day after the release is gone", {_series(detector, "orders-0"): "20x100 stale"}, 1_700),
    )


def _twin_case(twin: Twin | None) -> tuple[Case, ...]:
    """Let the detector's benign twin run: it is exposed to nothing."""
    if twin is None:
        return ()
    tasks = 'statewarden_tasks{namespace="shop",pod="orders-0",application_id="orders"}'
    return (Case(f"stays quiet: {twin.what} ({twin.recording})", {tasks: "5x400"}, WAIT_M + 180),)


def _series(detector: str, pod: str, accepted: str = "false") -> str:
    place = f'namespace="shop",pod="{pod}",application_id="orders",release="3.9.1"'
    return f'{_METRIC}{{{place},detector="{detector}",accepted="{accepted}"}}'
