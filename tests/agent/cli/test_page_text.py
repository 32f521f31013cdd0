"""A page as a terminal shows it."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.cli import catalogue
from agent.cli.page_text import WIDTH, page_html, page_text, section_of, tables_as_columns
from tests.support.every import every

KNOWN = {"torn-store", "rules/unaudited", "stopped-volume", "runbooks", "auditor-blind"}


@pytest.mark.parametrize(
    ("page", "shown"),
    [
        ("a\n\n<!-- generated -->\n\nb\n", "a\n\nb\n"),
        ("a\n<!-- of two\nlines -->\nb\n", "a b\n"),
        ('a\n\n<a id="x"></a>\n\nb\n', "a\n\nb\n"),
        ("one<br>two\n", "one; two\n"),
        ("| a |\n|---|\n| [it](else.md)<br>b |\n", "a\n-----\nit; b\n"),
        ("copy first:<br>`cp`\n", "copy first: `cp`\n"),
        ("see [it](damaged-files.md#torn-store).", "see it (statewarden explain torn-store)."),
        ("see [it](../runbooks/damaged-files.md#torn-store).", "see it (statewarden explain torn-store)."),
        ("see [it](#torn-store).", "see it (statewarden explain torn-store)."),
        ("see [it](unwatched.md#rules-unaudited).", "see it (statewarden explain rules/unaudited)."),
        ("see [the\npage](../stopped-volume.md).", "see the page (statewarden explain stopped-volume)."),
        ("see [it](README.md#how-far).", "see it (statewarden explain runbooks)."),
        ("see [it](../found/torn-store.md).", "see it."),
        ("see [it](../found/README.md).", "see it."),
        ("see [it](tables.md#stopped-volume).", "see it."),
        ("([what it says](../verify.md)), ([below](#false-positives))", "(what it says), (below)"),
        ("[`statewarden explain x`](runbooks/unwatched.md#auditor-blind)", "`statewarden explain x`"),
        ("[the site](https://kafka.apache.org/a.md)", "[the site](https://kafka.apache.org/a.md)"),
        ("**Do** *not*:\n  it\n\n    $ a **b\n", "Do *not*: it\n\n    $ a **b\n"),
        ("1. one\n   two\n- `a  b`\n```\nx\ny\n```\n", "1. one two\n- `a  b`\n```\nx\ny\n```\n"),
        (
            "1. one:\n\n   ```toml\n   x = 1\n   y = 2\n   ```\n",
            "1. one:\n\n   ```toml\n   x = 1\n   y = 2\n   ```\n",
        ),
        ("`increase(x[1d])`, `volumes[*].name`\n", "`increase(x[1d])`, `volumes[*].name`\n"),
    ],
)
def test_only_what_a_browser_needs_goes(page: str, shown: str) -> None:
    """A link becomes a command only where `explain` has the page; what can be typed stays as it is."""
    assert page_text(page, KNOWN) == shown


def test_prose_is_wrapped_and_what_can_be_typed_is_not_broken() -> None:
    """An item goes on below its text; a heading and a line of code stay as long as they are."""
    page = f"# {'word ' * 9}end\n\n10. one two three (statewarden explain x)\n\n    {'code ' * 9}end\n"
    shown = page_text(page, KNOWN, 22)
    assert shown == page.replace("three (", "three\n    (")


def test_a_runbook_is_cut_out_of_its_page() -> None:
    """Up to the next one, its headings one level higher."""
    page = '# P\n\n<a id="a"></a>\n\n## a\n\n### Do\n\nx\n\n<a id="b"></a>\n\n## b\n'
    assert section_of(page, "a") == "# a\n\n## Do\n\nx\n"
    assert section_of(page, "b") == "# b\n"


@pytest.mark.parametrize(
    ("page", "shown"),
    [
        ("<!-- x -->\n## A `b` <script>\n", "<h2>A <code>b</code> &lt;script&gt;</h2>"),
        ("**Do** *not*:\n\n    $ a <**b\n", "<p><b>Do</b> <i>not</i>:</p><pre>$ a &lt;**b</pre>"),
        ("[it](a.md#torn-store), [else](b.md)\n", '<p><a href="/runbooks/torn-store">it</a>, else</p>'),
        ("1. a:\n\n   ```\n   - x\n   ```\n2. `--a b`\n", '<p class="item">1. a:</p><pre>- x</pre>'
         '<p class="item">2. <code><span>--a</span> b</code></p>'),
        ("| a | b |\n|---|---|\n| 1 | `x\\|y` |\n", "<table><thead><tr><th>a</th><th>b</th></tr></thead>"
         "<tbody><tr><td>1</td><td><code>x|y</code></td></tr></tbody></table>"),
    ],
)  # fmt: skip
def test_a_browser_gets_elements(page: str, shown: str) -> None:
    """Whatever is not markup of ours is escaped."""
    assert page_html(page, KNOWN) == shown


@every("name", catalogue.names_to_explain())
def test_no_markup_is_left_on_a_page_for_a_browser(name: str) -> None:
    """Nor does it load or run anything; what it says is what a terminal shows."""
    page = (catalogue.runbook(name, True) or "").partition("<main")[2]
    prose = re.sub("<(pre|code)>.*?</", "", page, flags=re.DOTALL)
    assert not re.findall(r"\*\*|^\||\]\((?!http)|`", prose, re.MULTILINE)
    assert (
        re.findall(r"<(?!/?(?:p|[abi]|h\d|code|pre|span|table|thead|tbody|t[rdh]|main|body|html)\b)", page)
        == []
    )


@every("name", catalogue.names_to_explain())
def test_explain_prints_nothing_that_only_a_browser_can_use(statewarden: Callable, name: str) -> None:
    """No comment, no HTML, no table, no link; what is named instead can be asked for."""
    said = statewarden("explain", name)
    assert said.code == 0
    assert re.findall(r"<!--|<br|^\|.*|\]\([^)]*\.md", said.out, re.MULTILINE) == []
    assert set(re.findall(r"\(statewarden explain ([\w/-]+)\)", said.out)) <= {*catalogue.names_to_explain()}


WORDS = st.lists(st.text(st.characters(categories=["L", "N"]), min_size=1, max_size=12), max_size=30)
CELL = WORDS.map(" ".join)


def test_short_rows_are_in_columns() -> None:
    """The header is underlined; what is around the table stays."""
    page = "a | b\n\n| name | value |\n|---|---:|\n| `x` | 1 |\n| longer | 22 |\n\nend\n"
    shown = "a | b\n\nname    value\n------  -----\n`x`     1\nlonger  22\n\nend\n"
    assert tables_as_columns(page) == shown


def test_without_a_header_the_first_column_names_the_second() -> None:
    """No empty line, no line of dashes; long text goes on below itself."""
    long = "word " * 30
    lines = tables_as_columns(f"| | |\n|---|---|\n| level | damage |\n| kind | {long}|\n").splitlines()
    assert lines[0] == "level  damage"
    assert lines[1].startswith("kind   word word")
    assert lines[2].startswith("       word word")
    assert {len(line) <= WIDTH for line in lines} == {True}


def test_rows_that_wrap_are_apart() -> None:
    """Else nobody sees where one ends."""
    long = "word " * 30
    shown = tables_as_columns(f"| a | b |\n|---|---|\n| x | {long}|\n| y | 1 |\n")
    assert shown.count("\n\n") == 1
    assert shown.endswith("\n\ny  1\n")


def test_a_bar_in_a_command_parts_no_cells() -> None:
    """It is printed as it is typed."""
    assert tables_as_columns("| a |\n|---|\n| `x \\| y` |\n") == "a\n-------\n`x | y`\n"


@given(st.lists(st.tuples(CELL, CELL, CELL), min_size=1, max_size=6))
def test_no_word_is_lost_and_no_line_too_long(rows: list[tuple[str, str, str]]) -> None:
    """Words are at most 12 characters, so every column has room for one."""
    table = "".join(f"| {' | '.join(row)} |\n" for row in [("k", "l", "m"), ("---",) * 3, *rows])
    shown = tables_as_columns(table)
    assert sorted(shown.split()) == sorted(
        [*" ".join(map(" ".join, rows)).split(), "k", "l", "m", *dashes(shown)]
    )
    assert max(map(len, shown.splitlines())) <= WIDTH


def dashes(shown: str) -> list[str]:
    return shown.splitlines()[1].split()
