"""Ways to break a line: cosmic-ray's operators, and a few that it lacks.

Left out of cosmic-ray's set: replacements that differ only in how absurd they are (`+` by `<<`), `AddNot` (it
negates the first operand of a condition only, and no `elif`), and `RemoveDecorator` (a dataclass without its
decorator fails at once: such kills would flatter the score).
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from typing import Any

import parso
from cosmic_ray.operators.operator import Example, Operator
from cosmic_ray.plugins import get_operator
from parso.python.tree import IfStmt, Number, WhileStmt

Position = tuple[tuple[int, int], tuple[int, int]]
LARGE = 1_000
"""From here on a number is a duration or a size: one more or less says nothing, twice or half does."""

_COMPARISONS = {
    "Eq": ("NotEq",),
    "NotEq": ("Eq",),
    "Lt": ("LtE", "GtE"),
    "LtE": ("Lt", "Gt"),
    "Gt": ("GtE", "LtE"),
    "GtE": ("Gt", "Lt"),
    "Is": ("IsNot",),
    "IsNot": ("Is",),
}
_BINARIES = {"Add": "Sub", "Sub": "Add", "Mul": "FloorDiv", "Div": "Mul", "FloorDiv": "Mul", "BitOr": "BitAnd",
             "BitAnd": "BitOr"}  # fmt: skip
_PLAIN = (
    "ReplaceAndWithOr",
    "ReplaceOrWithAnd",
    "ReplaceTrueWithFalse",
    "ReplaceFalseWithTrue",
    "ReplaceBreakWithContinue",
    "ReplaceContinueWithBreak",
    "ZeroIterationForLoop",
    "ExceptionReplacer",
    "ReplaceUnaryOperator_Delete_Not",
    "ReplaceUnaryOperator_Delete_USub",
)


def _conditions(node: Any) -> Iterator[int]:
    """Give the places of conditions among a node's children."""
    if isinstance(node, IfStmt | WhileStmt):
        for place, child in enumerate(node.children[:-1]):
            if getattr(child, "value", "") in {"if", "elif", "while"}:
                yield place + 1
    elif node.type == "test":  # a if b else c
        yield 2
    elif node.type in {"comp_if", "sync_comp_for"} and getattr(node.children[0], "value", "") == "if":
        yield 1


class NegateCondition(Operator):  # type: ignore[misc] # cosmic-ray has no types
    """Turn a whole condition round."""

    def mutation_positions(self, node: Any) -> Iterator[Position]:
        """Give conditions that no other operator turns round: no `not`, no single comparison."""
        for place in self._places(node):
            yield node.children[place].start_pos, node.children[place].end_pos

    def mutate(self, node: Any, index: int) -> Any:
        """Put `not (...)` around it."""
        place = list(self._places(node))[index]
        node.children[place] = parso.parse(f" not ({node.children[place].get_code().strip()})")
        return node

    @staticmethod
    def _places(node: Any) -> Iterator[int]:
        for place in _conditions(node):
            if node.children[place].type not in {"not_test", "comparison"}:
                yield place

    @classmethod
    def examples(cls) -> tuple[Example, ...]:
        """Give an example."""
        return (Example("if a and b: pass", "if not (a and b): pass"),)


class DropCondition(Operator):  # type: ignore[misc]
    """Remove a guard: what it guards never happens; a filter lets everything through."""

    def mutation_positions(self, node: Any) -> Iterator[Position]:
        """Give every condition."""
        for place in _conditions(node):
            yield node.children[place].start_pos, node.children[place].end_pos

    def mutate(self, node: Any, index: int) -> Any:
        """Put a constant in its place."""
        place = list(_conditions(node))[index]
        node.children[place] = parso.parse(" True" if node.type in {"comp_if", "sync_comp_for"} else " False")
        return node

    @classmethod
    def examples(cls) -> tuple[Example, ...]:
        """Give examples."""
        return Example("if a: pass", "if False: pass"), Example(
            "[x for x in y if x]", "[x for x in y if True]"
        )


class DropOperand(Operator):  # type: ignore[misc]
    """Drop one operand of `and` or `or`."""

    def mutation_positions(self, node: Any) -> Iterator[Position]:
        """Give every operand."""
        if node.type in {"and_test", "or_test"}:
            for operand in node.children[::2]:
                yield operand.start_pos, operand.end_pos

    def mutate(self, node: Any, index: int) -> Any:
        """Remove it with its keyword."""
        place = 2 * index
        del node.children[slice(0, 2) if place == 0 else slice(place - 1, place + 1)]
        return node

    @classmethod
    def examples(cls) -> tuple[Example, ...]:
        """Give examples."""
        return Example("x = a and b", "x = b"), Example("x = a and b", "x = a", occurrence=1)


class SwapMembership(Operator):  # type: ignore[misc]
    """Swap `in` and `not in`."""

    def mutation_positions(self, node: Any) -> Iterator[Position]:
        """Give every membership test."""
        if node.type == "comparison":
            for place in self._places(node):
                yield node.children[place].start_pos, node.children[place].end_pos

    def mutate(self, node: Any, index: int) -> Any:
        """Swap it."""
        place = list(self._places(node))[index]
        node.children[place] = parso.parse(" not in" if self._word(node, place) == "in" else " in")
        return node

    @classmethod
    def _places(cls, node: Any) -> list[int]:
        return [i for i in range(1, len(node.children), 2) if cls._word(node, i) in {"in", "not in"}]

    @staticmethod
    def _word(node: Any, place: int) -> str:
        return " ".join(node.children[place].get_code().split())

    @classmethod
    def examples(cls) -> tuple[Example, ...]:
        """Give examples."""
        return Example("x = a in b", "x = a not in b"), Example("x = a not in b", "x = a in b")


class ChangeNumber(Operator):  # type: ignore[misc]
    """One more and one less; twice and half where a number is large."""

    def mutation_positions(self, node: Any) -> Iterator[Position]:
        """Give every number twice."""
        if isinstance(node, Number):
            yield from ((node.start_pos, node.end_pos),) * 2

    def mutate(self, node: Any, index: int) -> Any:
        """Change it."""
        value = parse_number(node.value)
        if value >= LARGE:
            changed = value * 2 if index == 0 else value // 2
        else:
            changed = value + (1 if index == 0 else -1)
        return Number(str(changed), node.start_pos, prefix=node.prefix)

    @classmethod
    def examples(cls) -> tuple[Example, ...]:
        """Give examples."""
        return Example("x = 1", "x = 2"), Example("x = 5_000", "x = 10000")


def parse_number(text: str) -> int | float:
    """Read a number as Python writes it."""
    try:
        return int(text, 0)
    except ValueError:
        return float(text)


CONDITION_OPERATORS = ("NegateCondition", "DropCondition", "DropOperand", "SwapMembership")
"""With comparisons, `and`, `or` and `not`: the operators that break a condition."""


def breaks_conditions(name: str) -> bool:
    """Tell whether an operator breaks conditions, as opposed to numbers, loops and sums."""
    return name in CONDITION_OPERATORS or name.startswith(("ReplaceComparison", "ReplaceAnd", "ReplaceOr")) or (
        name == "ReplaceUnaryOperator_Delete_Not"
    )  # fmt: skip


def operators() -> dict[str, Any]:
    """Give an instance of every operator by its name."""
    own = (NegateCondition, DropCondition, DropOperand, SwapMembership, ChangeNumber)
    names = chain(
        _PLAIN,
        (f"ReplaceComparisonOperator_{a}_{b}" for a, many in _COMPARISONS.items() for b in many),
        (f"ReplaceBinaryOperator_{a}_{b}" for a, b in _BINARIES.items()),
    )
    return {x.__name__: x() for x in own} | {name: get_operator(f"core/{name}")() for name in names}
