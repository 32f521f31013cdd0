"""What the command line takes; nothing is decided here."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from agent.contract.events import Severity
from agent.contract.help_page import Parser, Print
from spark_rollup import help_pages
from spark_rollup.config import ALL, ANY
from spark_rollup.report.expected import COMMAND
from spark_rollup.spark.jars import KINDS
from spark_rollup.version import version_text

INPUT = "a directory with segments, or bronze"


def parser() -> argparse.ArgumentParser:
    """Describe every command."""
    program = Parser(
        prog="statewarden-rollup",
        usage="%(prog)s COMMAND [OPTION ...]",
        description=help_pages.ABOUT,
        epilog=help_pages.AFTER,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    program.add_argument(
        "--version", action=Print, const=version_text, help="show version, commit, Spark; then exit"
    )
    program.set_defaults(debug=False)
    commands = program.add_subparsers(
        dest="command", title="commands", metavar="COMMAND", prog="statewarden-rollup"
    )
    for name in help_pages.PAGES:
        _ADD[name](help_pages.PAGES[name].add_to(commands, name))
    return program


def _option(where: argparse._ActionsContainer, named: str, help_: str, **more: Any) -> None:
    """Add `--name METAVAR`, or without a metavar a switch."""
    name, _, metavar = named.partition(" ")
    kind: dict[str, Any] = {"metavar": metavar} if metavar else {"action": "store_true"}
    where.add_argument(name, help=help_, **kind, **more)


def _add_compact(parser: argparse.ArgumentParser) -> None:
    _add_bronze(parser)
    gone = "remove the events of older days, as far as they have snapshots"
    _option(parser, "--retain DAYS", gone, type=int)
    kept = "also write the snapshots of finished days, which audits then read in their place"
    _option(parser, "--snapshots", kept)
    _add_spark(parser)


def _add_why(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("task", metavar="TASK", help="task id, for example 0_3")
    _option(parser, "--application ID", "application, where several have this task")
    _add_coverage(parser)


def _add_coverage(parser: argparse.ArgumentParser) -> None:
    _add_input(parser)
    parser.set_defaults(look_back=ALL)
    _add_namespace(parser)


def _add_safe_to_restart(parser: argparse.ArgumentParser) -> None:
    where = parser.add_mutually_exclusive_group(required=True)
    _option(where, "--input WHERE", INPUT)
    old = "answer from the last audit's --output: at once, without Java; it is as old as that audit"
    _option(where, "--from OUT", old, type=Path, dest="source")
    _option(parser, "--pod POD", "this pod only, task by task")
    _option(
        parser, "--max-age AGE",
        f"the answer is `unknown` if the newest event is older: 90s, 15m, 2h, 1d, or {ANY} (default: 15m)",
        default="15m",
    )  # fmt: skip
    _add_namespace(parser)
    _add_decisive(parser)
    _add_verified(parser, "an output of `verify`: include what it proved and refuted")
    _add_look_back(parser)


def _add_audit(parser: argparse.ArgumentParser) -> None:
    _add_input(parser)
    _add_look_back(parser)
    _add_verified(parser, "an output of `verify`: show what it proved and refuted")
    _option(
        parser, "--expect FILE",
        "the pods that should have an agent: name those that are not heard, and tasks that no pod has. "
        f"Make it by: {COMMAND} > FILE",
        type=Path,
    )  # fmt: skip
    group = parser.add_argument_group("output")
    _option(group, "--output DIR", "where tables and report go", type=Path, required=True)
    _option(group, "--json", "print one finding per line on stdout")
    _option(group, "--verbose", "print remarks, too, and the findings of each incident")
    _option(group, "--top N", "print the N worst incidents (default: all)", type=int, default=0)
    there = "write the metrics there, too (they are always in OUTPUT/metrics.prom)"
    _option(group, "--textfile FILE", there, type=Path)
    _option(group, "--pushgateway URL", "push the metrics there, too")
    _add_fail_on(group, "an open finding")


def _add_fail_on(group: argparse._ArgumentGroup, what: str) -> None:
    names = [level.value for level in Severity]
    said = f"exit with 1 if {what} is at least this severe: {', '.join(names)} (default: critical)"
    _option(group, "--fail-on SEVERITY", said, choices=names, default=Severity.CRITICAL.value)


def _add_ingest(parser: argparse.ArgumentParser) -> None:
    what = "directory with *.jsonl(.gz) segments, s3a://bucket/prefix, or kafka://host:port,host:port/topic"
    _option(parser, "--input WHERE", what, required=True)
    _add_bronze(parser)
    _option(parser, "--cluster NAME", "the cluster (or region) of the events whose agents name none")
    _add_kafka_config(parser)
    when = "again and again until it is stopped: 'processing 60 seconds' (default: availableNow, once)"
    _option(parser, "--trigger WHEN", when)
    again = "ingest again what was ingested already: this file or directory, or everything; nothing is stored twice"
    _option(parser, "--again PATH", again, nargs="?", const="")
    _add_spark(parser)


def _add_kafka_config(parser: argparse.ArgumentParser) -> None:
    _option(parser, "--kafka-config FILE", "settings of Kafka's Java client", type=Path)


def _add_forget(parser: argparse.ArgumentParser) -> None:
    _add_bronze(parser)
    damaged = "a damaged file of bronze, as an error named it; `ingest --again` brings its events back"
    _option(parser, "--file PATH", damaged, action="append", default=[], dest="files")
    _option(parser, "--id ID", "an event; may be repeated", action="append", default=[], dest="ids")
    _option(
        parser, "--pod POD", "all events of a pod; may be repeated", action="append", default=[], dest="pods"
    )
    _option(parser, "--namespace NAME", "with --pod: its namespace, where several have such a pod")
    _option(parser, "--since ISO8601", "with --pod: events from this time on")
    _option(parser, "--until ISO8601", "with --pod: events before this time")
    _add_spark(parser)


def _add_verify(parser: argparse.ArgumentParser) -> None:
    _option(
        parser, "--digests WHERE",
        "what `statewarden digest` wrote (*.jsonl, *.jsonl.gz below a directory or s3a://bucket/prefix), or "
        "bronze, for what agents shipped",
        required=True,
    )  # fmt: skip
    _option(
        parser, "--kafka BROKERS",
        "host:port,host:port of the applications' cluster; without it, copies are only compared with each other",
    )  # fmt: skip
    _add_kafka_config(parser)
    _option(
        parser, "--events WHERE",
        "bronze, or a directory with agents' segments: what agents suspect is proved or refuted (default: "
        "the bronze of --digests)",
    )  # fmt: skip
    group = parser.add_argument_group("output")
    _option(group, "--output DIR", "where tables go", type=Path, required=True)
    _option(group, "--json", "print one finding per line on stdout")
    _add_fail_on(group, "a finding")
    _add_spark(parser)


def _add_jars(parser: argparse.ArgumentParser) -> None:
    kinds = f"{', '.join(KINDS)}: bronze needs delta, s3a:// and kafka:// the others"
    parser.add_argument("source", choices=KINDS, metavar="KIND", help=kinds)
    _option(parser, "--jars DIR", "where to (default: the user's cache directory)", type=Path)
    _option(parser, "--repository URL", "Maven repository (default: what Maven is set up for)")
    _option(parser, "--names", "print the Maven coordinates and fetch nothing")


def _add_warm_up(parser: argparse.ArgumentParser) -> None:
    """Take nothing."""


def _add_bronze(parser: argparse.ArgumentParser) -> None:
    _option(parser, "--bronze WHERE", "bronze: a directory, or s3a://bucket/prefix", required=True)


def _add_spark(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("Spark")
    _option(group, "--endpoint URL", "object store that is not AWS's own")
    _option(group, "--region REGION", "the object store's region")
    _option(group, "--jars DIR", "where jars are (see `jars`)", type=Path)
    _option(
        group, "--spark-conf KEY=VALUE", "a setting of Spark; may be repeated", action="append", default=[]
    )
    _option(group, "--progress", "show Spark's progress on stderr")
    _option(group, "--debug", "show the trace of a failure, and what Spark logs")


def _add_input(parser: argparse.ArgumentParser) -> None:
    _option(parser, "--input WHERE", INPUT, required=True)
    _add_decisive(parser)


def _add_decisive(parser: argparse.ArgumentParser) -> None:
    """Add what decides an answer together with the events."""
    _add_spark(parser)
    parser.set_defaults(verified=None, expect=None)  # not all commands have them
    _option(parser, "--as-of ISO8601", "ignore what is later than this (default: the newest event)")
    overridden = "override what the agents reported, for application ID or for all; may be repeated"
    _option(parser, "--set [ID:]KEY=VALUE", overridden, action="append", default=[], dest="settings")


def decisive(parsed: argparse.Namespace) -> list[str]:
    """Name the options that were given and that decide the outcome of an audit."""
    given = {
        "--as-of": parsed.as_of,
        "--set": parsed.settings,
        "--verified": parsed.verified,
        "--look-back": parsed.look_back is not None,
    }
    return [option for option, value in given.items() if value]


def _add_namespace(parser: argparse.ArgumentParser) -> None:
    _option(parser, "--namespace NAME", "only this namespace, where there are several")


def _add_verified(parser: argparse.ArgumentParser, about: str) -> None:
    _option(parser, "--verified DIR", about, type=Path)


def _add_look_back(parser: argparse.ArgumentParser) -> None:
    _option(
        parser, "--look-back DAYS",
        "leave out what ended more than DAYS days ago (midnight, UTC); default: leave out nothing. "
        f"{ALL}: also read every event of days that have snapshots",
    )  # fmt: skip


_ADD: Mapping[str, Callable[[argparse.ArgumentParser], None]] = {
    "audit": _add_audit,
    "safe-to-restart": _add_safe_to_restart,
    "why": _add_why,
    "coverage": _add_coverage,
    "ingest": _add_ingest,
    "compact": _add_compact,
    "verify": _add_verify,
    "forget": _add_forget,
    "jars": _add_jars,
    "warm-up": _add_warm_up,
}
