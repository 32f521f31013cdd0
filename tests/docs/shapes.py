"""Output as a page shows it, compared with what is really printed: the words, not numbers, times, ids and names."""

from __future__ import annotations

import re
from collections.abc import Sequence

from tests.docs.table import entries

SHAPES = (
    (r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:\.\d+)?Z?", "TIME"),
    (r"\bi-[0-9a-f]{12}\b", "INCIDENT"),
    (r"\b[0-9a-f]{16}\b", "ID"),
    (r"\b\d+_\d+\b", "TASK"),
    (r"\b\d+\.\d+\.\d+\b", "RELEASE"),
    (r"(?<![\w.-])\d(?:[\d,]*\d)?(?![\w.]*-)", "N"),
)


def shape(text: str) -> str:
    """Put a word in the place of what differs from run to run, and one blank for any number of them."""
    for entry in entries("name"):
        text = re.sub(entry["words"], entry["is"], text)
    for pattern, word in SHAPES:
        text = re.sub(pattern, word, text)
    return " ".join(text.split())


def missing(shown: Sequence[str], said: str) -> list[str]:
    """List pieces of a shown output, cut at `...`, that are not in what was said, in this order."""
    rest, wrong = shape(said), []
    for piece in re.split(r"\.\.\.", "\n".join(shown)):
        wanted = shape(piece).strip(" ,;")
        found = rest.find(wanted)
        if found < 0:
            wrong.append(f"{wanted!r} is not in: {rest[:600]}")
        else:
            rest = rest[found + len(wanted) :]
    return wrong
