"""`docs/scan.schema.json`: the JSON Schema of the lines of `scan --json` and `replay --json`."""

from __future__ import annotations

import json
from typing import Any

from agent.cli.json_lines import VERSION
from agent.contract.events import Kind, Severity
from agent.contract.exit_codes import Exit
from agent.contract.fields import fields_of
from agent.contract.incidents import Configured, EvidenceRole
from agent.contract.schema import json_schema

Schema = dict[str, Any]

TEXT: Schema = {"type": "string"}
COUNT: Schema = {"type": "integer", "minimum": 0}
TIME: Schema = {"type": "string", "format": "date-time"}
OR_NONE = {"type": ["string", "null"]}
TEXTS: Schema = {"type": "array", "items": TEXT}


def render() -> str:
    """Render the file: stable order, two spaces, newline at the end."""
    branches = [
        _line("finding", _finding(), ("role",)),
        _line("incident", _incident()),
        _line("summary", _summary()),
    ]
    whole = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "one line of statewarden scan --json",
        "oneOf": branches,
    }
    return json.dumps(whole, indent=2, ensure_ascii=True) + "\n"


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
        "unread_count": COUNT,
    }  # fmt: skip
