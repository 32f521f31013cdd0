"""Arguments -> command -> exit code."""

from __future__ import annotations

import argparse
import shlex
import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, TypeAlias

from agent.cli import arguments as options
from agent.cli import help_pages
from agent.cli.arguments import config_of
from agent.cli.streams import complain, guarded_output, log_stream
from agent.contract.exit_codes import Exit
from agent.contract.help_page import Parser, Print
from agent.errors import (
    ConfigError,
    LayoutError,
    SpoolError,
    StatewardenError,
    TraceError,
    UnreadError,
    UsageError,
)
from agent.interrupt import guarded

if TYPE_CHECKING:  # each command imports what it needs: help and version need next to nothing
    from agent.cli.output import Shown

AddsTo: TypeAlias = Callable[[argparse.ArgumentParser], None]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line.

    `arguments`: without the program's name; None = those of the process.
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
        from agent.contract.codec import printable

        complain(printable(str(error)))
        return code_of(error)


def code_of(error: StatewardenError) -> Exit:
    """Return what a command ends with that an error ended."""
    if isinstance(error, (UnreadError, TraceError, LayoutError, SpoolError)):
        return Exit.UNREAD
    return Exit.WRONG_USE if isinstance(error, (UsageError, ConfigError)) else Exit.BROKE


def _obey(arguments: Sequence[str] | None) -> int:
    try:
        given = sys.argv[1:] if arguments is None else arguments
        if given[:1] == ["help"]:
            given = [*given[1:], "--help"]
        chosen = make_parser(given).parse_args(given)
    except SystemExit as stop:
        return int(stop.code or 0)
    command: Callable[[argparse.Namespace], int] = chosen.command
    return command(chosen)


def make_parser(asked: Collection[str] = tuple(help_pages.PAGES)) -> argparse.ArgumentParser:
    """Build the parser of all commands; only those among `asked`, the words of a command line, get their options."""
    parser = Parser(
        prog="statewarden",
        usage="%(prog)s COMMAND [OPTION ...]",
        description=help_pages.ABOUT,
        epilog=help_pages.AFTER,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.set_defaults(command=lambda _: _without_command(parser))
    parser.add_argument(
        "-V", "--version", action=Print, const=_version, help="show version, commit, extras; then exit"
    )
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", prog="statewarden")
    for name in help_pages.PAGES:
        command = help_pages.PAGES[name].add_to(commands, name)
        if name in asked:
            _ADD[name](command)
    return parser


def _version() -> str:
    from agent.cli.version import version_text

    return version_text()


def _without_command(parser: argparse.ArgumentParser) -> int:
    """Print the help as what it is here, a complaint: no script may take this for an answer."""
    parser.print_help(sys.stderr)
    return Exit.WRONG_USE


def _adds(add_options: AddsTo, answer: Callable[[argparse.Namespace], int]) -> AddsTo:
    """Join what adds the options of a command and what answers it."""

    def add(parser: argparse.ArgumentParser) -> None:
        add_options(parser)
        parser.set_defaults(command=answer)

    return add


def _of(module: str) -> AddsTo:
    """Load what adds the options of a command, and answers it, only where that is asked for."""
    return lambda parser: import_module(f"agent.cli.{module}").add_options(parser)


def _detectors(chosen: argparse.Namespace) -> int:
    from agent.cli import catalogue

    return catalogue.list_detectors(config_of(chosen), as_json=chosen.json)


def _run(chosen: argparse.Namespace) -> int:
    import socket
    from dataclasses import fields

    from agent import logs
    from agent.cli import catalogue, offline
    from agent.config import AgentSettings
    from agent.process.supervisor import Supervisor

    flags = {x.name: getattr(chosen, x.name) for x in fields(AgentSettings) if hasattr(chosen, x.name)}
    config = config_of(chosen, flags)
    if not config.agent.pod:
        config = config_of(chosen, {**flags, "pod": socket.gethostname()})
    offline.require_state_dir_name(config.agent.state_dir, "run")
    logs.configure(config.agent.log_level.upper(), log_stream())
    return Supervisor(config, runbook=catalogue.runbook).run()


def _shown(chosen: argparse.Namespace, again: str = "") -> Shown:
    from agent.cli.output import Shown

    undecided = getattr(chosen, "may_be_undecided", False)
    return Shown(chosen.json, chosen.verbose, chosen.top, again, undecided)


def _scan(chosen: argparse.Namespace) -> int:
    from agent.cli import offline

    again = shlex.join(["--state-dir", options.full_path(chosen.state_dir), *options.same_settings(chosen)])
    return offline.scan(
        chosen.state_dir, config_of(chosen), shown=_shown(chosen, again), fail_on=chosen.fail_on,
        may_be_empty=chosen.may_be_empty,
    )  # fmt: skip


def _replay(chosen: argparse.Namespace) -> int:
    from agent.cli import offline

    return offline.replay_trace(
        chosen.trace, config_of(chosen), pod=chosen.pod, events=chosen.events,
        quiet_us=offline.parse_duration_us(chosen.quiet_period), show_process=chosen.process_visible,
        shown=_shown(chosen), fail_on=chosen.fail_on,
    )  # fmt: skip


def _diff(chosen: argparse.Namespace) -> int:
    from agent.cli import inspect

    return inspect.diff(chosen.a, chosen.b, config_of(chosen), as_json=chosen.json)


def _explain(chosen: argparse.Namespace) -> int:
    if chosen.why_not is None:
        from agent.cli import catalogue

        return catalogue.explain(chosen, config_of(chosen))
    from pathlib import Path

    from agent.cli.why_not import why_not

    return why_not(chosen.why_not, Path(chosen.id), config_of(chosen))


def _check_config(chosen: argparse.Namespace) -> int:
    from agent.cli import catalogue

    return catalogue.print_config(config_of(chosen))


_ADD: Mapping[str, AddsTo] = {
    "scan": _adds(options.add_scan, _scan),
    "explain": _adds(options.add_explain, _explain),
    "plan": _of("plan"),
    "repaired": _of("repaired"),
    "safe-to-restart": _of("safe_to_restart"),
    "detectors": _adds(options.add_detectors, _detectors),
    "run": _adds(options.add_run, _run),
    "preflight": _of("preflight"),
    "check-config": _adds(options.add_settings, _check_config),
    "verify": _of("verify"),
    "digest": _of("digest"),
    "diff": _adds(options.add_diff, _diff),
    "replay": _adds(options.add_replay, _replay),
}
