"""All mutants of a module: what is broken, where, and the source that results."""

from __future__ import annotations

import ast
import difflib
import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from cosmic_ray.ast import ast_nodes, get_ast
from cosmic_ray.mutating import mutate_code

from tests.mutate.operators import breaks_conditions, operators


@dataclass(frozen=True, slots=True)
class Mutant:
    """One broken version of one module.

    Args of the dataclass:
        path: Module, relative to the root of the checkout.
        operator: How it is broken.
        occurrence: Which of the operator's places.
        line: Line of the place.
        function: Qualified name of the function around it; `` at module level.
        was: Source lines that differ, joined and without indentation.
        becomes: What stands there now.
        code: The whole broken source.
        condition: A condition is broken.
    """

    path: str
    operator: str
    occurrence: int
    line: int
    function: str
    was: str
    becomes: str
    code: str
    condition: bool

    @property
    def key(self) -> str:
        """Name this mutant for as long as its module stays as it is."""
        return hashlib.sha256(f"{self.path}\n{self.code}".encode()).hexdigest()[:24]


@dataclass(frozen=True, slots=True)
class Map:
    """Where functions are in a module, and where breaking anything says nothing.

    Args of the dataclass:
        functions: (first line, last line, qualified name), outer before inner.
        skipped: Spans ((line, column), (line, column)) of annotations, decorators, asserts, placeholders.
    """

    functions: tuple[tuple[int, int, str], ...]
    skipped: tuple[tuple[tuple[int, int], tuple[int, int]], ...]

    def function_at(self, line: int) -> str:
        """Name the innermost function around a line."""
        return next((name for a, b, name in reversed(self.functions) if a <= line <= b), "")

    def skips(self, start: tuple[int, int]) -> bool:
        """Tell whether a place is in a skipped span."""
        return any(a <= start < b for a, b in self.skipped)


def read_map(source: str) -> Map:
    """Read the map of a module."""
    tree = ast.parse(source)
    functions: list[tuple[int, int, str]] = []
    skipped: list[Any] = []

    def walk(node: ast.AST, prefix: str) -> None:
        name = prefix
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            name = f"{prefix}.{node.name}" if prefix else node.name
            skipped.extend(_span(x) for x in node.decorator_list)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            functions.append((node.lineno, node.end_lineno or node.lineno, name))
            skipped.extend([_span(node.returns)] if node.returns else [])
        if isinstance(node, ast.arg | ast.AnnAssign) and node.annotation is not None:
            skipped.append(_span(node.annotation))
        if isinstance(node, ast.ClassDef):
            skipped.extend(
                _span(x.value) for x in node.body if isinstance(x, ast.AnnAssign) and _is_number(x.value)
            )
        if isinstance(node, ast.Assert):
            skipped.append(_span(node))
        for child in ast.iter_child_nodes(node):
            walk(child, name)

    walk(tree, "")
    return Map(tuple(functions), tuple(skipped))


def _is_number(node: ast.expr | None) -> bool:
    return isinstance(node, ast.Constant) and type(node.value) in (int, float)


def _span(node: Any) -> tuple[tuple[int, int], tuple[int, int]]:
    return (node.lineno, node.col_offset), (node.end_lineno, node.end_col_offset)


def places(source: str) -> list[tuple[str, int, int]]:
    """List (operator, occurrence, line) of everything worth breaking, in the order of the source."""
    found = []
    tree, plan = get_ast(source), read_map(source)
    for name, operator in operators().items():
        spots = (spot for node in ast_nodes(tree) for spot in operator.mutation_positions(node))
        for occurrence, (start, _) in enumerate(spots):
            if not plan.skips(start):
                found.append((name, occurrence, start[0]))
    return sorted(found, key=lambda x: (x[2], x[0], x[1]))


def mutants(path: str, source: str) -> Iterator[Mutant]:
    """Give every mutant of a module; those that are no Python, or no change, or come twice, are left out.

    Args:
        path: Relative to the root of the checkout.
        source: Its text.
    """
    plan, known = read_map(source), operators()
    seen = {ast.dump(ast.parse(source))}
    for name, occurrence, line in places(source):
        code = mutate_code(source, known[name], occurrence)
        shape = _shape(code)
        if shape is None or shape in seen:
            continue
        seen.add(shape)
        was, becomes = _difference(source, code)
        function = plan.function_at(line)
        yield Mutant(path, name, occurrence, line, function, was, becomes, code, breaks_conditions(name))


def _shape(code: str | None) -> str | None:
    try:
        return ast.dump(ast.parse(code or ""))
    except SyntaxError:
        return None


def _difference(source: str, code: str) -> tuple[str, str]:
    rows = list(difflib.ndiff(source.splitlines(), code.splitlines()))
    return tuple(" ".join(x[2:].strip() for x in rows if x.startswith(mark)) for mark in ("- ", "+ "))  # type: ignore[return-value]
