"""How wide a line may be on standard output, and whether it may be coloured."""

from __future__ import annotations

import os
import shutil
import sys
import textwrap

WIDTH = 100
"""Columns at most: longer lines are hard to read."""


def width() -> int:
    """Return how many columns a text may take."""
    return min(shutil.get_terminal_size((WIDTH, 24)).columns, WIDTH) if sys.stdout.isatty() else WIDTH


def paint() -> bool:
    """Return whether colours are wanted."""
    return "NO_COLOR" not in os.environ and (sys.stdout.isatty() or "FORCE_COLOR" in os.environ)


def wrapped(line: str) -> list[str]:
    """Break a line for a terminal; a program finds each in one piece."""
    if not sys.stdout.isatty():
        return [line]
    indent = " " * (len(line) - len(line.lstrip()) + 4)
    return textwrap.wrap(
        line, width(), subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
    )
