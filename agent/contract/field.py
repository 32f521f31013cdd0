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
    """One row of the table.

    Args of the dataclass:
        name: JSON name, snake_case, with its unit as suffix.
        type: Value type; `STRUCTS` is a list of objects described by `items`.
        kinds: Record kinds that may carry it; empty = every kind.
        required: Always present and never null in those kinds.
        since: Minor version of the contract (1.x) that brought the field.
        meaning: One sentence for readers.
        values: Allowed values, for enumerations.
        items: Fields of the list's objects.
    """

    name: str
    type: FieldType
    meaning: str
    kinds: tuple[Kind, ...] = ()
    required: bool = False
    since: str = "1.0"
    unit: str = ""
    values: tuple[str, ...] = ()
    items: tuple[Field, ...] = ()
