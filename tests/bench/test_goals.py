"""The page has the goals that the benchmarks judge by."""

from __future__ import annotations

from pathlib import Path

from tests.bench.goals import GOALS
from tests.bench.measure import ROOT
from tests.bench.report import Measured, Options, Section, compared, goal_rows


def test_page_has_every_goal() -> None:
    """Each is the first cell of a row of docs/evidence.md."""
    rows = [
        line for line in (ROOT / "docs" / "evidence.md").read_text("utf-8").splitlines() if line[:2] == "| "
    ]
    told = {row.split("|")[1].strip() for row in rows}
    assert {goal.text for goal in GOALS.values()} <= told


def test_before_and_after_are_compared_round_by_round() -> None:
    """A round in which the machine was slow for both does not change the ratio."""
    one = Measured("watching", [1.0, 10.0, 1.2], [2.0, 20.0, 2.4], "inotifywait 1", "watching")
    assert one.row()[3] == "0.50 x"
    assert one.row()[5].endswith("met")


def test_rows_of_a_run(tmp_path: Path) -> None:
    """What has no goal is in the comparison only; a missed goal is told so."""
    options = Options(full=True, rounds=1, work=tmp_path, memory=tmp_path)
    section = Section(
        "s", "m", ("a",), [], measured=[Measured("x", [7.0], goal="semantics"), Measured("y", [1.0])]
    )
    assert len(compared([section], options)) == 1 + 2 + 2
    (row,) = goal_rows([section], options)[2:]
    assert "7.00 x" in row
    assert "**missed**" in row
