"""What the command line takes; nothing is decided here."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping
from pathlib import Path

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


def _add_compact(parser: argparse.ArgumentParser) -> None:
    _add_bronze(parser)
    parser.add_argument(
        "--retain", type=int, metavar="DAYS",
        help="remove the events of older days, as far as they have snapshots",
    )  # fmt: skip
    parser.add_argument(
        "--snapshots",
        action="store_true",
        help="also write the snapshots of finished days, which audits then read in their place",
    )
    _add_spark(parser)


def _add_why(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("task", metavar="TASK", help="task id, for example 0_3")
    parser.add_argument("--application", metavar="ID", help="application, where several have this task")
    _add_coverage(parser)


def _add_coverage(parser: argparse.ArgumentParser) -> None:
    _add_input(parser)
    parser.set_defaults(look_back=ALL)
    _add_namespace(parser)


def _add_safe_to_restart(parser: argparse.ArgumentParser) -> None:
    where = parser.add_mutually_exclusive_group(required=True)
    where.add_argument("--input", metavar="WHERE", help=INPUT)
    where.add_argument(
        "--from", type=Path, metavar="OUT", dest="source",
        help="answer from the last audit's --output: at once, without Java; it is as old as that audit",
    )  # fmt: skip
    parser.add_argument("--pod", metavar="POD", help="this pod only, task by task")
    parser.add_argument(
        "--max-age", metavar="AGE", default="15m",
        help=f"the answer is `unknown` if the newest event is older: 90s, 15m, 2h, 1d, or {ANY} (default: 15m)",
    )  # fmt: skip
    _add_namespace(parser)
    _add_decisive(parser)
    _add_verified(parser, "an output of `verify`: include what it proved and refuted")
    _add_look_back(parser)


def _add_audit(parser: argparse.ArgumentParser) -> None:
    _add_input(parser)
    _add_look_back(parser)
    _add_verified(parser, "an output of `verify`: show what it proved and refuted")
    parser.add_argument(
        "--expect", type=Path, metavar="FILE",
        help="the pods that should have an agent; which of them are not heard, and which tasks no pod has, is said "
        f"beside the verdict. Made by: {COMMAND} > FILE",
    )  # fmt: skip
    group = parser.add_argument_group("output")
    group.add_argument("--output", type=Path, required=True, metavar="DIR", help="where tables and report go")
    group.add_argument("--json", action="store_true", help="print one finding per line on stdout")
    group.add_argument(
        "--verbose", action="store_true", help="print remarks, too, and the findings of each incident"
    )
    group.add_argument(
        "--top", type=int, default=0, metavar="N", help="print the N worst incidents (default: all)"
    )
    group.add_argument(
        "--textfile",
        type=Path,
        metavar="FILE",
        help="write the metrics there, too (they are always in OUTPUT/metrics.prom)",
    )
    group.add_argument("--pushgateway", metavar="URL", help="push the metrics there, too")
    _add_fail_on(group, "an open finding")


def _add_fail_on(group: argparse._ArgumentGroup, what: str) -> None:
    names = [level.value for level in Severity]
    group.add_argument(
        "--fail-on", choices=names, metavar="SEVERITY", default=Severity.CRITICAL.value,
        help=f"exit with 1 if {what} is at least this severe: {', '.join(names)} (default: critical)",
    )  # fmt: skip


def _add_ingest(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--input", required=True, metavar="WHERE",
        help="directory with *.jsonl(.gz) segments, s3a://bucket/prefix, or kafka://host:port,host:port/topic",
    )  # fmt: skip
    _add_bronze(parser)
    parser.add_argument(
        "--cluster", metavar="NAME", help="the cluster (or region) of the events whose agents name none"
    )
    parser.add_argument("--kafka-config", type=Path, metavar="FILE", help="settings of Kafka's Java client")
    parser.add_argument(
        "--trigger",
        metavar="WHEN",
        help="again and again until it is stopped: 'processing 60 seconds' (default: availableNow, once)",
    )
    parser.add_argument(
        "--again", nargs="?", const="", metavar="PATH",
        help="ingest again what was ingested already: this file or directory, or everything; nothing is stored twice",
    )  # fmt: skip
    _add_spark(parser)


def _add_forget(parser: argparse.ArgumentParser) -> None:
    _add_bronze(parser)
    parser.add_argument(
        "--file", action="append", default=[], dest="files", metavar="PATH",
        help="a damaged file of bronze, as an error named it; `ingest --again` brings its events back",
    )  # fmt: skip
    parser.add_argument(
        "--id", action="append", default=[], dest="ids", metavar="ID", help="an event; may be repeated"
    )
    parser.add_argument(
        "--pod",
        action="append",
        default=[],
        dest="pods",
        metavar="POD",
        help="all events of a pod; may be repeated",
    )
    parser.add_argument(
        "--namespace", metavar="NAME", help="of these pods: where several namespaces have one"
    )
    parser.add_argument("--since", metavar="ISO8601", help="of these pods: from this time on")
    parser.add_argument("--until", metavar="ISO8601", help="of these pods: before this time")
    _add_spark(parser)


def _add_verify(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--digests", required=True, metavar="WHERE",
        help="what `statewarden digest` wrote (*.jsonl, *.jsonl.gz below a directory or s3a://bucket/prefix), or "
        "bronze, for what agents shipped",
    )  # fmt: skip
    parser.add_argument(
        "--kafka", metavar="BROKERS",
        help="host:port,host:port of the applications' cluster; without it, copies are only compared with each other",
    )  # fmt: skip
    parser.add_argument("--kafka-config", type=Path, metavar="FILE", help="settings of Kafka's Java client")
    parser.add_argument(
        "--events", metavar="WHERE",
        help="bronze, or a directory with agents' segments: what agents suspect is proved or refuted (default: "
        "the bronze of --digests)",
    )  # fmt: skip
    parser.add_argument(
        "--keep", type=Path, metavar="DIR",
        help="where what changelogs said is kept: a copy that is still at its offset is compared without reading again",
    )  # fmt: skip
    group = parser.add_argument_group("output")
    group.add_argument("--output", type=Path, required=True, metavar="DIR", help="where tables go")
    group.add_argument("--json", action="store_true", help="print one finding per line on stdout")
    _add_fail_on(group, "a finding")
    _add_spark(parser)


def _add_jars(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "source",
        choices=KINDS,
        metavar="KIND",
        help=f"{', '.join(KINDS)}: bronze needs delta, s3a:// and kafka:// the others",
    )
    parser.add_argument(
        "--jars", type=Path, metavar="DIR", help="where to (default: the user's cache directory)"
    )
    parser.add_argument(
        "--repository", metavar="URL", help="Maven repository (default: what Maven is set up for)"
    )
    parser.add_argument("--names", action="store_true", help="print the Maven coordinates and fetch nothing")


def _add_warm_up(parser: argparse.ArgumentParser) -> None:
    """Take nothing."""


def _add_bronze(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--bronze", required=True, metavar="WHERE", help="bronze: a directory, or s3a://bucket/prefix"
    )


def _add_spark(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("Spark")
    group.add_argument("--endpoint", metavar="URL", help="object store that is not AWS's own")
    group.add_argument("--region", metavar="REGION", help="the object store's region")
    group.add_argument("--jars", type=Path, metavar="DIR", help="where jars are (see `jars`)")
    group.add_argument(
        "--spark-conf",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="a setting of Spark; may be repeated",
    )
    group.add_argument("--progress", action="store_true", help="show Spark's progress on stderr")
    group.add_argument(
        "--debug", action="store_true", help="show the trace of a failure, and what Spark logs"
    )


def _add_input(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--input", required=True, metavar="WHERE", help=INPUT)
    _add_decisive(parser)


def _add_decisive(parser: argparse.ArgumentParser) -> None:
    """Add what decides an answer together with the events."""
    _add_spark(parser)
    parser.set_defaults(verified=None, expect=None)  # not all commands have them
    parser.add_argument(
        "--as-of", metavar="ISO8601", help="ignore what is later than this (default: the newest event)"
    )
    parser.add_argument(
        "--set", action="append", default=[], metavar="[ID:]KEY=VALUE", dest="settings",
        help="override what the agents reported, for application ID or for all; may be repeated",
    )  # fmt: skip


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
    parser.add_argument("--namespace", metavar="NAME", help="only this namespace, where there are several")


def _add_verified(parser: argparse.ArgumentParser, about: str) -> None:
    parser.add_argument("--verified", type=Path, metavar="DIR", help=about)


def _add_look_back(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--look-back", metavar="DAYS",
        help="leave out what ended before (midnight UTC, so many days before today); default: nothing is left out. "
        f"{ALL}: also read every event of finished days, though `compact --snapshots` made snapshots of them",
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
