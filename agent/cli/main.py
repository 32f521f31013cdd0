"""Arguments -> command -> exit code."""

from __future__ import annotations

import argparse
import os
import socket
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from agent import __version__
from agent.cli import catalogue, inspect, offline
from agent.cli.digest import add_digest
from agent.cli.output import Shown
from agent.cli.preflight import add_preflight
from agent.cli.spool import add_spool
from agent.cli.streams import complain, guarded_output, log_stream
from agent.cli.verify import add_verify
from agent.config import Config, load_config
from agent.contract.codec import printable
from agent.detectors import ACCEPTABLE, BY_ID
from agent.errors import StatewardenError
from agent.interrupt import guarded

EXIT_WRONG = 2

EPILOG = """\
exit codes: 0 nothing at or above --fail-on; 1 something; 2 wrong use,
unreadable input, unwritable output; 130 Ctrl-C; 143 SIGTERM.

Settings that are not on disk decide many verdicts; give them with --set, for
all applications or for one, or with --properties FILE, the application's own:
  --set processing_guarantee=exactly_once_v2 --set kafka_streams_version=4.1.2
  --set my-app:num_standby_replicas=1
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line.

    Args:
        arguments: Without the program's name; None = those of the process.

    Returns:
        Exit code.
    """
    return guarded(partial(_answer, arguments))


def _answer(arguments: Sequence[str] | None) -> int:
    try:
        with guarded_output() as output:
            try:
                return _obey(arguments)
            finally:
                output.flush()
    except StatewardenError as error:
        complain(printable(str(error)))
        return EXIT_WRONG


def _obey(arguments: Sequence[str] | None) -> int:
    try:
        chosen = make_parser().parse_args(arguments)
    except SystemExit as stop:
        return int(stop.code or 0)
    command: Callable[[argparse.Namespace], int] = chosen.command
    return command(chosen)


def make_parser() -> argparse.ArgumentParser:
    """Build the parser of all commands."""
    parser = argparse.ArgumentParser(
        prog="statewarden",
        description="Audits the on-disk state of Kafka Streams applications.\nNever writes below the state directory.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"statewarden {__version__}")
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")
    _add_run(commands)
    _add_scan(commands)
    _add_replay(commands)
    _add_inspect(commands)
    add_verify(commands)
    add_digest(commands, _add_settings, config_of)
    add_spool(commands)
    listing = _command(commands, "detectors", "list the detectors")
    listing.add_argument("--json", action="store_true", help="one detector per line")
    _add_settings(listing)
    listing.set_defaults(command=_detectors)
    what = "print the runbook of a detector, rule or alert, or the story of a finding or an incident"
    explain = _command(commands, "explain", what)
    explain.add_argument(
        "id",
        metavar="ID",
        help="detector, rules/ID of the fleet audit, alert (StatewardenAgentDown), issue (KAFKA-20685), or with"
        " --events the id of a finding or an incident, or APPLICATION/TASK",
    )
    explain.add_argument(
        "--events", type=Path, metavar="DIR", help="events that hold the finding or incident"
    )
    explain.set_defaults(command=catalogue.explain)
    check = _command(commands, "check-config", "print the effective settings with their origin")
    _add_settings(check)
    check.set_defaults(command=_check_config)
    add_preflight(commands, _add_settings, config_of)
    return parser


def _command(
    commands: argparse._SubParsersAction[argparse.ArgumentParser], name: str, text: str
) -> argparse.ArgumentParser:
    """Add a command that says the same in the list of commands and in its own help."""
    return commands.add_parser(name, help=text, description=text)


def _add_settings(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("settings")
    group.add_argument(
        "--set",
        action="append",
        default=[],
        dest="sets",
        metavar="[APP:]KEY=VALUE",
        help="what is not on disk: processing_guarantee, kafka_streams_version, num_standby_replicas, ...",
    )
    group.add_argument(
        "--config",
        type=Path,
        metavar="FILE.toml",
        help='[agent], [application], [application."ID"], [detectors]',
    )
    group.add_argument(
        "--properties",
        metavar="FILE",
        help="the application's own .properties file: its settings count where --set and --config say nothing",
    )
    group.add_argument(
        "--disable-detector",
        action="append",
        dest="disabled",
        metavar="ID=REASON",
        help="open no finding of this detector, and say so wherever findings are shown; may be repeated",
    )


def _positive(text: str) -> int:
    if not text.isascii() or not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of 1 or more")
    return int(text)


def _add_output(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("output")
    group.add_argument(
        "--json", action="store_true", help="one finding per line, each once, with its incident"
    )
    group.add_argument(
        "--fail-on",
        choices=("info", "warning", "critical"),
        default="critical",
        metavar="SEVERITY",
        help="exit 1 if an open finding is at least this severe: info, warning, critical (default)",
    )
    group.add_argument(
        "--verbose", action="store_true", help="remarks, too, and every finding with its evidence"
    )
    group.add_argument(
        "--top",
        type=_positive,
        default=0,
        metavar="N",
        help="print the N worst incidents only; their number is always said",
    )


def _add_run(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    run = _command(commands, "run", "watch a state directory until SIGTERM (the sidecar)")
    run.add_argument("state_dir", nargs="?", metavar="STATE_DIR", help="Kafka Streams' state.dir")
    run.add_argument("--pod", metavar="NAME", help="pod name (POD_NAME; default: host name)")
    run.add_argument("--namespace", metavar="NAME", help="namespace (POD_NAMESPACE)")
    run.add_argument("--cluster", metavar="NAME", help="cluster or region, where several ship to one place")
    run.add_argument("--pod-uid", metavar="UID", help="pod uid (POD_UID; default: pod name)")
    run.add_argument("--node", metavar="NAME", help="node name (NODE_NAME)")
    run.add_argument(
        "--listen", metavar="HOST:PORT", help="serve /metrics here (default :9464; empty: do not)"
    )
    run.add_argument("--spool", metavar="DIR", help="own volume for events that wait to be shipped")
    run.add_argument(
        "--home", metavar="DIR", help="own volume for baseline and canary (default: in the spool)"
    )
    run.add_argument(
        "--ship-to",
        metavar="DIR|URL",
        help="where sealed segments go: a directory, s3://, gs://, az://, kafka://BROKERS/TOPIC or https://",
    )
    run.add_argument(
        "--rescan-seconds",
        type=float,
        metavar="S",
        help="distance between full rescans, seconds (default 60)",
    )
    run.add_argument(
        "--merge-window-seconds",
        type=float,
        metavar="S",
        help="read a steadily moving checkpoint at most so often (default 1; 0: at every change)",
    )
    run.add_argument("--watch-mode", metavar="MODE", help="auto (default: ask the volume), inotify or poll")
    run.add_argument(
        "--cpu-share",
        type=float,
        metavar="SHARE",
        help="do less above this share of one core (default 0: never)",
    )
    run.add_argument(
        "--memory-mib",
        type=float,
        metavar="MIB",
        help="do less above this resident memory (default 0: never)",
    )
    run.add_argument(
        "--grace-seconds", type=float, metavar="S", help="time for the last flush, seconds (default 10)"
    )
    run.add_argument(
        "--linger-seconds",
        type=float,
        metavar="S",
        help="after SIGTERM watch on while locks are held or digests are to be made, at most so many s (default 0)",
    )
    run.add_argument(
        "--metrics-detail",
        metavar="DETAIL",
        help="task (default), or store for series of single stores as well",
    )
    run.add_argument("--log-level", metavar="LEVEL", help="DEBUG, INFO (default), WARNING, ERROR")
    _add_settings(run)
    run.set_defaults(command=_run)


def _add_scan(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    scan = _command(commands, "scan", "read a state directory (or a snapshot of one) once")
    scan.add_argument("state_dir", type=Path, metavar="STATE_DIR", help="Kafka Streams' state.dir")
    scan.add_argument(
        "--may-be-empty",
        action="store_true",
        help="accept a missing or empty directory: no instance has started there yet",
    )
    _add_settings(scan)
    _add_output(scan)
    scan.set_defaults(command=_scan)


def _add_replay(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    replay = _command(commands, "replay", "run a recorded trace through the same rules")
    replay.add_argument("trace", type=Path, metavar="TRACE.jsonl.gz", help="recorded file operations")
    replay.add_argument("--pod", default="pod", help="pod name that events carry")
    replay.add_argument("--events", type=Path, metavar="DIR", help="write what the agent would have shipped")
    replay.add_argument(
        "--quiet-period",
        default="20m",
        metavar="TIME",
        help="how long the clock runs on after the last operation (default 20m; s, m, h)",
    )
    replay.add_argument(
        "--merge-window",
        default="1s",
        metavar="TIME",
        help="read a steadily moving checkpoint at most so often (default 1s; 0s: at every change)",
    )
    replay.add_argument(
        "--process-visible",
        action="store_true",
        help="let detectors see the process and its release, as with a shared process namespace",
    )
    _add_settings(replay)
    _add_output(replay)
    replay.set_defaults(command=_replay)


def _add_inspect(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    diff = _command(commands, "diff", "compare two state directories, store by store (exit 1 if they differ)")
    diff.add_argument("a", type=Path, metavar="DIR_A", help="a state directory, or a snapshot of one")
    diff.add_argument("b", type=Path, metavar="DIR_B", help="another one")
    diff.add_argument("--json", action="store_true", help="one store per line")
    _add_settings(diff)
    diff.set_defaults(command=_diff)
    bundle = _command(commands, "bundle", "pack metadata for a bug report (never record content)")
    bundle.add_argument("state_dir", type=Path, metavar="STATE_DIR", help="Kafka Streams' state.dir")
    bundle.add_argument("target", type=Path, metavar="OUT.tar.gz", help="archive to make, outside STATE_DIR")
    _add_settings(bundle)
    bundle.set_defaults(command=_bundle)


def config_of(chosen: argparse.Namespace, flags: dict[str, object] | None = None) -> Config:
    """Join the settings of one command line."""
    return load_config(
        file=chosen.config,
        sets=chosen.sets,
        flags={**(flags or {}), "detectors.disabled": chosen.disabled, "properties": chosen.properties},
        environment=os.environ,
        detectors=BY_ID,
        acceptable=ACCEPTABLE,
    )


def _detectors(chosen: argparse.Namespace) -> int:
    return catalogue.list_detectors(config_of(chosen), as_json=chosen.json)


def _run(chosen: argparse.Namespace) -> int:
    from agent import logs
    from agent.process.supervisor import Supervisor

    names = (
        "state_dir",
        "pod",
        "namespace",
        "cluster",
        "pod_uid",
        "node",
        "listen",
        "spool",
        "home",
        "ship_to",
        "rescan_seconds",
        "merge_window_seconds",
        "watch_mode",
        "cpu_share",
        "memory_mib",
        "grace_seconds",
        "linger_seconds",
        "log_level",
        "metrics_detail",
    )
    flags = {name: getattr(chosen, name) for name in names}
    config = config_of(chosen, flags)
    if not config.agent.pod:
        config = config_of(chosen, {**flags, "pod": socket.gethostname()})
    offline.require_state_dir_name(config.agent.state_dir)
    logs.configure(config.agent.log_level.upper(), log_stream())
    return Supervisor(config).run()


def _shown(chosen: argparse.Namespace) -> Shown:
    return Shown(as_json=chosen.json, verbose=chosen.verbose, top=chosen.top)


def _scan(chosen: argparse.Namespace) -> int:
    config = config_of(chosen)
    return offline.scan(
        chosen.state_dir,
        config,
        shown=_shown(chosen),
        fail_on=chosen.fail_on,
        may_be_empty=chosen.may_be_empty,
    )


def _replay(chosen: argparse.Namespace) -> int:
    return offline.replay_trace(
        chosen.trace,
        config_of(chosen),
        pod=chosen.pod,
        events=chosen.events,
        quiet_us=offline.parse_duration_us(chosen.quiet_period),
        merge_window_us=offline.parse_duration_us(chosen.merge_window),
        show_process=chosen.process_visible,
        shown=_shown(chosen),
        fail_on=chosen.fail_on,
    )


def _diff(chosen: argparse.Namespace) -> int:
    return inspect.diff(chosen.a, chosen.b, config_of(chosen), as_json=chosen.json)


def _bundle(chosen: argparse.Namespace) -> int:
    return inspect.bundle(chosen.state_dir, chosen.target, config_of(chosen))


def _check_config(chosen: argparse.Namespace) -> int:
    return catalogue.print_config(config_of(chosen))
