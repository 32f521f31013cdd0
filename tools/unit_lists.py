"""Render the lists of docs/runbooks/README.md: all runbooks, by what a finding of each means."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from agent.cli.lookup import is_issue
from agent.contract.events import Level
from agent.contract.runbooks import address_of
from agent.detectors import DETECTORS
from agent.judging.base import DetectorMeta
from spark_rollup.fleet.meta import RuleMeta
from spark_rollup.registry import NAMING

LEVELS = {
    Level.DAMAGE: ("Damage", "The bug fired: state is wrong or missing, or was."),
    Level.EXPOSURE: ("Exposure", "The precondition is on disk; nothing need have been lost."),
    Level.EVENT: ("Events", "Worth a report, and over."),
    Level.SELF: ("About statewarden", "What could not be seen."),
}
"""Level -> heading and what it means, the worst first."""

Row = tuple[DetectorMeta | RuleMeta, str, Sequence[str]]
"""A detector or rule, the name of its runbook, and what its upstream issues are called."""

_HEADS = (
    ("Detectors", "What an agent, `scan` or `replay` can report of one pod."),
    (
        "Rules of the fleet audit",
        "What only several pods together show, or a changelog. [The fleet audit](../rollup.md) says how to run it.",
    ),
)
MARKER = "<!-- generated from here (make docs) -->"


def render_runbooks_list(page: str) -> str:
    """Write one table per level, in the order of the registries within a severity; what is before the marker stays."""
    detectors: list[Row] = [(x.meta, x.meta.id, [issue.key for issue in x.meta.upstream]) for x in DETECTORS]
    rules: list[Row] = [(meta, f"rules/{meta.id}", meta.upstream) for meta in NAMING]
    parts = [page.partition(MARKER)[0], MARKER, "\n"]
    for (title, what), rows in zip(_HEADS, (detectors, rules), strict=True):
        parts += [f"\n## {title}\n\n{what}\n", *_tables(rows)]
    return "".join(parts)


def _tables(rows: Sequence[Row]) -> Iterator[str]:
    for level, (title, what) in LEVELS.items():
        chosen = sorted((x for x in rows if x[0].level is level), key=lambda x: -x[0].severity.rank)
        if chosen:
            yield f"\n### {title}\n\n{what}\n\n{_table(chosen)}"


def _table(rows: Iterable[Row]) -> str:
    lines = ["| runbook | up to | what it found | issues |", "|---|---|---|---|"]
    for meta, name, issues in rows:
        keys = ", ".join(filter(is_issue, issues))
        address = address_of(name, ".md").removeprefix("runbooks/")
        lines.append(f"| [{name}]({address}) | {meta.severity.value} | {meta.title} | {keys} |")
    return "\n".join(lines) + "\n"
