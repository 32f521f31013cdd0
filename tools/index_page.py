"""Render docs/README.md, the index of all pages by reader, from `tools/site/navigation.toml`."""

from __future__ import annotations

import os
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
NAVIGATION = ROOT / "tools/site/navigation.toml"
PAGE = "docs/README.md"

HEAD = """# Documentation

statewarden finds out whether the on-disk state of a Kafka Streams application can still be trusted. Every page, by what
you came for:

<!-- generated from tools/site/navigation.toml (make docs) -->
"""


def render_index_page() -> str:
    """Write one section per reader, one line per page."""
    groups = tomllib.loads(NAVIGATION.read_text("utf-8"))["group"]
    sections = [
        f"\n## {group['title']}\n\n{group['intro']}\n\n" + "".join(_line(*page) for page in group["pages"])
        for group in groups
    ]
    return HEAD + "".join(sections)


def _line(path: str, when: str, title: str = "") -> str:
    if not (ROOT / path).is_file():
        return ""
    target = os.path.relpath(path, Path(PAGE).parent)
    return f"- [{title or heading(ROOT / path)}]({target}): {when}\n"


def heading(page: Path) -> str:
    """Return the first heading of a page.

    Raises:
        ValueError: it has none.
    """
    for line in page.read_text("utf-8").splitlines():
        if line.startswith("# "):
            return line.removeprefix("# ").strip()
    raise ValueError(f"{page}: no heading, so there is no title for the index of pages")
