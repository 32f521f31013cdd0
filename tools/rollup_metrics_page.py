"""Render what `docs/metrics.md` says of the rollup's metrics."""

from __future__ import annotations

from spark_rollup.report.metrics import CATALOGUE, FILE

_HEAD = f"""
## The fleet audit

Every successful `statewarden-rollup audit` leaves these in `OUTPUT/{FILE}` for a textfile collector, and with
`--pushgateway URL` pushes them as job `statewarden-rollup`. All are gauges. `audited_namespace` is the namespace of the
audited pods; `namespace` and `pod` of the scrape are those of the job.

| metric | labels | stability | meaning |
|---|---|---|---|
"""


def render_rollup_metrics() -> str:
    """Render the section."""
    rows = [
        f"| `{metric.name}` | {', '.join(f'`{label}`' for label in metric.labels) or '-'} | {metric.stability} "
        f"| {metric.help}{f' Unit: {metric.unit}.' if metric.unit else ''} |\n"
        for metric in CATALOGUE
    ]
    return _HEAD + "".join(rows)
