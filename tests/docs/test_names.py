"""Options and variables that pages name by themselves are those of a program."""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator
from functools import cache

from agent.config import ENVIRONMENT_PREFIX, load_config
from tests.docs import ours
from tests.docs.pages import ROOT, Block, blocks, inline
from tests.docs.table import table

OPTION = re.compile(r"(--[a-z][a-z.-]*)")
FORM = f"{ENVIRONMENT_PREFIX}GROUP_NAME"
"""How docs/configuration.md writes any of them."""

VARIABLE = re.compile(rf"\b{ENVIRONMENT_PREFIX}[A-Z_]*[A-Z]\b")
ADDED = re.compile(r'add_argument\(\s*(?:"-\w",\s*)?"(--[a-z][a-z-]*)"')


def options_of(parser: argparse.ArgumentParser) -> Iterator[str]:
    for action in parser._actions:
        yield from action.option_strings
        if isinstance(action, argparse._SubParsersAction):
            for inner in action.choices.values():
                yield from options_of(inner)


@cache
def options() -> frozenset[str]:
    """List options of our commands, of our scripts, and of what the table knows of other programs."""
    ours_by_parser = {
        option for program in ours.PROGRAMS for option in options_of(ours.PROGRAMS[program][0]())
    }
    scripts = {
        option
        for folder in ("deploy", "tests", "tools")
        for path in (ROOT / folder).rglob("*.py")
        for option in ADDED.findall(path.read_text("utf-8"))
    }
    return frozenset(ours_by_parser | scripts | set(table()["others"]["options"]))


@cache
def variables() -> frozenset[str]:
    """List the variables of all settings, and those that the code names in full."""
    settings = {name.removeprefix("agent.").replace(".", "_").upper() for name in load_config().origins}
    named = {
        name
        for path in (
            *(ROOT / "agent").rglob("*.py"),
            *(ROOT / "tests").rglob("*.py"),
            *(ROOT / "tools").glob("*.sh"),
        )
        for name in VARIABLE.findall(path.read_text("utf-8"))
    }
    return frozenset({ENVIRONMENT_PREFIX + name for name in settings} | named)


OPTIONS = [(block.place, match[1]) for block in inline() if (match := OPTION.match(block.text))]


def test_an_option_is_one_of_a_program() -> None:
    """`--name` at the beginning of inline code."""
    assert OPTIONS
    assert [f"{place}: {option}" for place, option in OPTIONS if option not in options()] == []


def test_options_of_others_are_needed() -> None:
    """A program's option that no page names any more is not in the table."""
    assert set(table()["others"]["options"]) - {option for _, option in OPTIONS} == set()


def test_a_variable_is_one_of_a_setting() -> None:
    """Each `STATEWARDEN_...` of a page."""
    every: list[Block] = [*inline(), *blocks()]
    named = {name: block.place for block in every for name in VARIABLE.findall(block.text)}
    assert named
    assert {name: place for name, place in named.items() if name not in {FORM, *variables()}} == {}
