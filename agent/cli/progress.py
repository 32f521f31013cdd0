"""How far a long command is, in one line of a terminal's standard error that is gone when the answer comes.

It counts and never says a finding. What a task's damage means depends on its application's other tasks, its lock and
its release, known when all of it is read; a verdict before that may have to be taken back. Once all is read the answer
is near: judging is the smaller part of a scan whose files are in the page cache, and less of any other.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import TextIO

from agent.cli.output import width_of
from agent.clock import SystemClock
from agent.contract.codec import printable
from agent.contract.events import Source
from agent.inventory.disk import EntryKind, Unseen
from agent.inventory.observations import TaskReading
from agent.layout.paths import PathRole, StatePath, classify
from agent.observe.kernel_disk import KernelDisk
from agent.observe.observer import Observer

REDRAW_S = 0.2  # not drawn more often, and not at all by a command that is done before

_CLEAR = "\r\x1b[K"


class ProgressLine:
    """One line that is drawn again and again."""

    def __init__(self, out: TextIO | None, seconds: Callable[[], float]) -> None:
        """Draw on `out`; None = on nothing. `seconds` go on."""
        self._out = out
        self._seconds = seconds
        self._drawn_s = seconds()
        self._is_there = False

    def show(self, text: Callable[[], str]) -> None:
        """Draw what `text` returns; it is asked only when it is time."""
        if self._out is None:
            return
        now_s = self._seconds()
        if now_s - self._drawn_s >= REDRAW_S:
            self._drawn_s = now_s
            self.show_now(text())

    def show_now(self, text: str) -> None:
        """Draw without regard to the time: something else begins, and takes long."""
        if self._out is not None:
            self._is_there = True
            self._write(_CLEAR + text[: width_of(self._out) - 1])

    def clear(self) -> None:
        """Leave nothing behind."""
        if self._is_there:
            self._is_there = False
            self._write(_CLEAR)

    def _write(self, text: str) -> None:
        with suppress(OSError, ValueError):  # a terminal that went away is no trouble of the command's
            assert self._out is not None
            self._out.write(text)
            self._out.flush()


@contextmanager
def progress_line(
    out: TextIO | None = None, seconds: Callable[[], float] | None = None
) -> Iterator[ProgressLine]:
    """Give a line that is cleared at the end, however that comes; nothing is drawn where no person watches.

    `out`: where to; None = standard error, if there is one. `seconds`: gives seconds that go on; None = the
    machine's clock.
    """
    line = ProgressLine(_terminal(out or sys.stderr), seconds or SystemClock().monotonic_s)
    try:
        yield line
    finally:
        line.clear()


def _terminal(stream: TextIO | None) -> TextIO | None:
    with suppress(OSError, ValueError):  # closed
        if stream is not None and stream.isatty():
            return stream
    return None


class CountingObserver(Observer):
    """An observer that says how many tasks of a directory it has read."""

    def __init__(self, disk: KernelDisk, progress: ProgressLine) -> None:
        super().__init__(disk)
        self.progress = progress
        self._read = self._of = 0  # tasks of the directory
        self._walk: tuple[str, int] = "", 0  # directory of the tasks, time of the readings

    def task(self, place: StatePath, at_us: int, source: Source) -> TaskReading:
        """Read a task, and count it."""
        walk = place.path.rpartition("/")[0], at_us
        if walk != self._walk:
            self._walk, self._read, self._of = walk, 0, self._number_of_tasks(walk[0])
        self.progress.show(self._how_far)
        self._read += 1
        return super().task(place, at_us, source)

    def _how_far(self) -> str:
        done = min(self._read, self._of)  # one that vanished is asked for once more
        return f"read {done:,} of {self._of:,} tasks of {printable(self._walk[0])}"

    def _number_of_tasks(self, parent: str) -> int:
        entries = self.disk.list(parent)
        if isinstance(entries, Unseen):
            return 0
        found = [f"{parent}/{x.name}" for x in entries if x.kind is EntryKind.DIRECTORY]
        return sum(classify(x).role is PathRole.TASK for x in found)


@contextmanager
def without_collections() -> Iterator[None]:
    """Look for no garbage: an inventory only grows, and to go through it again and again is an eighth of a scan."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
