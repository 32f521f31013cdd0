"""What progress says."""

from __future__ import annotations

import threading
from io import StringIO
from types import SimpleNamespace
from typing import Any

import pytest

from spark_rollup.spark import progress


class Terminal(StringIO):
    """What a person reads."""

    def isatty(self) -> bool:
        return True


def test_a_terminal_gets_a_line_that_it_takes_a_while():
    """What is no terminal gets nothing: its standard error is for complaints."""
    terminal, file = Terminal(), StringIO()
    progress.announce(terminal)
    progress.announce(file)
    assert "--progress" in terminal.getvalue()
    assert file.getvalue() == ""


class Tracker:
    """Spark's, over a few readings: what runs, as stage -> tasks, done, failed; a stage without numbers is gone."""

    def __init__(self, *readings: dict[int, tuple[int, ...]]) -> None:
        self.readings, self.stop = list(readings), threading.Event()

    def getActiveStageIds(self) -> list[int]:
        if len(self.readings) == 1:
            self.stop.set()
        self.now = self.readings.pop(0)
        return list(self.now)

    def getStageInfo(self, number: int) -> Any:
        names = ("numTasks", "numCompletedTasks", "numFailedTasks")
        numbers = dict(zip(names, self.now[number], strict=True)) if self.now[number] else None
        return SimpleNamespace(stageId=number, **numbers) if numbers else None


TWO = "stage 1: 2 of 2 tasks done, 1 failed and were repeated; stage 3: 1 of 4 tasks done"


@pytest.mark.parametrize(
    ("out", "said"),
    [
        (StringIO(), f"{TWO}\nstage 3: 4 of 4 tasks done\n"),
        (Terminal(), f"\r\033[K{TWO}\r\033[Kstage 3: 4 of 4 tasks done\r\033[K"),
    ],
    ids=["file", "terminal"],
)
def test_what_runs_is_said_when_it_changes(monkeypatch, out, said):
    """In the order of the stages; repeated tasks are worth a word; at the end a terminal's line is empty."""
    monkeypatch.setattr(progress, "POLL_S", 0.0)
    monkeypatch.setattr(progress, "LINE_S", 0.0)
    two = {3: (4, 1, 0), 1: (2, 2, 1), 4: ()}
    tracker = Tracker({}, two, two, {3: (4, 4, 0)}, {})
    progress._show(tracker, out, tracker.stop)
    assert out.getvalue() == said
