"""What is generated is committed as the code renders it, and what is written by hand leads somewhere."""

from __future__ import annotations

import re
from pathlib import Path

from tools import generate_docs

LINK = re.compile(r"\]\(([^)#:]+)(?:#[^)]*)?\)")
MAKE_TARGET = re.compile(r"`(?:[A-Z_]+=\S+ )*make ([a-z][a-z-]*)")


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


def test_writing_repairs_what_is_stale(tmp_path: Path) -> None:
    """A missing file is stale, is written, and then is in step."""
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


def test_pages_name_only_targets_that_exist(repository: Path) -> None:
    """A `make` target that a page mentions is in the Makefile, with its help line."""
    makefile = (repository / "Makefile").read_text(encoding="utf-8")
    targets = set(re.findall(r"^([a-z-]+):.*## ", makefile, flags=re.MULTILINE))
    named = {
        name for page in pages(repository) for name in MAKE_TARGET.findall(page.read_text(encoding="utf-8"))
    }
    assert {"demo", "test"} <= named
    assert named <= targets
