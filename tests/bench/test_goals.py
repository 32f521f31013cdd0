"""The page has the goals that the benchmarks judge by."""

from __future__ import annotations

from pathlib import Path

from tests.bench.goals import GOALS
from tests.bench.measure import ROOT
from tests.bench.report import Measured, Options, table


def test_page_has_every_goal() -> None:
    """Each is the first cell of a row of docs/evidence.md."""
    lines = (ROOT / "docs" / "evidence.md").read_text("utf-8").splitlines()
    assert {goal.text for goal in GOALS.values()} <= {x.split("|")[1].strip() for x in lines if x[:2] == "| "}


def test_before_and_after_are_compared_round_by_round(tmp_path: Path) -> None:
    """A round in which the machine was slow for both does not change the ratio; a missed goal is told so."""
    met = Measured("watching", [1.0, 10.0, 1.2], [2.0, 20.0, 2.4], "inotifywait 1", "watching")
    missed = Measured("x", [7.0], goal="semantics")
    assert met.row()[3] == "0.50 x"
    assert [x.row()[5].rpartition(": ")[2] for x in (met, missed)] == ["met", "**missed**"]
    shown = table(
        [met, missed, Measured("y", [1.0])], Options(full=True, rounds=1, work=tmp_path, memory=tmp_path)
    )
    assert sum(line.startswith("| ") for line in shown.splitlines()) == 2 + 3
