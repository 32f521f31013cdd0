"""What is generated is committed as the code renders it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools import generate_docs


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
