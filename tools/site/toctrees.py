"""What the pages of contents list, as the menu of the site: a page of contents has it nowhere but in its own links."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator

CONTENTS = {
    "docs/README": "",
    "docs/detectors": "docs/detectors/",
    "docs/rules": "docs/rules/",
    "docs/found/README": "docs/found/",
    "docs/decisions/README": "docs/decisions/",
}
"""Page of contents -> the folder whose pages it lists; empty = all that it links to."""

_ENTRY = re.compile(r"^(?:- |\| )\[([^\]]+)\]\(([^)#\s]+)\.md\)", re.MULTILINE)


def toctrees(page: str, text: str) -> str:
    """Write the `toctree` directives of a page, one per heading that has entries.

    Args:
        page: Its path from the root of the repository, without `.md`.
        text: The page. An entry is a link that begins an item of a list, or a row of a table.

    Returns:
        Markdown to append; empty for a page that is none of contents.
    """
    if page not in CONTENTS:
        return ""
    folder = CONTENTS[page]
    trees = []
    for heading, part in _sections(text):
        found = _ENTRY.findall(part)
        entries = [
            f"{title} </{target}>"
            for title, link in found
            if (target := _from_root(page, link)).startswith(folder)
        ]
        if entries:
            caption = f":caption: {heading}\n" if not folder else ""
            listed = "\n".join(entries)
            trees.append(f"\n```{{toctree}}\n:hidden:\n{caption}\n{listed}\n```\n")
    return "".join(trees)


def _sections(text: str) -> Iterator[tuple[str, str]]:
    for part in text.split("\n## "):
        heading, _, rest = part.partition("\n")
        yield heading, rest


def _from_root(page: str, link: str) -> str:
    return posixpath.normpath(posixpath.join(posixpath.dirname(page), link))
