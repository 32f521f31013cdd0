"""What the contract promises is said by somebody: no member of an enumeration, no value, no field without an author."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from enum import StrEnum
from importlib import import_module
from pathlib import Path

import pytest

from agent.contract import events
from agent.contract.fields import FIELDS
from agent.contract.units import Remedy
from agent.inventory.disk import Unseen
from agent.inventory.stores import Shape

ENUMS: tuple[type[StrEnum], ...] = (
    *(
        x
        for x in vars(events).values()
        if isinstance(x, type) and issubclass(x, StrEnum) and x is not StrEnum
    ),
    Remedy,
    Shape,
    Unseen,
)
"""Those of the contract, and two of the agent whose values leave it: in `shape` and in a metric."""

_CHOICES = (ast.Compare, ast.Tuple, ast.List, ast.Set, ast.Dict)
"""A member in a comparison or a table of members is only asked for."""

STAMPED_BY_THE_CODEC = {"schema_version"}


@pytest.fixture(scope="module")
def modules() -> list[tuple[str, ast.Module]]:
    """Source and tree of every module of the agent but the contract's own."""
    root = Path(__file__).parents[2] / "agent"
    sources = [x.read_text(encoding="utf-8") for x in root.rglob("*.py") if x.parent.name != "contract"]
    return [(source, ast.parse(source)) for source in sources]


@pytest.mark.parametrize("enum", ENUMS, ids=lambda x: x.__name__)
def test_every_member_is_emitted(modules: list[tuple[str, ast.Module]], enum: type[StrEnum]) -> None:
    """Some line of the agent makes each member, and does not only ask for it."""
    said = {name for source, tree in modules if enum.__name__ in source for name in _said(tree, enum)}
    assert [member.name for member in enum if member.name not in said] == []


def test_an_asked_for_member_is_not_an_emitted_one() -> None:
    """The search tells making from asking, under whatever name the enumeration is imported."""
    source = """
from agent.contract.events import Change as C
SOME = frozenset({C.TASK_HELD})
def f(x, y=C.TASK_CREATED):
    if x is C.TASK_DELETED or x in (C.TASK_RELEASED,):
        return make(C.STORE_OPENED)
"""
    assert set(_said(ast.parse(source), events.Change)) == {"TASK_CREATED", "STORE_OPENED"}


def test_every_value_and_every_field_has_an_author(modules: list[tuple[str, ast.Module]]) -> None:
    """Values are those of an enumeration above, or stand in the code; so do the names of fields."""
    told = {str(member) for enum in ENUMS for member in enum}
    for _, tree in modules:
        for node in ast.walk(tree):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                told.add(node.value)
            elif isinstance(node, ast.keyword | ast.AnnAssign):
                told.add(node.arg or "" if isinstance(node, ast.keyword) else ast.unparse(node.target))
    rows = [inner for row in FIELDS for inner in (row, *row.items)]
    assert {row.name for row in rows} - told == STAMPED_BY_THE_CODEC
    assert {value for row in rows for value in row.values} <= told
    (shape,) = (row for row in FIELDS if row.name == "shape")
    assert shape.values == tuple(Shape)


def _said(tree: ast.Module, enum: type[StrEnum]) -> Iterator[str]:
    """List the members that a module makes."""
    local = {
        name.asname or name.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.module
        for name in node.names
        if name.name == enum.__name__ and getattr(import_module(node.module), name.name) is enum
    }
    return _members(tree, local) if local else iter(())


def _members(node: ast.AST, local: set[str]) -> Iterator[str]:
    for child in ast.iter_child_nodes(node):
        if not isinstance(child, ast.Attribute):
            pass
        elif isinstance(child.value, ast.Name) and child.value.id in local and not isinstance(node, _CHOICES):
            yield child.attr
        yield from _members(child, local)
