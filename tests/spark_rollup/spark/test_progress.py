"""What progress says; that a run shows it is in test_cli."""

from __future__ import annotations

from io import StringIO

from spark_rollup.spark.progress import Stage, Watcher, announce, bar, line


class Terminal(StringIO):
    """What a person reads."""

    def isatty(self) -> bool:
        return True


def test_a_terminal_gets_a_line_that_it_takes_a_while():
    """What is no terminal gets nothing: its standard error is for complaints."""
    terminal, file = Terminal(), StringIO()
    announce(terminal)
    announce(file)
    assert "--progress" in terminal.getvalue()
    assert file.getvalue() == ""


def test_a_stage_is_reported_once_when_it_is_finished():
    """Stages finish in any order; each is told once."""
    watcher = Watcher()
    running, done = Stage(0, 4, 1, 0), Stage(1, 2, 2, 0)
    assert watcher.poll([running, done], [0]) == [done]
    assert watcher.poll([Stage(0, 4, 4, 0), done], []) == [Stage(0, 4, 4, 0)]
    assert watcher.poll([Stage(0, 4, 4, 0), done], []) == []
    assert watcher.finished == 2


def test_skipped_stages_are_left_behind():
    """A stage that Spark skipped never finishes; it is not asked about for ever."""
    watcher = Watcher()
    watcher.poll([Stage(0, 3, 0, 0), Stage(1, 2, 1, 0)], [1])
    assert watcher.first == 1
    watcher.poll([Stage(1, 2, 2, 0)], [])
    assert watcher.first == 1


def test_the_bar_adds_stages_up():
    """One bar for all that runs."""
    assert bar([Stage(3, 4, 1, 0), Stage(4, 2, 2, 0)], 2) == (
        "[###############...............] 3/6 tasks, stage 3, 4; 2 stages done"
    )
    assert "0/0 tasks, stage -" in bar([], 0)


def test_a_line_shows_repeated_tasks():
    """Failed tasks are worth a word."""
    assert line(Stage(3, 4, 4, 0)) == "stage 3: 4 of 4 tasks done"
    assert line(Stage(3, 4, 4, 2)) == "stage 3: 4 of 4 tasks done, 2 failed and were repeated"
