"""Render docs/detectors.md and docs/rules.md: all runbooks, by what a finding of each means."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from agent.cli.lookup import is_issue
from agent.contract.events import Level
from agent.detectors import DETECTORS
from agent.judging.base import DetectorMeta
from spark_rollup.judging.base import RuleMeta
from spark_rollup.registry import NAMING

LEVELS = {
    Level.DAMAGE: ("Damage", "The bug fired: state is wrong or missing, or was."),
    Level.EXPOSURE: ("Exposure", "The precondition is on disk; nothing need have been lost."),
    Level.EVENT: ("Events", "Worth a report, and over."),
    Level.SELF: ("About statewarden", "What could not be seen."),
}
"""Level -> heading and what it means, the worst first."""

DETECTORS_HEAD = """# Detectors

What an agent, `scan` or `replay` can report of one pod. Each page is a runbook: what it says, what to do, how to be
sure. `statewarden explain ID` prints it, and takes the name of an alert or the key of an issue, too.

<!-- generated (make docs) -->
"""
RULES_HEAD = """# Rules of the fleet audit

What only several pods together show, or a changelog. Each page is a runbook, which `statewarden explain rules/ID`
prints. [The fleet audit](rollup.md) says how to run it.

<!-- generated (make docs) -->
"""


def render_detectors_list() -> str:
    """Write one table per level, in the detectors' order within a severity."""
    rows = [(x.meta, [issue.key for issue in x.meta.upstream]) for x in DETECTORS]
    return _page(DETECTORS_HEAD, "detectors", rows)


def render_rules_list() -> str:
    """Write the same for rules and for what `verify` proves on Spark."""
    return _page(RULES_HEAD, "rules", [(meta, meta.upstream) for meta in NAMING])


Row = tuple[DetectorMeta | RuleMeta, Sequence[str]]
"""A detector or rule, and what its upstream issues are called."""


def _page(head: str, folder: str, rows: Sequence[Row]) -> str:
    parts = [head]
    for level, (title, what) in LEVELS.items():
        chosen = sorted((x for x in rows if x[0].level is level), key=lambda x: -x[0].severity.rank)
        if chosen:
            parts.append(f"\n## {title}\n\n{what}\n\n{_table(folder, chosen)}")
    return "".join(parts)


def _table(folder: str, rows: Iterable[Row]) -> str:
    lines = [f"| {folder[:-1]} | up to | what it found | issues |", "|---|---|---|---|"]
    for meta, issues in rows:
        keys = ", ".join(filter(is_issue, issues))
        lines.append(
            f"| [{meta.id}]({folder}/{meta.id}.md) | {meta.severity.value} | {meta.title} | {keys} |"
        )
    return "\n".join(lines) + "\n"
