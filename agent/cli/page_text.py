"""A page of the documentation -> what a terminal shows of it, where no link can be followed. Pure."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Set
from functools import partial

from agent.cli.table_text import tables_as_columns

_COMMENT = re.compile(r"^(?:<!--.*?-->|<a id=.*></a>)\n\n?", re.MULTILINE | re.DOTALL)
_ANCHOR = "\n<a id="
_DEEPER = re.compile(r"^#(?=#+ )", re.MULTILINE)
_BREAK_AFTER_COLON = re.compile(r"(?<=:)<br>")
_LINK = re.compile(r"\[([^\[\]]+)\]\((?:([\w./-]+)\.md)?(?:#([\w-]+))?\)")
"""A link to a page beside it, or inside it; one to a web address stays as it is."""
_COMMAND = "statewarden explain"


def section_of(page: str, anchor: str) -> str:
    """Cut the runbook with this anchor out of a page, its headings one level higher."""
    _, _, rest = page.partition(f'<a id="{anchor}"></a>\n\n')
    return _DEEPER.sub("", f"{rest.partition(_ANCHOR)[0].rstrip()}\n")


def page_text(page: str, known: Set[str]) -> str:
    """Take out of a page what only a browser can use.

    `known`: what `explain` prints, by the names that it takes. Gives the page without comments, anchors and line
    breaks of HTML, its tables as columns; each link to a runbook, or to another page that is printed, is its text
    and the command.
    """
    text = _BREAK_AFTER_COLON.sub(" ", _COMMENT.sub("", page)).replace("<br>", "; ")
    return tables_as_columns(_LINK.sub(partial(_link_text, known=known), text))


def _link_text(link: re.Match[str], *, known: Set[str]) -> str:
    text, page, anchor = link[1], posixpath.basename(link[2] or ""), link[3] or ""
    if "/runbooks/README" in f"/{link[2]}" or (page == "README" and "/" not in link[2]):
        page = "runbooks"
    rule = f"rules/{anchor.removeprefix('rules-')}" if anchor.startswith("rules-") else anchor
    name = next((x for x in (rule, page) if x in known), None)
    return text if name is None or _COMMAND in text else f"{text} ({_COMMAND} {name})"
