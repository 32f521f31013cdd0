"""A Markdown table -> columns that fit a terminal. Pure."""

from __future__ import annotations

import re
import textwrap
from itertools import zip_longest

WIDTH = 100
_GAP = "  "
_NARROWEST = 12
"""Below this a column holds one word a line and is no longer read as a sentence."""
_TABLE = re.compile(r"(?:^\|.*\|\n)+", re.MULTILINE)
_RULE = re.compile(r":?-+:?")
_BAR = re.compile(r"(?<!\\)\|")
"""What parts cells; a bar that belongs to a command is written with a stroke before it."""


def tables_as_columns(page: str) -> str:
    r"""Turn every table of a page, whose lines all begin and end with a bar, into columns.

    Gives the page; in place of a table, its columns: no bars, cells wrapped so that a line has 100 characters at
    most unless its words are longer. Below a header, rows are an empty line apart as soon as one of them is
    wrapped; an empty header is left out.
    """
    return _TABLE.sub(lambda table: _columns([_cells(line) for line in table[0].splitlines()]), page)


def _cells(line: str) -> list[str]:
    return [cell.strip().replace("\\|", "|") for cell in _BAR.split(line)[1:-1]]


def _columns(rows: list[list[str]]) -> str:
    head, body = rows[0], [row for row in rows[1:] if not all(map(_RULE.fullmatch, row))]
    named = any(head)
    shown = [head, *body] if named else body
    widths = _widths([max(map(len, column)) for column in zip_longest(*shown, fillvalue="")])
    laid = [_row(row, widths) for row in body]
    apart = "\n\n" if named and any("\n" in row for row in laid) else "\n"
    top = [_row(head, widths), _GAP.join("-" * width for width in widths)] if named else []
    return "".join(f"{line}\n" for line in [*top, apart.join(laid)])


def _widths(natural: list[int]) -> list[int]:
    """Take from the widest column until a line fits."""
    widths = list(natural)
    room = WIDTH - len(_GAP) * (len(widths) - 1)
    while sum(widths) > room and max(widths) > _NARROWEST:
        widths[widths.index(max(widths))] -= 1
    return widths


def _row(cells: list[str], widths: list[int]) -> str:
    wrapped = [
        textwrap.wrap(cell, width, break_long_words=False, break_on_hyphens=False)
        for cell, width in zip(cells, widths, strict=False)
    ]
    lines = zip_longest(*wrapped, fillvalue="")
    return "\n".join(
        _GAP.join(part.ljust(width) for part, width in zip(line, widths, strict=False)).rstrip()
        for line in lines
    )
