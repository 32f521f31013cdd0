"""A page of the documentation -> what a terminal shows of it, where no link can be followed. Pure."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Set
from functools import partial

from agent.cli.table_text import tables_as_columns

_COMMENT = re.compile(r"^<!--.*?-->\n\n?", re.MULTILINE | re.DOTALL)
_BREAK_AFTER_COLON = re.compile(r"(?<=:)<br>")
_LINK = re.compile(r"\[([^\[\]]+)\]\((?:([\w./-]+)\.md)?(?:#[\w-]+)?\)")
"""A link to a page beside it, or inside it; one to a web address stays as it is."""
_COMMAND = "statewarden explain"


def page_text(page: str, folder: str, known: Set[str]) -> str:
    """Take out of a page what only a browser can use.

    Args:
        page: Its Markdown.
        folder: Where it is, below the folder of all pages; empty = there.
        known: What `explain` prints, by the names that it takes.

    Returns:
        The page without comments and line breaks of HTML, its tables as columns; each link to another page is its
        text, and the command that prints the page if there is one.
    """
    text = _BREAK_AFTER_COLON.sub(" ", _COMMENT.sub("", page)).replace("<br>", "; ")
    return tables_as_columns(_LINK.sub(partial(_link_text, folder=folder, known=known), text))


def _link_text(link: re.Match[str], *, folder: str, known: Set[str]) -> str:
    text, target = link[1], link[2] or ""
    name = posixpath.normpath(posixpath.join(folder, target)).removeprefix("detectors/")
    if name not in known or _COMMAND in text:
        return text
    return f"{text} ({_COMMAND} {name})"
