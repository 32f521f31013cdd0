"""What is generated is committed as the code renders it, and what is written by hand leads somewhere."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tools import generate_docs

LINK = re.compile(r"\]\(([^)#:]+)(?:#[^)]*)?\)")


def pages(repository: Path) -> list[Path]:
    """List the pages written for people."""
    return [
        repository / "README.md",
        repository / "CHANGELOG.md",
        *sorted((repository / "docs").rglob("*.md")),
        *sorted((repository / "contributing").rglob("*.md")),
    ]


def test_generated_files_are_in_step(repository: Path) -> None:
    """Schema, contract page and metrics page equal what the code renders now; `make docs` writes them."""
    assert generate_docs.stale_files(repository) == []


def test_writing_repairs_what_is_stale(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A missing file is stale, is written, and then is in step."""
    few = {
        name: generate_docs.GENERATED[name]
        for name in ("agent/contract/schema.json", "docs/scan.schema.json")
    }
    monkeypatch.setattr(generate_docs, "GENERATED", few)
    assert generate_docs.write_files(tmp_path) == list(generate_docs.GENERATED)
    assert generate_docs.stale_files(tmp_path) == []


def test_links_lead_somewhere(repository: Path) -> None:
    """Every relative link in a page points at a file that exists."""
    dead = [
        f"{page.relative_to(repository)}: {target}"
        for page in pages(repository)
        for target in LINK.findall(page.read_text(encoding="utf-8"))
        if not (page.parent / target).exists()
    ]
    assert dead == []
