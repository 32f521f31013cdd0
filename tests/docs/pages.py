"""What the pages show beside prose: blocks, and commands within a sentence; found by one parser, markdown-it."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from markdown_it import MarkdownIt

ROOT = Path(__file__).resolve().parents[2]
NOT_OURS = {"node_modules", "build", "dist", "venv"}
OURS = {".github"}
"""Folders of tools; those that begin with a dot are none of ours, either, but for this one."""

CHANGES = re.compile(r"(?:^|/)(?:CHANGELOG\.md$|changelog\.d/)")


@dataclass(frozen=True)
class Block:
    """A fenced or indented block, or one piece of inline code."""

    page: str  # path below the repository, with slashes
    line: int  # of the page, from 1
    language: str  # what the fence says; empty = nothing, or indented
    text: str  # without the fence

    @property
    def place(self) -> str:
        """Say where it is."""
        return f"{self.page}:{self.line}"


@cache
def pages() -> tuple[str, ...]:
    """List every page of the repository, by its path; what is not ours is not walked through."""
    found = []
    for folder, inner, files in os.walk(ROOT):
        inner[:] = [name for name in inner if name in OURS or not (name in NOT_OURS or name.startswith("."))]
        found += [Path(folder, name).relative_to(ROOT).as_posix() for name in files if name.endswith(".md")]
    return tuple(sorted(found))


@cache
def _tokens(page: str) -> tuple[tuple[str, int, str, str], ...]:
    """Read a page once: kind, line, language and text of each block and of each piece of inline code."""
    found: list[tuple[str, int, str, str]] = []
    line = 0
    for token in MarkdownIt().enable("table").parse((ROOT / page).read_text("utf-8")):
        line = token.map[0] + 1 if token.map else line
        if token.type in ("fence", "code_block"):
            found.append(("block", line, token.info.strip(), token.content))
        code = (child.content for child in token.children or () if child.type == "code_inline")
        found += [("inline", line, "", " ".join(text.split())) for text in code]
    return tuple(found)


def blocks() -> Iterator[Block]:
    """Give every fenced or indented block."""
    return _of("block")


def inline() -> Iterator[Block]:
    """Give every piece of inline code, in one line each, but of changes: they name what is gone."""
    return (one for one in _of("inline") if not CHANGES.search(one.page))


def _of(kind: str) -> Iterator[Block]:
    for page in pages():
        yield from (Block(page, line, lang, text) for is_, line, lang, text in _tokens(page) if is_ == kind)
