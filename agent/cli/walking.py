"""One walk over a state directory, task after task; a terminal shows how far it is."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from agent.cli.progress import ProgressLine, progress_line
from agent.contract.codec import printable
from agent.contract.events import Source
from agent.inventory.disk import EntryKind, Unseen
from agent.inventory.observations import TaskReading
from agent.layout.paths import PathRole, StatePath, classify
from agent.observe.kernel_disk import KernelDisk
from agent.observe.observer import Observer


class CountingObserver(Observer):
    """An observer that says how many tasks of a directory it has read."""

    def __init__(self, disk: KernelDisk, progress: ProgressLine) -> None:
        """Read through `disk`."""
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
def walking(directory: Path) -> Iterator[tuple[KernelDisk, CountingObserver]]:
    """Give a disk and an observer for one walk over a state directory."""
    disk = KernelDisk(directory)
    with progress_line() as progress, _without_collections():
        yield disk, CountingObserver(disk, progress)


@contextmanager
def _without_collections() -> Iterator[None]:
    """Look for no garbage: an inventory only grows, and to go through it again and again is an eighth of a scan."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
