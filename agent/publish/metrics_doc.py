"""The docs page of the metrics, computed from the catalogue."""

from __future__ import annotations

from agent.detectors import DETECTORS
from agent.publish.catalogue import ALLOWED_LABELS, GROUPS, SERIES_BUDGET, SERIES_BUDGET_BY_STORE
from agent.publish.incident_rows import INCIDENTS_LISTED
from agent.publish.metric import Metric
from agent.publish.series_scope import reach_of, series_of

_TABLE = "| metric | type | labels | stability | meaning |\n|---|---|---|---|---|\n"
_OWN, _EACH = (sum(x) for x in zip(*(series_of(reach_of(y.meta)) for y in DETECTORS), strict=True))
_SERIES = SERIES_BUDGET + _OWN + _EACH
_HEAD = f"""\
# Metrics

<!-- generated from `agent/publish/families`; change it there -->

The agent serves these on `/metrics`, as Prometheus text or, if the scraper asks for it, as OpenMetrics; packed by gzip
for a scraper that reads that. Every family is present from the first scrape. Series with known label values start at 0,
if they can become anything else. Those that cannot do not exist: of applications without a task, and of the 101st and
later, the liveliest first; of detectors that are disabled, or judge applications with another processing guarantee; of
severities above a detector's highest; and, among what is open, of detectors that
report moments. Counters start from 0 with the agent. Pod, namespace and node are not labels: the scrape adds them.

One agent with 20 tasks of 3 stores gives at most {_SERIES} series (a test counts them); with
`metrics_detail = "store"` another {SERIES_BUDGET_BY_STORE} per store. A task adds 8, an application {_EACH + 5} or
less.
`statewarden_task_findings` has a series for what is found only, and never more than 500. So has
`statewarden_incident_info`, never more than {INCIDENTS_LISTED}: the ids in it are those of what is open now, the worst
first. The rest is counted in `statewarden_incidents_unlisted`; `statewarden scan` lists it.

Stable: the name changes only with a major version. Experimental: it may change with any.
"""


def render_metrics_doc() -> str:
    """Render `docs/metrics.md`, as committed."""
    parts = [_HEAD]
    for title, metrics in GROUPS:
        parts.append(f"\n## {title}\n\n{_TABLE}")
        parts.extend(_row(metric) for metric in metrics)
    values = [
        (metric, label, known)
        for _, metrics in GROUPS
        for metric in metrics
        for label, known in metric.initial.items()
    ]
    parts.append("\n## Label values known in advance\n\n| metric | label | values |\n|---|---|---|\n")
    parts.extend(
        f"| `{metric.name}` | `{label}` | {', '.join(f'`{value}`' for value in known)} |\n"
        for metric, label, known in values
    )
    labels = ", ".join(f"`{label}`" for label in sorted(ALLOWED_LABELS))
    parts.append(f"\nNo other labels than these are ever used: {labels}.\n")
    return "".join(parts)


def _row(metric: Metric) -> str:
    labels = ", ".join(f"`{label}`" for label in metric.labels) or "-"
    unit = f" Unit: {metric.unit}." if metric.unit else ""
    return f"| `{metric.name}` | {metric.kind} | {labels} | {metric.stability} | {metric.help}{unit} |\n"
