"""Render the last part of docs/digests.md, the fields of a digest file, from `agent.contract.buckets`."""

from __future__ import annotations

from agent.contract import buckets
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
    assert buckets.__doc__ is not None
    words = buckets.__doc__.strip().partition("\n\n")[2]
    tables = [f"{title}\n\n{_table(fields)}" for title, fields in PARTS]
    return f"{above}{MARKER}\n" + "\n".join([f"{words}\n", *tables])


def _table(fields: tuple[Field, ...]) -> str:
    rows = ["| field | type | meaning |", "|---|---|---|"]
    for row in fields:
        values = f" One of {', '.join(f'`{value}`' for value in row.values)}." if row.values else ""
        unit = f" Unit: {row.unit}." if row.unit else ""
        rows.append(f"| `{row.name}` | {row.type.value} | {row.meaning}{values}{unit} |")
    return "\n".join(rows) + "\n"
