"""Command line: `ingest` and `audit`. Arguments are checked before Spark (and its Java) is started."""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from agent.contract.events import Severity
from spark_rollup import __version__
from spark_rollup.config import AuditOptions, check_directories, parse_as_of, parse_overrides
from spark_rollup.errors import RollupError

if TYPE_CHECKING:
    from spark_rollup.report import Outcome

FOUND, WRONG_USE = 1, 2


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line.

    Args:
        arguments: Without the program's name; None = those of the process.

    Returns:
        Exit code: 0 nothing at or above `--fail-on`, 1 something, 2 wrong use or unreadable input.
    """
    parsed = _parser().parse_args(arguments)
    try:
        return _ingest(parsed) if parsed.command == "ingest" else _audit(parsed)
    except RollupError as error:
        print(f"statewarden-rollup: {error}", file=sys.stderr)
        return WRONG_USE


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="statewarden-rollup",
        description="Correlate what statewarden agents shipped: which state of the fleet can no longer be trusted.",
    )
    parser.add_argument("--version", action="version", version=f"statewarden-rollup {__version__}")
    commands = parser.add_subparsers(dest="command", required=True)
    ingest = commands.add_parser("ingest", help="add agents' segments to a bronze directory (Parquet by day)")
    ingest.add_argument(
        "--input", type=Path, required=True, metavar="DIR", help="directory with *.jsonl(.gz) segments"
    )
    ingest.add_argument(
        "--bronze", type=Path, required=True, metavar="DIR", help="bronze directory to add to"
    )
    audit = commands.add_parser("audit", help="correlate, write tables, JSON lines and the HTML report")
    audit.add_argument(
        "--input", type=Path, required=True, metavar="DIR", help="segments, or a bronze directory"
    )
    audit.add_argument("--output", type=Path, required=True, metavar="DIR", help="where tables and report go")
    audit.add_argument(
        "--as-of", metavar="ISO8601", help="look no further than this (default: the newest event)"
    )
    audit.add_argument(
        "--set", action="append", default=[], metavar="[ID:]KEY=VALUE", dest="settings",
        help="override what the agents reported, for application ID or for all; may be repeated",
    )  # fmt: skip
    audit.add_argument(
        "--pushgateway",
        metavar="URL",
        help="push the metrics there too (they are always in OUTPUT/metrics.prom)",
    )
    audit.add_argument("--json", action="store_true", help="print one finding per line on stdout")
    audit.add_argument(
        "--fail-on", choices=[level.value for level in Severity], default=Severity.CRITICAL.value,
        help="exit with 1 if an open finding is at least this severe (default: critical)",
    )  # fmt: skip
    return parser


def _ingest(parsed: argparse.Namespace) -> int:
    check_directories(parsed.input, parsed.bronze)
    from spark_rollup import ingest, session

    counts = ingest.run(session.build_session(_size_bytes(parsed.input)), parsed.input, parsed.bronze)
    print(f"{counts.events} new events, {counts.quarantined} new quarantined lines in {parsed.bronze}")
    return 0


def _audit(parsed: argparse.Namespace) -> int:
    options = AuditOptions(
        input=parsed.input,
        output=parsed.output,
        as_of_us=parse_as_of(parsed.as_of) if parsed.as_of else None,
        overrides=parse_overrides(parsed.settings),
    )
    check_directories(options.input, options.output)
    from spark_rollup import audit, session

    outcome = audit.run(session.build_session(_size_bytes(options.input)), options)
    _tell_metrics(outcome, options, parsed.pushgateway)
    lines = [json.dumps(row) for row in outcome.findings] if parsed.json else readable(outcome)
    for line in lines:
        print(line)
    worst = outcome.worst_open()
    return FOUND if worst is not None and worst.rank >= Severity(parsed.fail_on).rank else 0


def _tell_metrics(outcome: Outcome, options: AuditOptions, pushgateway: str | None) -> None:
    from spark_rollup import metrics
    from spark_rollup.correlate.registry import RULES

    facts = metrics.Facts(
        findings=outcome.findings,
        coverage=outcome.coverage,
        rules=[rule.meta.id for rule in RULES],
        as_of_us=outcome.as_of_us,
        finished_us=time.time_ns() // 1000,
        quarantined=outcome.quarantined,
    )
    metrics.write(facts, options.output)
    if pushgateway:
        metrics.push(facts, pushgateway)


def readable(outcome: Outcome) -> list[str]:
    """Lay findings out as a short table for people."""
    lines = [f"audited up to {outcome.as_of}; report: {outcome.page}"]
    if outcome.quarantined:
        lines.append(f"{outcome.quarantined} lines or files could not be used: see the table `quarantine`")
    if not outcome.findings:
        lines.append("no findings")
    for row in outcome.findings:
        head = f"{row['severity']!s:<8} {row['confidence']!s:<9} {row['detector']!s:<22} "
        where = " ".join(str(row[key]) for key in ("application_id", "task_id", "pod") if row[key])
        state = "" if row["status"] == "open" else f" [{row['status']}]"
        lines += [printable(f"{head}{where}{state}"), printable(f"         {row['summary']}")]
        if row["severity"] != Severity.INFO.value:
            lines.append(printable(f"         -> {row['next_action']}"))
    return lines


def printable(text: str) -> str:
    """Make a line safe for a terminal: names on disk may hold control characters."""
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in text)


def _size_bytes(source: Path) -> int:
    return sum(path.stat().st_size for path in source.rglob("*") if path.is_file())
