"""Scripts of this repository, started as far as their own parser goes."""

from __future__ import annotations

import argparse
import importlib
import io
import runpy
import sys
import tomllib
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import redirect_stderr, redirect_stdout
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any
from unittest.mock import patch

from tests.docs.pages import ROOT
from tools.run_tests import SUITES


class Parsed(BaseException):
    """A script has parsed its arguments; what comes next is its work, which is not done."""

    def __init__(self, chosen: argparse.Namespace) -> None:
        super().__init__()
        self.chosen = chosen


def check(words: Sequence[str]) -> str:
    """Start `python WORDS` and end it when the arguments are parsed.

    Returns:
        What is wrong; empty = nothing.
    """
    if words[0] == "-m":
        module, rest = words[1], words[2:]
        if module == "pytest":
            return check_pytest(rest)
        return _parsed(lambda: _run_anew(module), module, rest)
    script = ROOT / words[0]
    if not script.is_file():
        return f"there is no {words[0]}"
    if script.name == "run_tests.py":
        return check_pytest(["-m", SUITES[words[1]].marks, *words[2:]])
    return _parsed(lambda: runpy.run_path(str(script), run_name="__main__"), words[0], words[1:])


def _run_anew(module: str) -> object:
    """Run a module as a program, also one that a test has imported already, of which runpy warns."""
    with patch.dict(sys.modules):
        for name in (module, f"{module}.__main__"):
            sys.modules.pop(name, None)
        return runpy.run_module(module, run_name="__main__", alter_sys=True)


def _parsed(start: Callable[[], object], name: str, arguments: Sequence[str]) -> str:
    parse = argparse.ArgumentParser.parse_args

    def end(self: argparse.ArgumentParser, *given: Any, **named: Any) -> None:
        raise Parsed(parse(self, *given, **named))

    said = io.StringIO()
    with (
        patch.object(argparse.ArgumentParser, "parse_args", end),
        patch.object(sys, "argv", [name, *arguments]),
        patch.object(sys, "path", [str(ROOT), *sys.path]),
        redirect_stderr(said),
        redirect_stdout(said),
    ):
        try:
            start()
        except Parsed as parsed:
            return _unknown_words(name, parsed.chosen)
        except SystemExit as stop:
            return said.getvalue().strip() if stop.code else ""
    return f"{name} parses no arguments"


def _unknown_words(name: str, chosen: argparse.Namespace) -> str:
    """Check the words that a script compares with names of its own only after parsing."""
    part = Path(name).parent.name
    if part not in WORDS or not name.endswith("run.py"):
        return ""
    attribute, known = WORDS[part]
    wrong = [word for word in getattr(chosen, attribute) if not any(word in name for name in known())]
    return f"{part} knows no {', '.join(wrong)}" if wrong else ""


WORDS: Mapping[str, tuple[str, Callable[[], Iterable[str]]]] = {
    "bench": ("names", lambda: importlib.import_module("tests.bench.run").BENCHMARKS),
    "prove": ("words", lambda: importlib.import_module("tests.prove.run").PARTS),
    "lifelike": ("words", lambda: [x.stem for x in (ROOT / "tests/lifelike/stories").iterdir()]),
}
"""Part -> its attribute of words, and the names in which they must occur."""


def check_pytest(words: Sequence[str]) -> str:
    """Check that paths and marks are there."""
    expressions = [value for option, value in pairwise(words) if option in ("-m", "-k")]
    marks = {word for option, value in pairwise(words) if option == "-m" for word in _names(value)}
    places = [word for word in words if word not in expressions and "/" in word]
    missing = [*(marks - _marks()), *(place for place in places if not (ROOT / place).exists())]
    return f"pytest finds no {', '.join(missing)}" if missing else ""


def _names(expression: str) -> set[str]:
    return set(expression.replace("(", " ").replace(")", " ").split()) - {"not", "and", "or"}


@cache
def _marks() -> set[str]:
    options = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["pytest"]["ini_options"]
    return {line.partition(":")[0] for line in options["markers"]}
