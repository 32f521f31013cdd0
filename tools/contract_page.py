"""Render `docs/contract.md` from the field table."""

from __future__ import annotations

from agent.contract.codec import DATASCHEMA
from agent.contract.events import SCHEMA_MAJOR, Kind
from agent.contract.fields import BLIND, EVIDENCE, FIELDS, OFFSETS, SETTINGS, STORES, Field, FieldType

_HEAD = f"""\
# The event contract

Generated from `agent/contract/fields.py`; change it there.

The agent writes one JSON object per line: a CloudEvents 1.0 envelope (`specversion`, `id`, `source`, `type`,
`subject`, `time`, `datacontenttype`, `dataschema`) around `data`, whose fields are listed here. `type` is
`io.statewarden.<kind>.v{SCHEMA_MAJOR}`, `dataschema` is `{DATASCHEMA}`; the JSON Schema is
`agent/contract/schema.json`.

Rules for readers: at-least-once delivery, so drop repeated `id`s; `sequence` counts from 1 within one
`boot_id`, and a hole means that events were lost; ignore fields you do not know; set aside records of
another major version. Rules for writers: inside a major version fields are only added, and a name is never
used again. A field that is not required may be null or absent; both mean "not known".
"""

_KIND_TEXT = {
    Kind.TRANSITION: "Something on disk changed from one look to the next.",
    Kind.FINDING: "A finding opened, changed or was resolved.",
    Kind.SUMMARY: "Where a task stands; once a minute.",
    Kind.HEARTBEAT: "The agent lives; when and where it was blind.",
    Kind.CONFIGURATION: "The settings in force for an application, each with its origin.",
    Kind.LIFECYCLE: "The agent started, or is about to stop.",
    Kind.DROP: "Records were dropped, how many and why: the hole in `sequence` is announced.",
}

_LISTS = (
    ("evidence", EVIDENCE),
    ("stores", STORES),
    ("offsets", OFFSETS),
    ("blind", BLIND),
    ("settings", SETTINGS),
)

_TYPE_TEXT = {FieldType.STRINGS: "list of strings", FieldType.STRUCTS: "list of objects"}


def render_contract_page() -> str:
    """Render the page: fields of every kind first, then kind by kind, then the objects inside lists."""
    parts = [_HEAD, _section("In every record", [row for row in FIELDS if not row.kinds])]
    for kind in Kind:
        rows = [row for row in FIELDS if kind in row.kinds]
        parts.append(_section(f"`{kind.value}`", rows, _KIND_TEXT[kind]))
    parts.extend(_section(f"Objects in `{name}`", list(rows)) for name, rows in _LISTS)
    return "\n".join(parts)


def _section(title: str, rows: list[Field], text: str = "") -> str:
    lines = [f"## {title}", ""]
    if text:
        lines += [text, ""]
    lines += ["| field | type | required | since | meaning |", "|---|---|---|---|---|"]
    lines += [_row(row) for row in rows]
    return "\n".join(lines) + "\n"


def _row(row: Field) -> str:
    meaning = row.meaning
    if row.unit:
        meaning += f" Unit: {row.unit}."
    if row.values:
        meaning += " One of: " + ", ".join(f"`{value}`" for value in row.values) + "."
    kind = _TYPE_TEXT.get(row.type, row.type.value)
    required = "yes" if row.required else ""
    return f"| `{row.name}` | {kind} | {required} | {row.since} | {_escaped(meaning)} |"


def _escaped(text: str) -> str:
    return text.replace("|", "\\|")
