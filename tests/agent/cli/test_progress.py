"""The line on a terminal that says how far a command is: it comes, it goes, and the answer is the same."""

from __future__ import annotations

import io
import itertools
import os
import pty
import sys
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import TextIO

import pytest

from agent.cli import main, offline
from agent.cli.output import width_of
from agent.cli.progress import REDRAW_S, progress_line
from tests.agent.cli.commands import PLAIN, plant

CLEAR = "\r\x1b[K"


class Terminal(io.StringIO):
    """A person watches; how wide the window is, it does not say."""

    def isatty(self) -> bool:
        return True


class Gone(Terminal):
    def write(self, text: str) -> int:
        raise OSError(5, text)


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    """Give a terminal, and a clock by which every task takes long."""
    ticks = itertools.count(step=2)
    monkeypatch.setattr("agent.clock.SystemClock.monotonic_s", lambda self: float(next(ticks)))
    return Terminal()


def scan(root: Path, *arguments: str, err: TextIO) -> tuple[int, str]:
    """Scan in this process; give the exit code and standard output."""
    out = io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        return main(["scan", str(root), *PLAIN, *arguments]), out.getvalue()


def drawn(terminal: Terminal) -> list[str]:
    return terminal.getvalue().split(CLEAR)[1:]


@pytest.mark.parametrize("arguments", [(), ("--json",), ("--verbose",)])
def test_a_terminal_shows_how_far_it_is(tmp_path: Path, terminal: Terminal, arguments: tuple[str]) -> None:
    """Of each application; nothing is left of it, and the answer is that of a pipe."""
    root = tmp_path / "state"
    for application, task in [("app", "0_0"), ("app", "0_1"), ("other", "0_0")]:
        plant(root, application=application, task=task)
    watched = scan(root, *arguments, err=terminal)
    assert drawn(terminal) == [
        "read 0 of 2 tasks of app",
        "read 1 of 2 tasks of app",
        "read 0 of 1 tasks of other",
        "",
    ]
    pipe = io.StringIO()
    assert scan(root, *arguments, err=pipe) == watched
    assert pipe.getvalue() == ""


def test_a_second_reading_is_announced_and_a_complaint_comes_after_it(
    tmp_path: Path, terminal: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    """For the seconds that it waits there is a reason on the screen, cleared before anything else is said."""
    answers = iter([True])
    monkeypatch.setattr(offline, "needs_second_reading", lambda inventory: next(answers))
    monkeypatch.setattr(offline, "SETTLE_S", 0.0)
    scan(plant(tmp_path / "state"), "--set", "stranger:num_standby_replicas=1", err=terminal)
    assert "files are missing beside a process: reading again in 0 s" in drawn(terminal)
    assert drawn(terminal)[-1].startswith("statewarden: ")


def test_a_short_command_draws_nothing() -> None:
    """Nor clears anything."""
    out, now_s = Terminal(), [0.0]
    with progress_line(out, lambda: now_s[0]) as line:
        now_s[0] = REDRAW_S / 2
        line.show(lambda: "never asked")
    assert out.getvalue() == ""


def test_it_is_drawn_seldom_and_cut() -> None:
    """A line that wraps could not be cleared."""
    out, now_s = Terminal(), [0.0]
    with progress_line(out, lambda: now_s[0]) as line:
        for _ in range(10):
            now_s[0] += REDRAW_S / 4
            line.show(lambda: "x" * 1000)
    assert drawn(out) == ["x" * (width_of(out) - 1)] * 2 + [""]


def test_it_is_cleared_when_the_command_fails() -> None:
    """Ctrl-C, too."""
    out = Terminal()

    def interrupted() -> None:
        with progress_line(out) as line:
            line.show_now("half")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert drawn(out) == ["half", ""]


@pytest.mark.parametrize("out", [Gone(), io.StringIO(), _closed := io.StringIO(), None])
def test_trouble_with_the_terminal_is_none_of_the_command(
    out: TextIO | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It has gone, is none, is closed, or the process was started without one."""
    _closed.close()
    monkeypatch.setattr(sys, "stderr", out)
    with progress_line() as line:
        line.show_now("text")


def test_a_terminal_without_a_size(damaged: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As a container's is at first: zero columns are no width, and the answer comes as on a wide one."""
    ours, theirs = pty.openpty()
    with os.fdopen(theirs, "w") as stream:
        assert width_of(stream) == width_of(io.StringIO())
        monkeypatch.setattr(sys, "stdout", stream)
        assert main(["scan", str(damaged), *PLAIN]) == 1
    os.close(ours)
