"""Render the pages of exit codes and of alerts, and parts of pages that people wrote."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from agent.cli.help_pages import PAGES as AGENT
from agent.cli.page_text import of_alert
from agent.contract import buckets
from agent.contract.exit_codes import Exit, codes_of
from agent.contract.help_page import HelpPage
from agent.contract.mechanisms import INSTRUCTIONS_FIRST, Mechanism
from agent.contract.reporting import ACCEPTS
from agent.contract.runbooks import address_of
from agent.detectors import DETECTORS
from agent.inventory.settings import KEYS
from agent.judging.base import DetectorMeta, Scope
from agent.publish.catalogue import GROUPS
from agent.publish.exposition import severities, stays
from agent.publish.metric import Metric
from agent.publish.rows import INCIDENTS_LISTED
from spark_rollup.help_pages import PAGES as ROLLUP
from spark_rollup.registry import NAMING, REFUTING
from spark_rollup.report.metrics import CATALOGUE, FILE
from spark_rollup.report.metrics import Metric as RollupMetric
from tools.alerts.files import groups
from tools.alerts.model import Alert, fill

_CODES = "| code | says |\n"
SERIES_BUDGET = 290
"""Series of one agent with 20 tasks of 3 stores of one application, without those of detectors and of single stores."""
SERIES_BUDGET_BY_STORE = 4  # series more per store where they are


def series_of(meta: DetectorMeta) -> tuple[int, int]:
    """Count a detector's series: its own, and those once per application that it judges."""
    by_severity = len(severities(meta)) * (1 + stays(meta))
    return (3 + by_severity, 0) if meta.scope is Scope.AGENT else (3, by_severity)


_OWN, _EACH = (sum(x) for x in zip(*(series_of(y.meta) for y in DETECTORS), strict=True))
_SERIES = SERIES_BUDGET + _OWN + _EACH
_METRICS_HEAD = f"""\
# Metrics

<!-- generated from `agent/publish/catalogue.py`; change it there -->

The agent serves these on `/metrics`, as Prometheus text or OpenMetrics. Every family is there from the first scrape.
Series with known label values start at 0; applications without a task and disabled detectors have none. At most 100
applications have series, the liveliest first. Counters start from 0 with the agent. The scrape adds pod, namespace and
node. The unit is the end of the name; `..._total` is a counter, `..._info` an info, everything else a gauge.

An agent with 20 tasks of 3 stores gives at most {_SERIES} series; `metrics_detail = "store"` adds
{SERIES_BUDGET_BY_STORE} per store. A task adds 8, an application at most {_EACH + 5}.
`statewarden_task_findings` has at most 500 series and `statewarden_incident_info` at most
{INCIDENTS_LISTED}, the worst first; `statewarden scan` lists the rest.

A name changes only with a major version, an experimental one with any.
"""

_METRICS = f"""
## The fleet audit

Every successful `statewarden-rollup audit` leaves these in `OUTPUT/{FILE}` for a textfile collector, and with
`--pushgateway URL` pushes them as job `statewarden-rollup`. All are gauges. `audited_namespace` is the namespace of the
audited pods; `namespace` and `pod` of the scrape are those of the job.

"""


def render_exit_codes_page(page: str) -> str:
    """Render one table of exit codes, and what each command says with them; what is before them is kept."""
    codes = [*((str(code.value), code.meaning) for code in Exit), ("130, 143", "Ctrl-C, SIGTERM")]
    commands = _commands("statewarden", AGENT) + _commands("statewarden-rollup", ROLLUP)
    return f"{page.partition(_CODES)[0]}{_table(('code', 'says'), codes)}{commands}"


def _commands(program: str, pages: Mapping[str, HelpPage]) -> str:
    own = (Exit.CLEAR, Exit.FOUND, Exit.UNREAD)
    alike: dict[tuple[str, ...], list[str]] = {}
    for name, page in pages.items():
        alike.setdefault(tuple(codes_of(page.codes).get(x, "") for x in own), []).append(f"`{name}`")
    rows = [(", ".join(names), *codes) for codes, names in alike.items()]
    head = f"\n## {program}\n\n"
    return head + _table(("command", "0", "1", "3"), rows)


def render_metrics_page() -> str:
    """Render `docs/metrics.md`: the agent's families by group, then the audit's."""
    parts = [_METRICS_HEAD]
    heads = ("metric", "labels", "meaning")
    values: dict[tuple[str, tuple[str, ...]], list[str]] = {}
    for title, metrics in GROUPS:
        parts.append(f"\n## {title}\n\n{_table(heads, map(_metric, metrics))}")
        for metric in metrics:
            for label, known in metric.initial.items():
                values.setdefault((label, tuple(known)), []).append(f"`{metric.name}`")
    known_rows = [
        (", ".join(x), f"`{label}`", f"`{'`, `'.join(known)}`") for (label, known), x in values.items()
    ]
    parts.append(f"\n## Label values known in advance\n\n{_table(('metric', 'label', 'values'), known_rows)}")
    parts.append(_METRICS + _table(heads, map(_metric, CATALOGUE)))
    return "".join(parts)


def _metric(metric: Metric | RollupMetric) -> tuple[str, ...]:
    labels = ", ".join(f"`{label}`" for label in metric.labels)
    more = "" if metric.stability == "stable" else " Experimental."
    return f"`{metric.name}`", labels, f"{metric.help}{more}"


def render_facts_page(page: str) -> str:
    """Render the last part of docs/configuration.md: which verdicts each setting decides."""
    rows = []
    for key in KEYS:
        names = [x.meta.id for x in DETECTORS if key.name in x.meta.needs]
        names += [f"rules/{x.id}" for x in NAMING if key.name in x.needs]
        units = [f"[{x}]({address_of(x, '.md')})" for x in names]
        if key.name == ACCEPTS:
            units = ["none: it raises no alert about what is accepted"]
        rows.append((f"`{key.name}`", f"`{key.kafka_name}`", ", ".join(units) or "none asks for it"))
    table = _table(("`--set`", "in Kafka", "decides verdicts of"), rows)
    return _below(page, "## What each setting decides", table)


def render_incidents_page(page: str) -> str:
    """Render the last part of docs/incidents.md: mechanisms and the order of instructions."""
    of_detectors = [(x.meta.id, x.meta.mechanism) for x in DETECTORS]
    declared = {*of_detectors, *((x.id, x.mechanism) for x in (*NAMING, *REFUTING))}
    rows = []
    for one in Mechanism:
        seen_by = sorted(id_ for id_, mechanism in declared if mechanism is one)
        names = ", ".join(f"`{id_}`" for id_ in seen_by) or "some findings of other detectors"
        rows.append((f"`{one.slug}`", one.title, names))
    first = ", ".join(f"`{id_}`" for id_ in INSTRUCTIONS_FIRST)
    last = (
        "\nAny other detector or rule is a mechanism by itself. Instructions that come before all others, in this "
        f"order: {first}.\n"
    )
    return _below(page, "## Mechanisms", _table(("mechanism", "what goes wrong", "seen by"), rows) + last)


def render_digest_page(page: str) -> str:
    """Render the last part of docs/digests.md: what a digest is made of."""
    return _below(page, "## The event", (buckets.__doc__ or "").strip().partition("\n\n")[2] + "\n")


def _below(page: str, heading: str, text: str) -> str:
    """Keep what people wrote above a heading, and write again what is below it."""
    marker = f"{heading}\n"
    return f"{page.partition(marker)[0]}{marker}\n{text}"


def _table(heads: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    head = list(heads)
    lines = [f"| {' | '.join(head)} |", f"|{'---|' * len(head)}", *(f"| {' | '.join(row)} |" for row in rows)]
    return "\n".join(lines) + "\n"


_WORDS_OF_ALERTS = {"<application>": "APPLICATION", "<pod>": "NAMESPACE/POD", "<count>": "N"}
"""Placeholder of a description -> its word on the page."""


def render_alerts_page(page: str) -> str:
    """Write one section per alert; what is before the first is written by hand."""
    units = {f"detectors/{x.meta.id}" for x in DETECTORS} | {f"rules/{x.id}" for x in NAMING}
    alerts = [alert for _, group in groups() for alert in group if of_alert(alert.name) not in units]
    head = page.partition("\n## ")[0].rstrip()
    return f"{head}\n{''.join(map(_alert_section, alerts))}"


def _alert_section(alert: Alert) -> str:
    meaning, _, steps = fill(alert.description, _WORDS_OF_ALERTS).partition(" Next: ")
    meaning = meaning.removeprefix("The agent on pod NAMESPACE/POD: ")
    lasts = f", after {alert.for_m} {'minute' if alert.for_m == 1 else 'minutes'}" if alert.for_m else ""
    todo = f"Next: {steps}\n\n" if steps else ""
    return (
        f"\n## {alert.name}\n\n{alert.summary} ({alert.severity}{lasts}). {meaning[0].upper()}{meaning[1:]}\n\n{todo}"
        f"More: [{alert.runbook.removeprefix('detectors/')}]({address_of(alert.runbook, '.md')})\n"
    )
