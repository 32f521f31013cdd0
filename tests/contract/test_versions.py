"""Every published version of the contract stays readable: samples of each are kept, and no field goes or changes."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

from agent.contract.codec import DATASCHEMA, SCHEMA_VERSION, decode
from agent.contract.events import SCHEMA_MAJOR
from agent.contract.field import Field
from agent.contract.fields import BY_NAME, FIELDS

GOLDEN = Path(__file__).parent / "golden"
PUBLISHED = {
    "v1.0.jsonl": "ca3012c67afbc84b8ecdd43ad884a8cc9f5ffe820158cb217f81296a5a474e00",
    "v1.1.jsonl": "964996a0a73e3b1b945b9184cdb6fd708b466f156b87899c89bbfe165ed63da5",
    "v1.2.jsonl": "6d38296f0c18f2e33d102eb461e1d23d537560bef8676bbde00be49045c54121",
    "v1.3.jsonl": "cf4a50c447cdbba81df3065e593a700becb93db2921f845454cb7cdf0521765d",
    "v1.4.fields.json": "d4e30c43ad12a421b4c504424d7b34c899468821714b5c0e45d155511f6b9c2b",
    "v1.4.jsonl": "e359a359ed87968c23e99295b5e231c3ab38a06f0163b6ee9507643445f12b3a",
}
"""File -> SHA-256. A new minor version adds its two files; no row ever changes.

What version 1.4 lists has every field of 1.0 to 1.3 as it was, so their lists are not kept.
"""
VERSIONS = [name[1:].removesuffix(".jsonl") for name in PUBLISHED if name.endswith(".jsonl")]


@pytest.mark.parametrize("name", PUBLISHED)
def test_golden_files_never_change(name: str) -> None:
    """What was published is history."""
    assert hashlib.sha256((GOLDEN / name).read_bytes()).hexdigest() == PUBLISHED[name]


def test_every_version_has_its_samples() -> None:
    """A field of a new minor version means a new version of the contract, with samples and fields of its own."""
    versions = {row.since for row in FIELDS}
    assert versions <= set(VERSIONS)
    assert max(versions, key=lambda version: tuple(map(int, version.split(".")))) == SCHEMA_VERSION


@pytest.mark.parametrize("name", [name for name in PUBLISHED if name.endswith(".fields.json")])
def test_changes_are_additive(name: str) -> None:
    """Every published field is still there: same type, same kinds or more, same values or more, required if it was."""
    for old in json.loads((GOLDEN / name).read_text()):
        is_kept(old, BY_NAME[old["name"]])


def is_kept(old: dict[str, Any], row: Field) -> None:
    """Compare a published field with the one of today."""
    assert row.type.value == old["type"], row.name
    assert not row.kinds or set(old["kinds"]) <= {kind.value for kind in row.kinds}, row.name
    assert bool(old["kinds"]) or not row.kinds, row.name
    assert row.required or not old["required"], row.name
    assert set(old["values"]) <= set(row.values) or not old["values"], row.name
    items = {item.name: item for item in row.items}
    for inner in old["items"]:
        is_kept(inner, items[inner["name"]])


def test_new_fields_are_never_required() -> None:
    """Lines of an older agent lack them."""
    assert [row.name for row in FIELDS if row.required and row.since != "1.0"] == []


def mapped(repository: Path, title: str) -> list[list[str]]:
    """Read the rows of a table of docs/contract.md."""
    part = (repository / "docs/contract.md").read_text().partition(f"\n## {title}\n")[2].partition("\n## ")[0]
    return [line.strip("| ").split(" | ") for line in part.splitlines() if line.startswith("| ")][1:]


@pytest.mark.parametrize("version", VERSIONS)
def test_the_mapping_tables_cover_every_line(repository: Path, version: str) -> None:
    """Each attribute of the envelope and each field of the data has its place in CloudEvents and OpenTelemetry."""
    attributes = {row[0].strip("`") for row in mapped(repository, "How events travel")}
    sources = " ".join(row[1] for row in mapped(repository, "As OpenTelemetry log records"))
    always = {row.name for row in FIELDS if not row.kinds}
    assert "every other field of `data`" in sources
    for line in (GOLDEN / f"v{version}.jsonl").read_text().splitlines():
        assert set(json.loads(line)) - {"data"} <= attributes
        assert decode(line)
    for name in always - {"application_id", "process_id", "task_id", "store", "segment", "kind", "sequence"}:
        assert f"`{name}`" in sources, name


def test_the_page_says_the_version(repository: Path) -> None:
    """By hand, where it speaks of the envelope."""
    page = (repository / "docs/contract.md").read_text()
    assert f"`io.statewarden.<kind>.v{SCHEMA_MAJOR}`" in page
    assert DATASCHEMA in page
