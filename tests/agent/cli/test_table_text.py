"""Tables of a page as a terminal shows them."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from agent.cli.table_text import WIDTH, tables_as_columns

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
