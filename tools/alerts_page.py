"""Render docs/alerts.md: the alerts about agents and the audit, which no detector or rule has a runbook for."""

from __future__ import annotations

from agent.cli.lookup import of_alert
from agent.contract.runbooks import address_of
from agent.detectors import DETECTORS
from spark_rollup.registry import NAMING
from tools.alerts.files import groups
from tools.alerts.model import Alert, fill

WORDS = {
    "<application>": "APPLICATION",
    "<audited>": "NAMESPACE",
    "<pod>": "NAMESPACE/POD",
    "<task>": "TASK",
    "<count>": "N",
    "<detector>": "DETECTOR",
}
"""Placeholder of a description -> its word on the page."""

HEAD = """# Alerts about the watchers

These alerts are about agents, the fleet audit and the way of the alerts themselves: no data is at risk, but something
is not watched. `statewarden explain ALERT` prints a section. All other alerts have the name of their detector or rule,
and its runbook.

<!-- generated (make docs) -->
"""


def render_alerts_page() -> str:
    """Write one section per alert."""
    units = {f"detectors/{x.meta.id}" for x in DETECTORS} | {f"rules/{x.id}" for x in NAMING}
    alerts = (alert for _, group in groups() for alert in group)
    return HEAD + "".join(_section(alert) for alert in alerts if of_alert(alert.name) not in units)


def _section(alert: Alert) -> str:
    meaning, _, steps = fill(alert.description, WORDS).partition(" Next: ")
    lasts = f", after {alert.for_m} minutes" if alert.for_m else ""
    todo = f"Next: {steps}\n\n" if steps else ""
    return (
        f"\n## {alert.name}\n\n{alert.summary} (severity {alert.severity}{lasts}).\n\n{meaning}\n\n{todo}"
        f"More: [`statewarden explain {alert.runbook}`]({address_of(alert.runbook, '.md')})\n"
    )
