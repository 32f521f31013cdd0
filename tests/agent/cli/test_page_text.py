"""A page as a terminal shows it."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest

from agent.cli import catalogue
from agent.cli.page_text import page_text

KNOWN = {"torn-store", "rules/unaudited", "stopped-volume", "auditor-blind"}


@pytest.mark.parametrize(
    ("page", "folder", "shown"),
    [
        ("a\n\n<!-- generated -->\n\nb\n", "rules", "a\n\nb\n"),
        ("a\n<!-- of two\nlines -->\nb\n", "rules", "a\nb\n"),
        ("one<br>two\n", "rules", "one; two\n"),
        ("| a |\n|---|\n| [it](else.md)<br>b |\n", "", "a\n-----\nit; b\n"),
        ("copy first:<br>`cp`\n", "", "copy first: `cp`\n"),
        ("see [it](torn-store.md#mitigation).", "detectors", "see it (statewarden explain torn-store)."),
        ("see [it](../detectors/torn-store.md).", "rules", "see it (statewarden explain torn-store)."),
        ("see [it](unaudited.md).", "rules", "see it (statewarden explain rules/unaudited)."),
        (
            "see [the\npage](../stopped-volume.md).",
            "rules",
            "see the\npage (statewarden explain stopped-volume).",
        ),
        ("see [it](torn-store.md).", "rules", "see it."),
        ("([what it says](../verify.md)), ([below](#false-positives))", "rules", "(what it says), (below)"),
        ("[`statewarden explain x`](detectors/auditor-blind.md)", "", "`statewarden explain x`"),
        ("[the site](https://kafka.apache.org/a.md)", "rules", "[the site](https://kafka.apache.org/a.md)"),
        ("`increase(x[1d])`, `volumes[*].name`\n", "rules", "`increase(x[1d])`, `volumes[*].name`\n"),
    ],
)
def test_only_what_a_browser_needs_goes(page: str, folder: str, shown: str) -> None:
    """A link becomes a command only where `explain` has the page; what can be typed stays as it is."""
    assert page_text(page, folder, KNOWN) == shown


@pytest.mark.parametrize("name", catalogue.names_to_explain())
def test_explain_prints_nothing_that_only_a_browser_can_use(statewarden: Callable, name: str) -> None:
    """No comment, no HTML, no table, no link; what is named instead can be asked for."""
    said = statewarden("explain", name)
    assert said.code == 0
    assert re.findall(r"<!--|<br|^\|.*|\]\([^)]*\.md", said.out, re.MULTILINE) == []
    for other in set(re.findall(r"\(statewarden explain ([\w/-]+)\)", said.out)):
        assert statewarden("explain", other).code == 0, other
