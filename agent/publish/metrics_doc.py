"""The docs page of the metrics, computed from the catalogue."""

from __future__ import annotations

from agent.detectors import DETECTORS
from agent.publish.catalogue import GROUPS, SERIES_BUDGET, SERIES_BUDGET_BY_STORE
from agent.publish.incident_rows import INCIDENTS_LISTED
from agent.publish.metric import Metric
from agent.publish.series_scope import series_of

_TABLE = "| metric | type | labels | stability | meaning |\n|---|---|---|---|---|\n"
_OWN, _EACH = (sum(x) for x in zip(*(series_of(y.meta) for y in DETECTORS), strict=True))
_SERIES = SERIES_BUDGET + _OWN + _EACH
_HEAD = f"""\
# Metrics

<!-- generated from `agent/publish/families`; change it there -->

The agent serves these on `/metrics`, as Prometheus text or OpenMetrics. Every family is present from the first scrape.
Series with known label values start at 0 if they can become anything else; applications without a task, disabled
detectors and impossible severities have none. At most 100 applications have series, the liveliest first. Counters start
from 0 with the agent. The scrape adds pod, namespace and node.

An agent with 20 tasks of 3 stores gives at most {_SERIES} series; `metrics_detail = "store"` adds
{SERIES_BUDGET_BY_STORE} per store. A task adds 8, an application at most {_EACH + 5}.
`statewarden_task_findings` has at most 500 series and `statewarden_incident_info` at most
{INCIDENTS_LISTED}, the worst first; `statewarden scan` lists the rest.

Stable: the name changes only with a major version. Experimental: it may change with any.
"""


def render_metrics_doc() -> str:
    """Render `docs/metrics.md`, as committed."""
    parts = [_HEAD]
    for title, metrics in GROUPS:
        parts.append(f"\n## {title}\n\n{_TABLE}")
        parts.extend(_row(metric) for metric in metrics)
    values: dict[tuple[str, tuple[str, ...]], list[str]] = {}
    for _, metrics in GROUPS:
        for metric in metrics:
            for label, known in metric.initial.items():
                values.setdefault((label, tuple(known)), []).append(f"`{metric.name}`")
    parts.append("\n## Label values known in advance\n\n| metric | label | values |\n|---|---|---|\n")
    parts.extend(
        f"| {', '.join(names)} | `{label}` | {', '.join(f'`{value}`' for value in known)} |\n"
        for (label, known), names in values.items()
    )
    return "".join(parts)


def _row(metric: Metric) -> str:
    labels = ", ".join(f"`{label}`" for label in metric.labels) or "-"
    unit = f" Unit: {metric.unit}." if metric.unit else ""
    return f"| `{metric.name}` | {metric.kind} | {labels} | {metric.stability} | {metric.help}{unit} |\n"
