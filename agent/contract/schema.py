"""Compute the JSON Schema of the contract from the field table; `schema.json` is its committed output."""

from __future__ import annotations

import json

from agent.contract.codec import DATASCHEMA
from agent.contract.events import Kind
from agent.contract.field import Field, FieldType
from agent.contract.fields import fields_of

_SCALARS = {
    FieldType.STRING: "string",
    FieldType.LONG: "integer",
    FieldType.DOUBLE: "number",
    FieldType.BOOLEAN: "boolean",
}


def json_schema() -> dict[str, object]:
    """Build the schema of one event line: one branch per record kind."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": DATASCHEMA,
        "title": "statewarden event (CloudEvents 1.0, JSON format)",
        "oneOf": [_branch(kind) for kind in Kind],
    }


def render() -> str:
    """Render the schema as committed: stable order, two spaces, newline at the end."""
    return json.dumps(json_schema(), indent=2, ensure_ascii=True) + "\n"


def _branch(kind: Kind) -> dict[str, object]:
    rows = fields_of(kind)
    data = _object(rows)
    properties = data["properties"]
    assert isinstance(properties, dict)
    properties["kind"] = {"const": kind.value}
    return {
        "title": kind.value,
        "type": "object",
        "required": ["specversion", "id", "source", "type", "time", "data"],
        "properties": {
            "specversion": {"const": "1.0"}, "id": {"type": "string", "minLength": 1},
            "source": {"type": "string", "minLength": 1}, "type": {"const": f"io.statewarden.{kind.value}.v1"},
            "subject": {"type": "string"}, "time": {"type": "string", "format": "date-time"},
            "datacontenttype": {"const": "application/json"}, "dataschema": {"const": DATASCHEMA}, "data": data,
        },
    }  # fmt: skip


def _object(rows: tuple[Field, ...]) -> dict[str, object]:
    return {
        "type": "object",
        "required": [row.name for row in rows if row.required],
        "properties": {row.name: _property(row) for row in rows},
    }


def _property(row: Field) -> dict[str, object]:
    meaning = row.meaning + (f" Unit: {row.unit}." if row.unit else "")
    schema: dict[str, object] = {"description": meaning}
    if row.type is FieldType.STRINGS:
        schema |= {"type": "array", "items": {"type": "string"}}
    elif row.type is FieldType.STRUCTS:
        schema |= {"type": "array", "items": _object(row.items)}
    elif row.required:
        schema["type"] = _SCALARS[row.type]
    else:
        schema["type"] = [_SCALARS[row.type], "null"]
    if row.values:
        schema["enum"] = [*row.values] if row.required else [*row.values, None]
    return schema
