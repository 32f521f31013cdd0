"""The table of what pages may show: `table.toml`."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from typing import Any

from tests.docs.pages import Block

Entry = Mapping[str, Any]


@cache
def table() -> dict[str, Any]:
    """Read the table."""
    return tomllib.loads(Path(__file__).with_name("table.toml").read_text("utf-8"))


def entries(kind: str) -> list[Entry]:
    """List the entries of one kind."""
    return list(table()[kind])


def marker(block: Block) -> Entry | None:
    """Give the entry that says why a block holds no command; None = none does."""
    return next(
        (entry for entry in entries("marked") if is_about(entry, block.page, block.text, block.language)),
        None,
    )


def is_about(entry: Entry, page: str, text: str, language: str = "") -> bool:
    """Return whether an entry means this text of this page."""
    return (
        fnmatchcase(page, entry.get("page", "*"))
        and text.startswith(entry.get("begins", ""))
        and entry.get("language", language) == language
    )


def filled(page: str, line: str, words: tuple[str, ...], values: Mapping[str, str]) -> list[str]:
    """Put values in the place of placeholders, word by word; the first entry that fits counts.

    Args:
        page: Where the command is.
        line: The whole line, which some entries ask for.
        words: The command.
        values: What `{name}` in an entry stands for.
    """
    before, done = "", []
    for word in words:
        done.append(_filled(page, line, before, word, values))
        before = word
    return done


def _filled(page: str, line: str, before: str, word: str, values: Mapping[str, str]) -> str:
    entry = value_of(page, line, before, word)
    if entry is None:
        return word
    return re.sub(rf"^(?:{entry['word']})$", entry["is"], word).format_map(values)


def value_of(page: str, line: str, before: str, word: str) -> Entry | None:
    """Give the entry that has a word's value; None = it is meant as it is."""
    for entry in entries("value"):
        if (
            fnmatchcase(page, entry.get("page", "*"))
            and before in entry.get("after", (before,))
            and re.search(entry.get("line", ""), line)
            and re.fullmatch(entry["word"], word)
        ):
            return entry
    return None
