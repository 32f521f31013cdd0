"""Puts, entries and sequence numbers are compared with offsets in `agent/quantities` only."""

from __future__ import annotations

import ast
from pathlib import Path

from tests.support.every import every

ROOT = Path(__file__).resolve().parents[2]
COUNTED = ("puts", "flushed", "entries", "sequence", "restored", "applied", "records")
NUMBERED = ("offset", "advance", "moved", "covered")
TIMES = ("_us", "_ms")
JUDGES = sorted((ROOT / "agent" / "detectors").glob("*.py"))


BUILT_IN = ("abs", "int", "max", "min", "round", "sum")
Aliases = dict[str, set[str]]


def _words(node: ast.expr, aliases: Aliases) -> set[str]:
    """Names of the numbers in an expression; what stands inside a call is the callee's business, unless built in."""
    if isinstance(node, ast.Call):
        if isinstance(node.func, ast.Name) and node.func.id in BUILT_IN:
            return {word for argument in node.args for word in _words(argument, aliases)}
        return _words(node.func, aliases) if isinstance(node.func, ast.Attribute) else set()
    if isinstance(node, ast.Name):
        return {node.id} | aliases.get(node.id, set())
    if isinstance(node, ast.Attribute):
        return {node.attr}
    return {
        word
        for child in ast.iter_child_nodes(node)
        if isinstance(child, ast.expr)
        for word in _words(child, aliases)
    }


def _aliases(tree: ast.AST) -> Aliases:
    """Numbers that go by another name: `n = mark.puts`, `a, b = mark.puts, mark.offset`."""
    found: Aliases = {}
    for node in ast.walk(tree):
        if not isinstance(node, ast.Assign) or len(node.targets) != 1:
            continue
        target, value = node.targets[0], node.value
        pairs = [(target, value)]
        if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple):
            pairs = list(zip(target.elts, value.elts, strict=False))
        for name, number in pairs:
            if isinstance(name, ast.Name) and isinstance(number, ast.Name | ast.Attribute | ast.BinOp):
                found.setdefault(name.id, set()).update(_words(number, {}))
    return found


def _speaks_of(words: set[str], kinds: tuple[str, ...]) -> bool:
    return any(kind in word.lower() for word in words if not word.endswith(TIMES) for kind in kinds)


def mixtures(source: str) -> list[int]:
    """Lines in which a count of puts or entries is added to, subtracted from or compared with an offset."""
    found = []
    tree = ast.parse(source)
    aliases = _aliases(tree)
    expressions = [x for x in ast.walk(tree) if isinstance(x, ast.expr)]
    for node in expressions:
        sides: list[ast.expr] = []
        if isinstance(node, ast.Compare):
            sides = [node.left, *node.comparators]
        elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add | ast.Sub | ast.Mult | ast.Div):
            sides = [node.left, node.right]
        elif (
            isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ("min", "max")
        ):
            sides = list(node.args)
        said = [_words(side, aliases) for side in sides]
        if any(_speaks_of(x, COUNTED) for x in said) and any(_speaks_of(x, NUMBERED) for x in said):
            assert isinstance(node, ast.expr)
            found.append(node.lineno)
    return found


@every("path", JUDGES, ids=lambda path: path.stem)
def test_no_detector_compares_puts_with_offsets(path):
    """A detector asks a question of `agent.quantities` and gets yes, no or maybe."""
    assert mixtures(path.read_text("utf-8")) == []


@every(
    "line",
    [
        "if mark.puts < mark.offset: pass",
        "x = session.puts_at_release - fact.offset",
        "far = advance - puts > 100",
        "y = max(store.puts, moved)",
        "ok = 0.8 * offset <= database.entries_low",
        "x = abs(mark.offset) < mark.puts",
        "x = max(mark.offset, 0) - mark.puts",
        "n = mark.puts; x = n < mark.offset",
        "a, b = mark.puts, mark.offset - base; x = a < b",
    ],
)
def test_the_check_finds_a_mixture(line):
    """The check itself fails on what it is for."""
    assert set(mixtures(line)) == {1}


@every("line", ["a = fact.offset - mark.offset", "b = puts > 10_000", "c = flushed_us > offset_us"])
def test_the_check_leaves_like_with_like(line):
    """Offsets with offsets, puts with numbers, and times are fine."""
    assert mixtures(line) == []
