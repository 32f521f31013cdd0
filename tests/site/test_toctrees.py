"""The menu of the site is what the pages of contents list, in their order; every page is in one of them, once."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

from tests.architecture.test_repository_text import tracked_files
from tools.site.toctrees import CONTENTS, listed, toctrees

FRAGMENT = re.compile(r"docs/changelog\.d/[^.]+\..+\.md")


def test_an_index_gets_one_menu_per_heading() -> None:
    """Items of lists and rows of tables, by their first link; a link inside a sentence is none."""
    entries = "- [A page](a.md): for [b](b.md)\n- [Up](../README.md)\n"
    page = f"# All\n\nSee [x](x.md).\n\n## One\n\n{entries}\n## Two\n\nNothing.\n"
    assert toctrees("docs/README", page) == (
        "\n```{toctree}\n:hidden:\n:caption: One\n\nA page </docs/a>\nUp </README>\n```\n"
    )


def test_a_folder_lists_its_own_pages_only() -> None:
    """Its captions would be headings of the menu, so it has none."""
    page = "# Runbooks\n\n| page | |\n|---|---|\n| [r](r.md) | |\n| [other](../o.md) | |\n"
    assert toctrees("docs/runbooks/README", page) == "\n```{toctree}\n:hidden:\n\nr </docs/runbooks/r>\n```\n"


def test_other_pages_stay_as_they_are() -> None:
    """Only pages of contents have a menu."""
    assert toctrees("docs/limits", "# Limits\n\n- [A](a.md)\n") == ""


def test_every_page_is_listed_once(repository: Path) -> None:
    """A page that none lists could be found by search only."""
    times = Counter(
        target for page in CONTENTS for target in listed(page, (repository / f"{page}.md").read_text("utf-8"))
    )
    assert {name: count for name, count in times.items() if count > 1} == {}
    pages = {
        path.relative_to(repository).with_suffix("").as_posix()
        for path in tracked_files(repository)
        if path.suffix == ".md" and not FRAGMENT.fullmatch(path.relative_to(repository).as_posix())
    }
    read = {x for x in pages if "/" not in x or x.startswith(("docs/", "contributing/", "helm/"))}
    assert read - set(times) == {"docs/README"}
    assert set(times) - pages == set()


def test_a_page_is_listed_by_its_title(repository: Path) -> None:
    """By all of it, or its beginning; a chart's title is its name alone."""
    index = (repository / "docs/README.md").read_text("utf-8")
    for title, target in re.findall(r"^- \[([^\]]+)\]\(([^)]+)\): \S", index, re.MULTILINE):
        lines = (repository / "docs" / target).read_text("utf-8").splitlines()
        heading = next(line for line in lines if line.startswith("# "))
        assert heading.startswith(f"# {title.removeprefix('Chart ')}"), target
    assert index.count("\n- [") == len(listed("docs/README", index))
