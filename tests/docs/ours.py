"""The commands of this repository: parsed by their own parsers, and really run where a small world suffices."""

from __future__ import annotations

import argparse
import io
import os
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import redirect_stderr, redirect_stdout
from functools import cache
from typing import Any

from agent.cli.arguments import config_of
from agent.cli.main import main as agent
from agent.cli.main import make_parser
from agent.cli.verify import _given, _words
from agent.config import load_config
from agent.detectors import ACCEPTABLE, BY_ID
from agent.errors import StatewardenError
from spark_rollup import arguments, config
from spark_rollup.cli import main as rollup
from spark_rollup.errors import RollupError
from spark_rollup.sources import address
from tests.docs.table import Entry, entries

PROGRAMS = {"statewarden": (make_parser, agent), "statewarden-rollup": (arguments.parser, rollup)}
WRONG = (StatewardenError, RollupError)

INCOMPLETE = re.compile(r"the following arguments are required|expected one argument")
VALUES: Mapping[str, Callable[[Any], object]] = {
    "as_of": config.parse_as_of,
    "look_back": config.parse_look_back,
    "max_age": config.parse_age,
    "settings": config.parse_overrides,
    "spark_conf": config.parse_conf,
    "kafka": lambda text: address.parse_brokers("--kafka", text),
    "bronze": lambda text: address.parse_bronze("--bronze", text),
}
"""What the rollup checks before it starts Spark: attribute -> the function that it does it with."""


@cache
def _parser(program: str) -> argparse.ArgumentParser:
    return PROGRAMS[program][0]()


def names_of(program: str) -> frozenset[str]:
    """List the commands of a program."""
    actions = _parser(program)._actions
    return frozenset(name for x in actions if isinstance(x, argparse._SubParsersAction) for name in x.choices)


def check(words: Sequence[str], *, in_a_sentence: bool) -> str:
    """Parse a command of ours, and check its values as far as no work begins.

    Args:
        words: Program and arguments, placeholders filled.
        in_a_sentence: Inline code may be the name of a command or leave arguments out.

    Returns:
        What is wrong; empty = nothing.
    """
    program, *rest = words
    said = io.StringIO()
    with redirect_stderr(said), redirect_stdout(said):
        try:
            chosen = _parser(program).parse_args(rest)
        except SystemExit as stop:
            text = said.getvalue()
            return (
                "" if not stop.code or (in_a_sentence and INCOMPLETE.search(text)) else text.splitlines()[-1]
            )
    try:
        _check_values(program, chosen)
    except WRONG as error:
        return f"{type(error).__name__}: {error}"
    return ""


def _check_values(program: str, chosen: argparse.Namespace) -> None:
    if program == "statewarden-rollup":
        for name, read in VALUES.items():
            if value := getattr(chosen, name, None):
                read(value)
        return
    if hasattr(chosen, "sets"):
        config_of(chosen)
    if hasattr(chosen, "topic"):
        _given(chosen)
        _words(chosen.fail_on)


def check_environment(settings: Mapping[str, str]) -> str:
    """Read settings as the agent does; gives what is wrong."""
    try:
        load_config(environment=settings, detectors=BY_ID, acceptable=ACCEPTABLE)
    except WRONG as error:
        return f"{type(error).__name__}: {error}"
    return ""


def is_run(words: Sequence[str]) -> bool:
    """Return whether the small world suffices for a command, and nothing that it requires was left out."""
    return _entry(words) is not None and not check(words, in_a_sentence=False)


def expected_code(words: Sequence[str]) -> int:
    """Give the exit code that a command has in the small world."""
    code: int = (_entry(words) or {}).get("code", 0)
    return code


def _entry(words: Sequence[str]) -> Entry | None:
    line = " ".join(words)
    return next((entry for entry in entries("run") if re.match(entry["line"], line)), None)


def run(words: Sequence[str]) -> tuple[int, str]:
    """Run a command of ours in this process; gives its exit code and what it said."""
    program, *rest = words
    said = io.StringIO()
    with redirect_stdout(said), redirect_stderr(said):
        try:
            code = PROGRAMS[program][1](rest)
        except SystemExit as stop:
            code = int(stop.code or 0)
    return code, said.getvalue()


def without_settings() -> dict[str, str]:
    """Give the environment without what the agent reads from it."""
    return {
        name: value
        for name, value in os.environ.items()
        if not name.startswith("STATEWARDEN_")
        and name not in ("POD_NAME", "POD_NAMESPACE", "POD_UID", "NODE_NAME")
    }
