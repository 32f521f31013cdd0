"""`preflight`: is the agent in the right place, with the right rights; if not, which line to change."""

from __future__ import annotations

import argparse
import dataclasses
import json
import sys
import textwrap
from collections.abc import Sequence
from pathlib import Path

from agent.cli import offline
from agent.cli.arguments import add_settings, config_of
from agent.cli.output import width_of
from agent.clock import SystemClock
from agent.config import Config
from agent.contract.codec import printable
from agent.contract.exit_codes import answer
from agent.errors import ConfigError, UsageError
from agent.preflight.checks import judge
from agent.preflight.facts import Facts, survey
from agent.preflight.telling import RANK, Level, Result, count
from agent.ship.sinks.base import make_sink


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
        results: Sequence[Result]
        if chosen.assumed:
            from agent.cli.what_if import judge_change

            changed = argparse.Namespace(**{**vars(chosen), "sets": [*chosen.sets, *chosen.assumed]})
            results = judge_change(config, config_of(changed, flags), ", ".join(chosen.assumed))
        else:
            results = _judge(config)
        print_results(results, as_json=chosen.json)
        return answer(found=any(x.level is Level.FAILED for x in results), unread=False)

    parser.set_defaults(command=run)


def _one_of(chosen: argparse.Namespace) -> str | None:
    given: list[str] = [x for x in (chosen.directory, chosen.state_dir) if x is not None]
    if len(set(given)) > 1:
        raise UsageError(f"two state directories given, {given[0]} and --state-dir {given[1]}: leave one out")
    return given[0] if given else None


def _judge(config: Config) -> Sequence[Result]:
    refusal = ""
    try:
        if config.agent.ship_to:  # as the agent makes it; asks nothing of the network
            make_sink(config.agent.ship_to, config.ship, None)
    except ConfigError as error:
        refusal = str(error)
    state = survey(Path(config.agent.state_dir))
    return judge(Facts(config, state, SystemClock().now_us(), sink_refusal=refusal))


def print_results(results: Sequence[Result], *, as_json: bool) -> None:
    """Print results: as JSON lines, or for people with the worst last, where the eye is."""
    if as_json:
        sys.stdout.write("".join(json.dumps(dataclasses.asdict(x)) + "\n" for x in results))
        return
    indent, width = " " * 23, width_of(sys.stdout)
    for x in sorted(results, key=lambda x: RANK[x.level]):
        mark = x.level.value if x.level is Level.OK else x.level.value.upper()
        place = f"{printable(x.where)}: " if x.where else ""
        lines = [f"{mark:<9}{x.check:<14}{place}{printable(x.what)}"]
        lines += [f"{indent}change: {printable(x.change)}"] if x.change else []
        for line in lines:
            filled = textwrap.fill(line, width, subsequent_indent=indent, break_long_words=False)
            sys.stdout.write(f"{filled}\n")
    sys.stdout.write(f"{count(results)}\n")
