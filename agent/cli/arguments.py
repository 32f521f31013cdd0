"""The options of each command that `main` starts; nothing is decided here."""

from __future__ import annotations

import argparse
import os
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from agent.config import Config

_SETTINGS = """\
These settings are not on disk. Guarantee, release, standbys and transactional
stores are never guessed: a verdict that needs one you did not give is
`undecided`. All others fall back to Kafka's default; findings that rely on a
default never go above `suspected`."""

# tables of options
# fmt: off


def add_settings(parser: argparse.ArgumentParser) -> None:
    """Add what every command takes that judges or shows settings."""
    group = parser.add_argument_group("settings", _SETTINGS)
    group.add_argument("--set", action="append", default=[], dest="sets", metavar="[APP:]KEY=VALUE",
                       help="a setting of all applications, or of APP: processing_guarantee, kafka_streams_version,"
                       " num_standby_replicas, ...; may be repeated")
    group.add_argument(
        "--properties",
        metavar="FILE",
        help="the application's own .properties file; --set and --config override it",
    )
    group.add_argument("--config", type=Path, metavar="FILE.toml",
                       help='all settings: [agent], [application], [application."ID"], [detectors], ...')
    group.add_argument("--disable-detector", action="append", dest="disabled", type=_reasoned, metavar="ID=REASON",
                       help="disable this detector; every output says so; may be repeated")


def full_path(path: str | Path) -> str:
    """Write a path as it means the same in any directory; links that go round in a circle stay as they are."""
    return os.path.realpath(path)  # `Path.resolve` fails on them


def same_settings(chosen: argparse.Namespace) -> list[str]:
    """Give the settings of a command line as words that mean the same in any directory."""
    words = [x for setting in chosen.sets for x in ("--set", setting)]
    words += ["--properties", full_path(chosen.properties)] if chosen.properties else []
    return [*words, "--config", full_path(chosen.config)] if chosen.config else words


def config_of(chosen: argparse.Namespace, flags: dict[str, object] | None = None) -> Config:
    """Join the settings of one command line."""
    from agent.config import load_config
    from agent.detectors import ACCEPTABLE, BY_ID

    return load_config(
        file=chosen.config,
        sets=chosen.sets,
        flags={**(flags or {}), "detectors.disabled": chosen.disabled, "properties": chosen.properties},
        environment=os.environ,
        detectors=BY_ID,
        acceptable=ACCEPTABLE,
    )


def add_output(parser: argparse.ArgumentParser) -> None:
    """Add how findings are printed, and which of them make the exit code 1."""
    group = parser.add_argument_group("output")
    group.add_argument("--json", action="store_true", help="one JSON line per finding and incident, then a summary")
    group.add_argument("--fail-on", choices=("info", "warning", "critical"), default="critical", metavar="SEVERITY",
                       help="exit 1 if an open finding is at least this severe: info, warning, critical (default)")
    group.add_argument("--verbose", action="store_true", help="also print remarks, and every finding with its evidence")
    group.add_argument("--top", type=_positive, default=0, metavar="N",
                       help="print only the N worst incidents; the total is always printed")


def place(text: str) -> Path:
    """Read the name of a directory or file that must be given."""
    if not text:
        raise argparse.ArgumentTypeError("the name is empty: is a variable not set?")
    try:
        Path.cwd()
    except FileNotFoundError:
        if not Path(text).is_absolute():
            raise argparse.ArgumentTypeError(
                "the current directory was removed: give an absolute path"
            ) from None
    return Path(text)


def _reasoned(text: str) -> str:
    if text and "=" not in text:
        raise argparse.ArgumentTypeError(f"{text}: expected ID=REASON")
    return text


def _positive(text: str) -> int:
    if not text.isascii() or not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r}: must be 1 or more")
    return int(text)


def add_selection(parser: argparse.ArgumentParser) -> None:
    """Add what narrows a command down to some stores."""
    parser.add_argument("--application", metavar="ID", help="only this application.id")
    parser.add_argument("--task", metavar="N_M", help="only this task, for example 0_1")
    parser.add_argument("--store", metavar="NAME", help="only stores of this name")


def add_run(parser: argparse.ArgumentParser) -> None:
    """Add the options of `run`."""
    parser.add_argument("state_dir", nargs="?", metavar="STATE_DIR", help="Kafka Streams' state.dir")
    group = parser.add_argument_group("identity", "Every event and metric carries it.")
    group.add_argument("--pod", metavar="NAME", help="pod (default: POD_NAME, else the host name)")
    group.add_argument("--pod-uid", metavar="UID", help="uid of the pod (default: POD_UID, else its name)")
    group.add_argument("--namespace", metavar="NAME", help="namespace (default: POD_NAMESPACE)")
    group.add_argument("--node", metavar="NAME", help="node (default: NODE_NAME)")
    group.add_argument("--cluster", metavar="NAME", help="cluster or region, where several ship to one place")
    _add_serving(parser.add_argument_group("metrics and log"))
    _add_shipping(parser.add_argument_group("delivery", "More: statewarden explain delivery."))
    _add_watching(parser.add_argument_group("watching", "What each costs: statewarden explain watching."))
    add_settings(parser)


def _add_serving(group: argparse._ArgumentGroup) -> None:
    group.add_argument("--listen", metavar="HOST:PORT",
                       help="serve /metrics and the page here (default :9464; empty: off)")
    group.add_argument("--metrics-detail", metavar="DETAIL",
                       help="task (default), or store for series of single stores as well")
    group.add_argument("--log-level", metavar="LEVEL", help="DEBUG, INFO (default), WARNING, ERROR")


def _add_shipping(group: argparse._ArgumentGroup) -> None:
    group.add_argument("--spool", metavar="DIR", help="own volume for events that wait to be shipped")
    group.add_argument("--home", metavar="DIR", help="own volume for baseline and canary (default: in the spool)")
    group.add_argument("--ship-to", metavar="DIR|URL",
                       help="where events go: a directory, s3://, gs://, az://, kafka://BROKERS/TOPIC or https://")
    group.add_argument("--grace-seconds", type=float, metavar="S",
                       help="after SIGTERM: time for the last flush, seconds (default 10)")
    group.add_argument(
        "--linger-seconds",
        type=float,
        metavar="S",
        help="after SIGTERM: watch on while the application holds locks or digests are due, at most so many"
        " seconds (default 0)",
    )


def _add_watching(group: argparse._ArgumentGroup) -> None:
    group.add_argument("--watch-mode", metavar="MODE",
                       help="inotify, poll, or auto: by the volume's file system (default)")
    group.add_argument("--rescan-seconds", type=float, metavar="S",
                       help="time between full rescans, seconds (default 60)")
    group.add_argument("--cpu-share", type=float, metavar="SHARE",
                       help="do less above this share of one core (default 0: never)")
    group.add_argument("--memory-mib", type=float, metavar="MIB",
                       help="do less above this resident memory, MiB (default 0: never)")


def add_scan(parser: argparse.ArgumentParser) -> None:
    """Add the options of `scan`."""
    parser.add_argument("state_dir", type=place, metavar="STATE_DIR", help="Kafka Streams' state.dir")
    parser.add_argument("--may-be-empty", action="store_true",
                        help="accept a missing or empty directory: no instance has started there yet")
    parser.add_argument("--may-be-undecided", action="store_true",
                        help="exit 0 instead of 3 if nothing but a setting is missing")
    add_settings(parser)
    add_output(parser)


def add_replay(parser: argparse.ArgumentParser) -> None:
    """Add the options of `replay`."""
    parser.add_argument("trace", type=place, metavar="TRACE.jsonl.gz", help="recorded file operations")
    parser.add_argument("--pod", default="pod", metavar="NAME", help="pod that events carry (default: pod)")
    parser.add_argument("--events", type=Path, metavar="DIR", help="write the events that an agent would have shipped")
    parser.add_argument("--quiet-period", default="20m", metavar="TIME",
                        help="how long the clock keeps running after the last operation: 90s, 20m (default), 1h")
    parser.add_argument("--process-visible", action="store_true",
                        help="let detectors see the process and its release, as with a shared process namespace")
    add_settings(parser)
    add_output(parser)


def add_diff(parser: argparse.ArgumentParser) -> None:
    """Add the options of `diff`."""
    parser.add_argument("a", type=place, metavar="DIR_A", help="a state directory, or a copy of one")
    parser.add_argument("b", type=place, metavar="DIR_B", help="another one")
    parser.add_argument("--json", action="store_true", help="one store per line")
    add_settings(parser)


def add_detectors(parser: argparse.ArgumentParser) -> None:
    """Add the options of `detectors`."""
    parser.add_argument("--json", action="store_true", help="one detector per line")
    add_settings(parser)


def add_explain(parser: argparse.ArgumentParser) -> None:
    """Add the options of `explain`."""
    parser.add_argument(
        "id",
        metavar="ID",
        help="detector, rules/ID of the fleet audit, alert, issue, exception or line of the application's log, or"
        " page; with --events a finding, an incident, an APPLICATION or APPLICATION/TASK; with --why-not"
        " a state directory or a trace",
    )
    parser.add_argument(
        "--why-not",
        metavar="TASK",
        help="show each rule's judgement of this task (APPLICATION/TASK), and why it reports nothing",
    )
    parser.add_argument("--events", metavar="SOURCE",
                        help="where the events are: http://HOST:9464 of a running agent, its spool, a directory,"
                        " s3://BUCKET/PREFIX, or an audit's output")
    parser.add_argument("--evidence", action="store_true", help="with --events: every finding with its evidence")
    add_settings(parser)
