"""The common case of the codec's check: values of exactly the types that the table says.

What does not fit may be right all the same (a subclass, a list of strings): `codec.check` says so, or what is wrong.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from agent.contract.field import Field, FieldType


class Shape(NamedTuple):
    """What an object may hold."""

    rules: dict[str, type | frozenset[str] | Shape]
    """Type of a plain field, values of an enumeration, or the shape of a list's objects."""
    required: frozenset[str]  # names that must be there


_EXACT: dict[FieldType, type] = {
    FieldType.STRING: str,
    FieldType.LONG: int,
    FieldType.DOUBLE: float,
    FieldType.BOOLEAN: bool,
}


def shape_of(rows: Iterable[Field]) -> Shape:
    """Give the shape of an object with these fields."""
    rules: dict[str, type | frozenset[str] | Shape] = {}
    required = set()
    for row in rows:
        if row.required:
            required.add(row.name)
        if row.values and row.type is FieldType.STRING:
            rules[row.name] = frozenset(row.values)
        elif row.type is FieldType.STRUCTS:
            rules[row.name] = shape_of(row.items)
        elif row.type in _EXACT and not row.values:
            rules[row.name] = _EXACT[row.type]
    return Shape(rules, frozenset(required))


def fits(values: Mapping[str, object], shape: Shape) -> bool:
    """Return whether an object is surely right; False = it may be, or not."""
    for name, value in values.items():
        rule = shape.rules.get(name)
        found = type(value)
        if found is rule:
            continue
        if isinstance(rule, Shape) and isinstance(value, (list, tuple)):
            is_right = all(type(entry) is dict and fits(entry, rule) for entry in value)
        elif isinstance(rule, frozenset) and found is str:
            is_right = value in rule
        else:
            is_right = value is None and rule is not None and name not in shape.required
        if not is_right:
            return False
    return values.keys() >= shape.required
