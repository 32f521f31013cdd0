"""Render the pages of exit codes, of alerts and of all pages, and parts of pages that people wrote."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path

from agent.cli.help_pages import PAGES as AGENT
from agent.cli.lookup import of_alert
from agent.contract import buckets
from agent.contract.exit_codes import Exit, codes_of
from agent.contract.help_page import HelpPage
from agent.contract.mechanisms import INSTRUCTIONS_FIRST, Mechanism
from agent.contract.reporting import ACCEPTS
from agent.contract.runbooks import address_of
from agent.detectors import DETECTORS
from agent.inventory.settings import KEYS
from spark_rollup.help_pages import PAGES as ROLLUP
from spark_rollup.registry import NAMING, REFUTING
from spark_rollup.report.metrics import CATALOGUE, FILE
from tools.alerts.files import groups
from tools.alerts.model import Alert, fill

_CODES = """\
# Exit codes

<!-- generated from `agent/contract/exit_codes.py` and the help of each command by `make docs`; do not edit -->

One table for every command of `statewarden` and `statewarden-rollup`. A [gate](kubernetes.md#a-gate-before-the-start)
opens on 0 only. A finding counts even where something else could not be read: 1 goes before 3.

"""

_METRICS = f"""
## The fleet audit

Every successful `statewarden-rollup audit` leaves these in `OUTPUT/{FILE}` for a textfile collector, and with
`--pushgateway URL` pushes them as job `statewarden-rollup`. All are gauges. `audited_namespace` is the namespace of the
audited pods; `namespace` and `pod` of the scrape are those of the job.

"""


def render_exit_codes_page() -> str:
    """Render one table of exit codes, and what each command says with them."""
    codes = [*((str(code.value), code.meaning) for code in Exit), ("130, 143", "Ctrl-C, SIGTERM")]
    commands = _commands("statewarden", AGENT) + _commands("statewarden-rollup", ROLLUP)
    return _CODES + _table(("code", "says"), codes) + commands


def _commands(program: str, pages: Mapping[str, HelpPage]) -> str:
    own = (Exit.CLEAR, Exit.FOUND, Exit.UNREAD)
    alike: dict[tuple[str, ...], list[str]] = {}
    for name, page in pages.items():
        alike.setdefault(tuple(codes_of(page.codes).get(x, "") for x in own), []).append(f"`{name}`")
    rows = [(", ".join(names), *codes) for codes, names in alike.items()]
    head = f"\n## {program}\n\n"
    return head + _table(("command", "0", "1", "3"), rows)


def render_rollup_metrics() -> str:
    """Render what docs/metrics.md says of the rollup's metrics."""
    rows = [
        (
            f"`{metric.name}`",
            ", ".join(f"`{label}`" for label in metric.labels) or "-",
            metric.stability,
            f"{metric.help}{f' Unit: {metric.unit}.' if metric.unit else ''}",
        )
        for metric in CATALOGUE
    ]
    return _METRICS + _table(("metric", "labels", "stability", "meaning"), rows)


def render_facts_page(page: str) -> str:
    """Render the last part of docs/configuration.md: which verdicts each setting decides."""
    rows = []
    for key in KEYS:
        units = [
            *(
                f"[{x.meta.id}]({address_of(x.meta.id, '.md')})"
                for x in DETECTORS
                if key.name in x.meta.needs
            ),
            *(f"[rules/{x.id}]({address_of(f'rules/{x.id}', '.md')})" for x in NAMING if key.name in x.needs),
        ]
        if key.name == ACCEPTS:
            units = ["none: it raises no alert about what is accepted"]
        rows.append((f"`{key.name}`", f"`{key.kafka_name}`", ", ".join(units) or "none asks for it"))
    return _below(
        page, "## What each setting decides", _table(("`--set`", "in Kafka", "decides verdicts of"), rows)
    )


def render_incidents_page(page: str) -> str:
    """Render the last part of docs/incidents.md: mechanisms and the order of instructions."""
    of_detectors = [(x.meta.id, x.meta.mechanism) for x in DETECTORS]
    declared = {*of_detectors, *((x.id, x.mechanism) for x in (*NAMING, *REFUTING))}
    rows = []
    for one in Mechanism:
        seen_by = sorted(id_ for id_, mechanism in declared if mechanism is one)
        rows.append((f"`{one.slug}`", one.title, ", ".join(f"`{id_}`" for id_ in seen_by)))
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


ROOT = Path(__file__).resolve().parent.parent
NAVIGATION = ROOT / "tools/site/navigation.toml"
INDEX = "docs/README.md"

_INDEX = """# Documentation

Every page, by what you came for.

<!-- generated from tools/site/navigation.toml (make docs) -->
"""


def render_index_page() -> str:
    """Write one section per reader, one line per page.

    Raises:
        ValueError: a page that is listed is not there, or has no heading.
    """
    groups = tomllib.loads(NAVIGATION.read_text("utf-8"))["group"]
    sections = [
        f"\n## {group['title']}\n\n{group['intro']}\n\n"
        + "".join(_page_line(*page) for page in group["pages"])
        for group in groups
    ]
    return _INDEX + "".join(sections)


def _page_line(path: str, when: str, title: str = "") -> str:
    if not (ROOT / path).is_file():
        raise ValueError(f"{NAVIGATION.relative_to(ROOT)} lists {path}, and there is no such page")
    target = os.path.relpath(path, Path(INDEX).parent)
    return f"- [{title or heading(ROOT / path)}]({target}): {when}\n"


def heading(page: Path) -> str:
    """Return the first heading of a page.

    Raises:
        ValueError: it has none.
    """
    for line in page.read_text("utf-8").splitlines():
        if line.startswith("# "):
            return line.removeprefix("# ").strip()
    raise ValueError(f"{page}: no heading, so there is no title for the index of pages")


_WORDS_OF_ALERTS = {
    "<application>": "APPLICATION",
    "<audited>": "NAMESPACE",
    "<pod>": "NAMESPACE/POD",
    "<task>": "TASK",
    "<count>": "N",
    "<detector>": "DETECTOR",
}
"""Placeholder of a description -> its word on the page."""

_ALERTS = """# Alerts about the watchers

These alerts are about agents, the fleet audit and alerting itself: no data is at risk, but something is not watched.
`statewarden explain ALERT` prints a section. Other alerts have the name, and the runbook, of their detector or rule.

<!-- generated (make docs) -->
"""


def render_alerts_page() -> str:
    """Write one section per alert."""
    units = {f"detectors/{x.meta.id}" for x in DETECTORS} | {f"rules/{x.id}" for x in NAMING}
    alerts = (alert for _, group in groups() for alert in group)
    return _ALERTS + "".join(_alert_section(alert) for alert in alerts if of_alert(alert.name) not in units)


def _alert_section(alert: Alert) -> str:
    meaning, _, steps = fill(alert.description, _WORDS_OF_ALERTS).partition(" Next: ")
    lasts = f", after {alert.for_m} {'minute' if alert.for_m == 1 else 'minutes'}" if alert.for_m else ""
    todo = f"Next: {steps}\n\n" if steps else ""
    return (
        f"\n## {alert.name}\n\n{alert.summary} (severity {alert.severity}{lasts}).\n\n{meaning}\n\n{todo}"
        f"More: [{alert.runbook.partition('/')[2]}]({address_of(alert.runbook, '.md')})\n"
    )
