"""Modules and functions stay small enough to be read in one go."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

MODULE_CAP_LINES = 400
FUNCTION_CAP_LINES = 70
TREES = ("agent", "spark_rollup", "deploy", "tools", "tests")


def python_files(repository: Path, trees: tuple[str, ...] = TREES) -> Iterator[Path]:
    """Walk the Python files of the given trees."""
    for tree in trees:
        yield from sorted((repository / tree).rglob("*.py"))


def test_no_module_exceeds_the_cap(repository: Path) -> None:
    """A module, or a file of tests, has at most 400 lines."""
    sizes = {
        str(path.relative_to(repository)): len(path.read_text(encoding="utf-8").splitlines())
        for path in python_files(repository)
    }
    assert sizes
    assert {path: lines for path, lines in sizes.items() if lines > MODULE_CAP_LINES} == {}


def test_no_function_exceeds_the_cap(repository: Path) -> None:
    """A function has at most 70 lines, its docstring included."""
    too_long = {}
    for path in python_files(repository, ("agent", "spark_rollup", "deploy", "tools")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef) and node.end_lineno is not None:
                lines = node.end_lineno - node.lineno + 1
                if lines > FUNCTION_CAP_LINES:
                    too_long[f"{path.relative_to(repository)}:{node.name}"] = lines
    assert too_long == {}
