"""Sphinx's settings for the documentation site, which `tools/site/build.py` builds from the pages as they are."""

from __future__ import annotations

import re
import sys
import tomllib
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.transforms import SphinxTransform

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from tools.site.toctrees import listed, toctrees  # noqa: E402 - the checkout

project = "statewarden"
version = release = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["version"]
html_title = f"{project} {version}"
language = "en"
smartquotes = False  # dashes and dots of a command stay what they are, in a sentence too

# Elsewhere than in docs and contributing a page is what the index lists: charts, tests, the root of the repository.
root_doc = "docs/README"
_LISTED = [f"{x}.md" for x in listed(root_doc, (ROOT / f"{root_doc}.md").read_text("utf-8"))]
_TREES = {"docs", "contributing", *(x.partition("/")[0] for x in _LISTED)}
include_patterns = ["docs/**.md", "contributing/*.md", *_LISTED]
exclude_patterns = [
    "docs/changelog.d/*.*.md",
    *(x.name for x in ROOT.iterdir() if x.is_dir() and x.name not in _TREES),
]

extensions = ["myst_parser"]
myst_heading_anchors = 6
myst_heading_anchors_html_ids = True  # the anchors that the same pages have where Markdown is shown as it is
myst_disable_syntax = ["myst_role", "myst_target", "myst_block_break", "myst_line_comment"]

html_theme = "furo"
html_static_path = ["static"]
html_css_files = ["statewarden.css"]
html_copy_source = False
html_show_copyright = False
html_show_sphinx = False
html_use_index = False
html_permalinks_icon = "#"
highlight_language = "none"

_ANCHOR = re.compile(r'<a id="([\w-]+)">')


class AnchorsByHand(SphinxTransform):  # type: ignore[misc] # Sphinx is in a separate environment
    """Let links lead to anchors that a page sets as HTML, which Markdown has no other way to set in a table."""

    default_priority = 10  # before links are resolved

    def apply(self, **_: Any) -> None:
        """Add each to the page's known anchors."""
        for raw in self.document.findall(nodes.raw):
            for name in _ANCHOR.findall(raw.astext()):
                self.document.myst_slugs[name] = (raw.line, name, "")


def setup(app: Sphinx) -> dict[str, object]:
    """Connect what is ours."""
    app.connect("source-read", _with_menu)
    app.add_transform(AnchorsByHand)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def _with_menu(_: Sphinx, page: str, source: list[str]) -> None:
    source[0] += toctrees(page, source[0])
