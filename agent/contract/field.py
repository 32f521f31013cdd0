"""One row of a field table: name, type, unit and meaning of a value that agent and rollup share."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from agent.contract.events import Kind


class FieldType(StrEnum):
    """Type of a field, as JSON Schema and Spark both know it."""

    STRING = "string"
    LONG = "long"
    DOUBLE = "double"
    BOOLEAN = "boolean"
    STRINGS = "strings"
    STRUCTS = "structs"


@dataclass(frozen=True, slots=True)
class Field:
    """One row of the table."""

    name: str  # JSON name, snake_case, with its unit as suffix
    type: FieldType  # value type; `STRUCTS` is a list of objects described by `items`
    meaning: str  # one sentence for readers
    kinds: tuple[Kind, ...] = ()  # record kinds that may carry it; empty = every kind
    required: bool = False  # always present and never null in those kinds
    since: str = "1.0"  # minor version of the contract (1.x) that brought the field
    unit: str = ""
    values: tuple[str, ...] = ()  # allowed values, for enumerations
    items: tuple[Field, ...] = ()  # fields of the list's objects
