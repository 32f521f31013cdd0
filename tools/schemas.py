"""The JSON Schemas that are committed: of the event contract, and of the lines of `scan --json` and `replay --json`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from agent.cli.output import VERSION
from agent.contract.codec import DATASCHEMA
from agent.contract.events import Kind, Severity
from agent.contract.exit_codes import Exit
from agent.contract.field import Field, FieldType
from agent.contract.fields import fields_of
from agent.contract.incidents import Configured, EvidenceRole

Schema = dict[str, Any]

TEXT: Schema = {"type": "string"}
COUNT: Schema = {"type": "integer", "minimum": 0}
TIME: Schema = {"type": "string", "format": "date-time"}
OR_NONE = {"type": ["string", "null"]}
TEXTS: Schema = {"type": "array", "items": TEXT}

_SCALARS = {
    FieldType.STRING: "string", FieldType.LONG: "integer", FieldType.DOUBLE: "number", FieldType.BOOLEAN: "boolean",
}  # fmt: skip


def json_schema() -> dict[str, object]:
    """Build the schema of one event line: one branch per record kind."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": DATASCHEMA,
        "title": "statewarden event (CloudEvents 1.0, JSON format)",
        "oneOf": [_branch(kind) for kind in Kind],
    }


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


def scan_schema() -> Schema:
    """Build the schema of one line of a scan: one branch per kind of line."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "one line of statewarden scan --json",
        "oneOf": [
            _line("finding", _finding(), ("role",)),
            _line("incident", _incident()),
            _line("summary", _summary()),
        ],
    }


def render(schema: Mapping[str, object]) -> str:
    """Render a schema as committed: stable order, two spaces, newline at the end."""
    return json.dumps(schema, indent=2, ensure_ascii=True) + "\n"


def _line(kind: str, properties: Schema, optional: tuple[str, ...] = ()) -> Schema:
    named = {"line": {"const": kind}, "version": {"const": VERSION}, **properties}
    return {
        "title": kind, "type": "object", "properties": named, "required": [x for x in named if x not in optional],
        "additionalProperties": False,
    }  # fmt: skip


def _contract() -> Schema:
    """Take the fields of a finding from the contract's own schema."""
    branches: Any = json_schema()["oneOf"]
    data = next(x for x in branches if x["title"] == Kind.FINDING.value)["properties"]["data"]
    known: Schema = data["properties"]
    return known


def _finding() -> Schema:
    known, found = _contract(), {}
    own = [row.name for row in fields_of(Kind.FINDING) if Kind.FINDING in row.kinds and row.name != "said_us"]
    for name in (*own, "application_id", "task_id", "store"):
        described = {"description": known[name]["description"]}
        if name.endswith("_at_us"):
            found[name.removesuffix("_us")] = {**described, "type": ["string", "null"], "format": "date-time"}
        else:
            found["id" if name == "finding_id" else name] = known[name]
    roles = {"description": "What it is for its incident.", "enum": [x.value for x in EvidenceRole]}
    return {**found, "pod": TEXT, "role": roles}


def _incident() -> Schema:
    known = _contract()
    asked = {name: known[name] for name in ("detector", "severity", "confidence", "status")}
    return {
        "id": TEXT, **asked, "configured_exposure": {"enum": [x.value for x in Configured]}, "application_id": OR_NONE,
        "tasks": TEXTS, "task_count": COUNT, "stores": TEXTS, "store_count": COUNT, "finding_count": COUNT,
        "title": TEXT, "sentence": TEXT, "next_action": TEXT, "since": TIME,
        "ended": {**OR_NONE, "format": "date-time"}, "pod": TEXT,
    }  # fmt: skip


def _summary() -> Schema:
    place = {"type": "object", "properties": {"path": TEXT, "why": TEXT}, "required": ["path", "why"]}
    by_severity = {severity.value: COUNT for severity in Severity}
    return {
        "pod": TEXT, "exit_code": {"enum": [x.value for x in Exit]}, "reason": TEXT, "read": TEXT,
        "open": {"type": "object", "properties": by_severity, "required": [*by_severity]},
        "findings": COUNT, "incidents": COUNT, "left_out": COUNT, "unread": {"type": "array", "items": place},
        "unread_count": COUNT, "in_use": TEXTS,
    }  # fmt: skip
