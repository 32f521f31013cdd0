"""Render the last part of docs/incidents.md, mechanisms and the order of instructions, from detectors and rules."""

from __future__ import annotations

from agent.contract.mechanisms import INSTRUCTIONS_FIRST, Mechanism
from agent.detectors import DETECTORS
from spark_rollup.registry import NAMING, REFUTING

MARKER = "## Mechanisms\n"


def render_incidents_page(page: str) -> str:
    """Keep what people wrote above the marker and write the tables below it again."""
    of_detectors = [(x.meta.id, x.meta.mechanism) for x in DETECTORS]
    declared = {*of_detectors, *((x.id, x.mechanism) for x in (*NAMING, *REFUTING))}
    rows = ["| mechanism | what goes wrong | seen by |", "|---|---|---|"]
    for one in Mechanism:
        seen_by = sorted(id_ for id_, mechanism in declared if mechanism is one)
        rows.append(f"| `{one.slug}` | {one.title} | {', '.join(f'`{id_}`' for id_ in seen_by)} |")
    table = "\n".join(rows)
    first = ", ".join(f"`{id_}`" for id_ in INSTRUCTIONS_FIRST)
    return (
        f"{page.partition(MARKER)[0]}{MARKER}\n{table}\n\nAny other detector or rule is a mechanism by itself."
        f" Instructions that come before all others, in this order: {first}.\n"
    )
