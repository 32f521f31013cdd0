"""A page as a terminal shows it."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest

from agent.cli import catalogue
from agent.cli.page_text import page_text, section_of

KNOWN = {"torn-store", "rules/unaudited", "stopped-volume", "runbooks", "auditor-blind"}


@pytest.mark.parametrize(
    ("page", "shown"),
    [
        ("a\n\n<!-- generated -->\n\nb\n", "a\n\nb\n"),
        ("a\n<!-- of two\nlines -->\nb\n", "a\nb\n"),
        ('a\n\n<a id="x"></a>\n\nb\n', "a\n\nb\n"),
        ("one<br>two\n", "one; two\n"),
        ("| a |\n|---|\n| [it](else.md)<br>b |\n", "a\n-----\nit; b\n"),
        ("copy first:<br>`cp`\n", "copy first: `cp`\n"),
        ("see [it](damaged-files.md#torn-store).", "see it (statewarden explain torn-store)."),
        ("see [it](../runbooks/damaged-files.md#torn-store).", "see it (statewarden explain torn-store)."),
        ("see [it](#torn-store).", "see it (statewarden explain torn-store)."),
        ("see [it](unwatched.md#rules-unaudited).", "see it (statewarden explain rules/unaudited)."),
        ("see [the\npage](../stopped-volume.md).", "see the\npage (statewarden explain stopped-volume)."),
        ("see [it](README.md#how-far).", "see it (statewarden explain runbooks)."),
        ("see [it](../found/README.md).", "see it."),
        ("([what it says](../verify.md)), ([below](#false-positives))", "(what it says), (below)"),
        ("[`statewarden explain x`](runbooks/unwatched.md#auditor-blind)", "`statewarden explain x`"),
        ("[the site](https://kafka.apache.org/a.md)", "[the site](https://kafka.apache.org/a.md)"),
        ("`increase(x[1d])`, `volumes[*].name`\n", "`increase(x[1d])`, `volumes[*].name`\n"),
    ],
)
def test_only_what_a_browser_needs_goes(page: str, shown: str) -> None:
    """A link becomes a command only where `explain` has the page; what can be typed stays as it is."""
    assert page_text(page, KNOWN) == shown


def test_a_runbook_is_cut_out_of_its_page() -> None:
    """Up to the next one, its headings one level higher."""
    page = '# P\n\n<a id="a"></a>\n\n## a\n\n### Do\n\nx\n\n<a id="b"></a>\n\n## b\n'
    assert section_of(page, "a") == "# a\n\n## Do\n\nx\n"
    assert section_of(page, "b") == "# b\n"


@pytest.mark.parametrize("name", catalogue.names_to_explain())
def test_explain_prints_nothing_that_only_a_browser_can_use(statewarden: Callable, name: str) -> None:
    """No comment, no HTML, no table, no link; what is named instead can be asked for."""
    said = statewarden("explain", name)
    assert said.code == 0
    assert re.findall(r"<!--|<br|^\|.*|\]\([^)]*\.md", said.out, re.MULTILINE) == []
    for other in set(re.findall(r"\(statewarden explain ([\w/-]+)\)", said.out)):
        assert statewarden("explain", other).code == 0, other
