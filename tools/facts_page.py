"""Render the last part of docs/configuration.md, which verdicts each setting decides, from detectors and rules."""

from __future__ import annotations

from agent.contract.reporting import ACCEPTS
from agent.contract.runbooks import address_of
from agent.detectors import DETECTORS
from agent.inventory.settings import KEYS
from spark_rollup.registry import NAMING

MARKER = "## What each setting decides\n"


def render_facts_page(page: str) -> str:
    """Keep what people wrote above the marker and write the table below it again."""
    rows = ["| `--set` | in Kafka | decides verdicts of |", "|---|---|---|"]
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
        rows.append(f"| `{key.name}` | `{key.kafka_name}` | {', '.join(units) or 'none asks for it'} |")
    table = "\n".join(rows)
    return f"{page.partition(MARKER)[0]}{MARKER}\n{table}\n"
