"""What the pages of contents list, as the menu of the site: a page of contents has it nowhere but in its own links."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator

CONTENTS = {"docs/README": "", "docs/runbooks/README": "docs/runbooks/", "docs/found/README": "docs/found/"}
"""Page of contents -> the folder whose pages it lists; empty = all that it links to."""

_ENTRY = re.compile(r"^(?:- |\| )\[([^\]]+)\]\(([^)#\s]+)\.md\)", re.MULTILINE)


def toctrees(page: str, text: str) -> str:
    """Write the `toctree` directives of a page, to be appended: one per heading that has entries.

    An entry is a link that begins an item or a row; a page that is none of contents has none.
    """
    if page not in CONTENTS:
        return ""
    trees = []
    for heading, entries in _listed(page, text):
        caption = "" if CONTENTS[page] else f":caption: {heading}\n"
        lines = "".join(f"{title} </{target}>\n" for title, target in entries)
        trees.append(f"\n```{{toctree}}\n:hidden:\n{caption}\n{lines}```\n")
    return "".join(trees)


def listed(page: str, text: str) -> list[str]:
    """List the pages that a page of contents lists, from the root of the repository, without `.md`."""
    return [target for _, entries in _listed(page, text) for _, target in entries]


def _listed(page: str, text: str) -> Iterator[tuple[str, list[tuple[str, str]]]]:
    """Give each heading that has entries: titles and pages."""
    folder = posixpath.dirname(page)
    for part in text.split("\n## "):
        found = [
            (title, posixpath.normpath(posixpath.join(folder, link))) for title, link in _ENTRY.findall(part)
        ]
        entries = [x for x in found if x[1].startswith(CONTENTS[page])]
        if entries:
            yield part.partition("\n")[0], entries
