"""Render the last part of docs/digests.md, the fields of a digest file and of its event, from `agent.contract`."""

from __future__ import annotations

from types import ModuleType

from agent.contract import buckets, packed
from agent.contract.field import Field

MARKER = "## The file\n"

PARTS: tuple[tuple[str, tuple[Field, ...]], ...] = (
    ("One line is one store:", buckets.FIELDS),
    ("One of `databases`:", buckets.DATABASE_FIELDS),
    ("One of its `buckets`:", buckets.BUCKET_FIELDS),
)


def render_digest_page(page: str) -> str:
    """Keep what people wrote above the marker and write the tables below it again."""
    above = page.partition(MARKER)[0]
    tables = [f"{title}\n\n{_table(fields)}" for title, fields in PARTS]
    event = f"## The event\n\n{_words(packed)}"
    return f"{above}{MARKER}\n" + "\n".join([_words(buckets), *tables, event])


def _words(module: ModuleType) -> str:
    """Give the docstring of a module without its first line."""
    return f"{(module.__doc__ or '').strip().partition(chr(10) * 2)[2]}\n"


def _table(fields: tuple[Field, ...]) -> str:
    rows = ["| field | type | meaning |", "|---|---|---|"]
    for row in fields:
        values = f" One of {', '.join(f'`{value}`' for value in row.values)}." if row.values else ""
        unit = f" Unit: {row.unit}." if row.unit else ""
        rows.append(f"| `{row.name}` | {row.type.value} | {row.meaning}{values}{unit} |")
    return "\n".join(rows) + "\n"
