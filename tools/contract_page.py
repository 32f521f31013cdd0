"""Render the tables of fields of `docs/contract.md`; what is before and behind them is written by hand."""

from __future__ import annotations

from agent.contract.buckets import DATABASES, DIGESTS
from agent.contract.events import Kind
from agent.contract.field import Field, FieldType
from agent.contract.fields import BLIND, EVIDENCE, FIELDS, OFFSETS, SETTINGS, STORES

_KIND_TEXT = {
    Kind.TRANSITION: "Something on disk changed from one reading to the next.",
    Kind.FINDING: "A finding opened, changed or was resolved; or is said again, at each start and every 6 hours.",
    Kind.SUMMARY: "The present state of a task; once a minute.",
    Kind.HEARTBEAT: "The agent lives; when and where it was blind; what it watches, and what is open.",
    Kind.CONFIGURATION: "The settings in force for an application, each with its origin.",
    Kind.LIFECYCLE: "The agent started, or is about to stop.",
    Kind.DROP: "Records were dropped, how many and why: the hole in `sequence` is announced.",
    Kind.DIGEST: "What a store held, as numbers and fingerprints ([digests](digests.md)).",
}

_LISTS = {
    "evidence": EVIDENCE, "stores": STORES, "offsets": OFFSETS, "blind": BLIND, "settings": SETTINGS,
    "digests": DIGESTS, "databases": DATABASES,
}  # fmt: skip

_TYPE_TEXT = {FieldType.STRINGS: "list of strings", FieldType.STRUCTS: "list of objects"}

_FIRST, _BEHIND = "In every record", "## How events travel\n"


def render_contract_page(page: str) -> str:
    """Render the page: fields of every kind first, then kind by kind, then the objects inside lists."""
    head, tail = page.partition(f"## {_FIRST}\n")[0].rstrip(), "".join(page.partition(_BEHIND)[1:])
    parts = [f"{head}\n", _section(_FIRST, [row for row in FIELDS if not row.kinds])]
    for kind in Kind:
        rows = [row for row in FIELDS if kind in row.kinds]
        parts.append(_section(f"`{kind.value}`", rows, _KIND_TEXT[kind]))
    parts.extend(_section(f"Objects in `{name}`", list(rows)) for name, rows in _LISTS.items())
    return "\n".join([*parts, tail])


def _section(title: str, rows: list[Field], text: str = "") -> str:
    lines = [f"## {title}", ""]
    if text:
        lines += [text, ""]
    lines += ["| field | type | meaning |", "|---|---|---|"]
    lines += [_row(row) for row in rows]
    return "\n".join(lines) + "\n"


def _row(row: Field) -> str:
    meaning = row.meaning
    if row.unit:
        meaning += f" Unit: {row.unit}."
    if row.values:
        meaning += " One of: " + ", ".join(f"`{value}`" for value in row.values) + "."
    kind = _TYPE_TEXT.get(row.type, row.type.value)
    if str(row.since) != "1.0":
        meaning += f" Since {row.since}."
    required = ", required" if row.required else ""
    return f"| `{row.name}` | {kind}{required} | {_escaped(meaning)} |"


def _escaped(text: str) -> str:
    return text.replace("|", "\\|")
