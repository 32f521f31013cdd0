"""Command line: `ingest`, `compact`, `audit`, answers. Arguments are checked before Spark (and its Java) is started."""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from agent.contract.events import Severity
from spark_rollup import __version__
from spark_rollup.config import (
    AuditOptions,
    check_directories,
    check_input,
    is_bronze,
    parse_as_of,
    parse_overrides,
)
from spark_rollup.errors import RollupError, UsageError

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
        return _COMMANDS[parsed.command](parsed)
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
    compact = commands.add_parser(
        "compact", help="join the small files of finished days in a bronze directory"
    )
    compact.add_argument("--bronze", type=Path, required=True, metavar="DIR", help="bronze directory")
    audit = commands.add_parser("audit", help="correlate, write tables, JSON lines and the HTML report")
    _add_input(audit)
    audit.add_argument("--output", type=Path, required=True, metavar="DIR", help="where tables and report go")
    audit.add_argument("--json", action="store_true", help="print one finding per line on stdout")
    audit.add_argument(
        "--textfile",
        type=Path,
        metavar="FILE",
        help="write the metrics there, too (they are always in OUTPUT/metrics.prom)",
    )
    audit.add_argument("--pushgateway", metavar="URL", help="push the metrics there, too")
    audit.add_argument(
        "--fail-on", choices=[level.value for level in Severity], default=Severity.CRITICAL.value,
        help="exit with 1 if an open finding is at least this severe (default: critical)",
    )  # fmt: skip
    safe = commands.add_parser("safe-to-restart", help="may this pod be restarted? without --pod: all pods")
    _add_input(safe)
    safe.add_argument("--pod", help="tell task by task")
    why = commands.add_parser("why", help="one task's story across pods")
    _add_input(why)
    why.add_argument("task", help="task id, for example 0_3")
    why.add_argument("--application", metavar="ID", help="application, where several have this task")
    _add_input(commands.add_parser("coverage", help="which pods and times were watched"))
    return parser


def _add_input(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--input", type=Path, required=True, metavar="DIR", help="segments, or a bronze directory"
    )
    parser.add_argument(
        "--as-of", metavar="ISO8601", help="look no further than this (default: the newest event)"
    )
    parser.add_argument(
        "--set", action="append", default=[], metavar="[ID:]KEY=VALUE", dest="settings",
        help="override what the agents reported, for application ID or for all; may be repeated",
    )  # fmt: skip


def _ingest(parsed: argparse.Namespace) -> int:
    check_directories(parsed.input, parsed.bronze)
    from spark_rollup import ingest, session

    counts = ingest.run(session.build_session(_size_bytes(parsed.input)), parsed.input, parsed.bronze)
    print(
        f"{counts.events} new events, {counts.quarantined} new quarantined lines from {counts.files} new files"
        f" in {parsed.bronze}"
    )
    return 0


def _compact(parsed: argparse.Namespace) -> int:
    if not is_bronze(parsed.bronze):
        raise UsageError(f"{parsed.bronze} is not a bronze directory: `ingest` makes one")
    from spark_rollup import compact, session

    days = compact.run(session.build_session(_size_bytes(parsed.bronze)), parsed.bronze)
    print(f"{days} days compacted in {parsed.bronze}")
    return 0


def _audit(parsed: argparse.Namespace) -> int:
    options = _options(parsed, parsed.output)
    check_directories(options.input, options.output)
    from spark_rollup import audit, session

    outcome = audit.run(session.build_session(_size_bytes(options.input)), options)
    _tell_metrics(outcome, options, parsed)
    lines = [json.dumps(row) for row in outcome.findings] if parsed.json else readable(outcome)
    for line in lines:
        print(line)
    worst = outcome.worst_open()
    return FOUND if worst is not None and worst.rank >= Severity(parsed.fail_on).rank else 0


def _tell_metrics(outcome: Outcome, options: AuditOptions, parsed: argparse.Namespace) -> None:
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
    metrics.write(facts, options.output / metrics.FILE)
    if parsed.textfile:
        metrics.write(facts, parsed.textfile)
    if parsed.pushgateway:
        metrics.push(facts, parsed.pushgateway)


def _safe_to_restart(parsed: argparse.Namespace) -> int:
    options = _options(parsed)
    from spark_rollup import answers, session

    lines, safe = answers.safe_to_restart(
        session.build_session(_size_bytes(options.input)), options, parsed.pod
    )
    _print(lines)
    return 0 if safe else FOUND


def _why(parsed: argparse.Namespace) -> int:
    options = _options(parsed)
    from spark_rollup import answers, session

    spark = session.build_session(_size_bytes(options.input))
    _print(answers.why(spark, options, parsed.task, parsed.application))
    return 0


def _coverage(parsed: argparse.Namespace) -> int:
    options = _options(parsed)
    from spark_rollup import answers, session

    _print(answers.covered(session.build_session(_size_bytes(options.input)), options))
    return 0


def _options(parsed: argparse.Namespace, output: Path | None = None) -> AuditOptions:
    if output is None:
        check_input(parsed.input)
    return AuditOptions(
        input=parsed.input,
        output=output or parsed.input,
        as_of_us=parse_as_of(parsed.as_of) if parsed.as_of else None,
        overrides=parse_overrides(parsed.settings),
    )


_COMMANDS: Mapping[str, Callable[[argparse.Namespace], int]] = {
    "ingest": _ingest,
    "compact": _compact,
    "audit": _audit,
    "safe-to-restart": _safe_to_restart,
    "why": _why,
    "coverage": _coverage,
}


def _print(lines: Sequence[str]) -> None:
    for line in lines:
        print(printable(line))


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
