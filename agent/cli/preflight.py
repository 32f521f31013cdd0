"""`preflight`: is the agent in the right place, with the right rights; if not, which line to change."""

from __future__ import annotations

import argparse
import dataclasses
import json
import sys
from collections.abc import Sequence

from agent.cli import offline
from agent.cli.arguments import add_settings, config_of
from agent.cli.output import width_of
from agent.clock import SystemClock
from agent.config import Config
from agent.errors import ConfigError, UsageError
from agent.preflight.telling import Result, count, paragraph


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command to its parser, and what answers it."""
    parser.add_argument("directory", nargs="?", metavar="STATE_DIR",
                        help="Kafka Streams' state.dir, as the agent sees it")  # fmt: skip
    parser.add_argument("--state-dir", metavar="DIR", help="the same")
    parser.add_argument("--spool", metavar="DIR", help="the agent's own volume")
    parser.add_argument("--ship-to", metavar="DIR|URL", help="where sealed segments go")
    parser.add_argument("--json", action="store_true", help="one check per line")
    parser.add_argument(
        "--if", action="append", default=[], dest="assumed", metavar="[APP:]KEY=VALUE",
        help="a planned change of a setting: list the state on disk that is in its way; may be repeated",
    )  # fmt: skip
    add_settings(parser)

    def run(chosen: argparse.Namespace) -> int:
        flags = {"state_dir": _one_of(chosen), "spool": chosen.spool, "ship_to": chosen.ship_to}
        config = config_of(chosen, flags)
        offline.require_state_dir_name(config.agent.state_dir, "preflight")
        assumed = None
        if chosen.assumed:
            changed = argparse.Namespace(**{**vars(chosen), "sets": [*chosen.sets, *chosen.assumed]})
            assumed = config_of(changed, flags)
        return preflight(config, assumed, ", ".join(chosen.assumed), as_json=chosen.json)

    parser.set_defaults(command=run)


def _one_of(chosen: argparse.Namespace) -> str | None:
    given: list[str] = [x for x in (chosen.directory, chosen.state_dir) if x is not None]
    if len(set(given)) > 1:
        raise UsageError(f"two state directories given, {given[0]} and --state-dir {given[1]}: leave one out")
    return given[0] if given else None


def preflight(
    config: Config, assumed: Config | None = None, change: str = "", *, as_json: bool = False
) -> int:
    """Gather facts, judge and print.

    `assumed`: the same with settings that are to be changed; None = none is: then the agent's place is checked.
    `change`: those settings, as they were given. Gives 0 = no check failed, 1 = one did.
    """
    # what preflight needs beside the rest is loaded only where it is asked for
    from agent.preflight.checks import exit_code, judge
    from agent.preflight.facts import gather

    if assumed is not None:
        from agent.cli.what_if import judge_change

        results = tuple(judge_change(config, assumed, change))
    else:
        results = judge(gather(config, SystemClock(), sink_refusal=_sink_refusal(config)))
    print_results(results, as_json=as_json)
    return exit_code(results)


def print_results(results: Sequence[Result], *, as_json: bool) -> None:
    """Print results: as JSON lines, or for people with the worst last, where the eye is."""
    if as_json:
        sys.stdout.write("".join(json.dumps(dataclasses.asdict(x)) + "\n" for x in results))
    else:
        width = width_of(sys.stdout)
        told = (paragraph(x, width) for x in sorted(results, key=lambda x: x.level.rank))
        sys.stdout.write("".join(told) + count(results) + "\n")


def _sink_refusal(config: Config) -> str:
    """Make the sink as the agent would; asks nothing of the network."""
    if not config.agent.ship_to:
        return ""
    from agent.ship.sinks.base import make_sink

    try:
        make_sink(config.agent.ship_to, config.ship, None)
    except ConfigError as error:
        return str(error)
    return ""
