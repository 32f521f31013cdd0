"""Tasks of a large directory, read ahead by other processes, for a walk that goes through all of them once.

Each task is read in the order in which the walk would read it (directory, listings, databases, checkpoint), so that
what is said of one task belongs together as before. What was not read ahead, or is asked for in another order, is read
from the disk there and then: reading ahead changes how long a walk takes, never what it finds.
"""

from __future__ import annotations

import gc
import sys
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TypeVar

from agent.cli.forks import Forks, useful_number
from agent.cli.progress import ProgressLine, progress_line
from agent.contract.codec import printable
from agent.contract.events import Source
from agent.inventory.disk import Entry, EntryKind, Unseen
from agent.inventory.observations import (
    CheckpointReading,
    DatabaseReading,
    Flush,
    LockReading,
    StoreOffsets,
    TaskReading,
)
from agent.layout import names
from agent.layout.checkpoint import OffsetEntry
from agent.layout.paths import DATABASE_ROLES, Role, StatePath, classify
from agent.observe.kernel_disk import KernelDisk
from agent.observe.observer import Observer

FEWEST = 400
"""Tasks from which on it is worth it: to start processes takes as long as to read some tens of them."""

Listing = tuple[Entry, ...] | Unseen
Answer = TaskReading | LockReading | DatabaseReading | CheckpointReading | Listing
Answers = deque[tuple[str, Answer]]
"""Path and answer, in the order of the questions."""

T = TypeVar("T")

_RECORDS = (
    CheckpointReading,
    DatabaseReading,
    Flush,
    LockReading,
    OffsetEntry,
    StatePath,
    StoreOffsets,
    TaskReading,
)


class AheadDisk(KernelDisk):
    """The real directory, of which some listings are known."""

    def __init__(self, root: Path) -> None:
        """Remember what to read."""
        super().__init__(root)
        self.answers: Answers = deque()

    def list(self, path: str) -> Listing:
        """Give the listing that was read ahead, or list the directory."""
        if self.answers:
            place, answer = self.answers[0]
            if place == path and isinstance(answer, (tuple, Unseen)):
                self.answers.popleft()
                return answer
        return super().list(path)


class AheadObserver(Observer):
    """An observer whose tasks other processes read, from the first one of a directory on."""

    def __init__(self, disk: AheadDisk, number: int, fewest: int, progress: ProgressLine) -> None:
        """Read through `disk`; so many processes, for a directory that has at least `fewest` tasks."""
        super().__init__(disk)
        self.progress = progress
        self._read = self._of = 0  # tasks of the directory
        self._ahead = disk
        self._number = number
        self._fewest = fewest
        self._started: tuple[str, int] = "", 0  # directory of the tasks, time of the readings
        self._forks: Forks | None = None

    def task(self, place: StatePath, at_us: int, source: Source) -> TaskReading:
        """Give the task that was read ahead, and make ready what belongs to it; or read it."""
        self._ahead.answers = deque()
        asked = place.path.rpartition("/")[0], at_us
        if asked != self._started:
            self._begin(*asked, source)
        self.progress.show(self._how_far)
        self._read += 1
        found = self._forks.take(place.path) if self._forks is not None else None
        if isinstance(found, deque):
            self._ahead.answers = found
        return self._next(TaskReading, place) or super().task(place, at_us, source)

    def lock(self, place: StatePath, at_us: int, source: Source, *, announced: bool = False) -> LockReading:
        """Give what was read ahead, or read it."""
        return self._next(LockReading, place) or super().lock(place, at_us, source, announced=announced)

    def database(
        self, place: StatePath, at_us: int, source: Source, *, announced_us: int = 0
    ) -> DatabaseReading:
        """Give what was read ahead, or read it."""
        found = self._next(DatabaseReading, place)
        return found or super().database(place, at_us, source, announced_us=announced_us)

    def checkpoint(self, place: StatePath, at_us: int, source: Source) -> CheckpointReading:
        """Give what was read ahead, or read it."""
        found = self._next(CheckpointReading, place)
        return found or super().checkpoint(place, at_us, source)

    def close(self) -> None:
        """End what still reads."""
        if self._forks is not None:
            self._forks.close()
        self._forks = None

    def _next(self, kind: type[T], place: StatePath) -> T | None:
        """Take the next answer if it is to this question."""
        answers = self._ahead.answers
        if not answers or answers[0][0] != place.path or not isinstance(answers[0][1], kind):
            return None
        return answers.popleft()[1]  # type: ignore[return-value]

    def _how_far(self) -> str:
        done = min(self._read, self._of)  # one that vanished is asked for once more
        return f"read {done:,} of {self._of:,} tasks of {printable(self._started[0])}"

    def _begin(self, parent: str, at_us: int, source: Source) -> None:
        self._started = parent, at_us
        self.close()
        entries = self.disk.list(parent)
        inner = (
            [] if isinstance(entries, Unseen) else [f"{parent}/{x.name}" for x in entries if _is_directory(x)]
        )
        tasks = sorted(x for x in inner if classify(x).role is Role.TASK)
        self._read, self._of = 0, len(tasks)
        if len(tasks) >= self._fewest:
            observer = Observer(self.disk)
            read = partial(_read_task, observer, at_us=at_us, source=source)
            self._forks = Forks(tasks, read, self._number, _RECORDS)


def _read_task(observer: Observer, path: str, *, at_us: int, source: Source) -> Answers:
    """Ask what the walk will ask of a task, in its order. What it would read on later is left to it."""
    place = classify(path)
    with observer.disk.stay_in(path):
        task = observer.task(place, at_us, source)
        answers: Answers = deque([(path, task)])
        found: set[str] = set()
        for inner in _list(observer, path, answers):
            found.update(_list(observer, inner, answers))
        for database in (x for x in map(classify, sorted(found)) if x.role in DATABASE_ROLES):
            if task.lock is not None:
                lock = classify(f"{path}/{names.LOCK_FILE}")
                answers.append((lock.path, observer.lock(lock, at_us, source)))
            reading = observer.database(database, at_us, source)
            if not reading.goes_on and not reading.waits:
                answers.append((database.path, reading))
        checkpoint = classify(f"{path}/{names.CHECKPOINT_FILE}")
        answers.append((checkpoint.path, observer.checkpoint(checkpoint, at_us, source)))
    return answers


def _list(observer: Observer, path: str, answers: Answers) -> list[str]:
    """List a directory, note the answer, and give the paths of the directories in it."""
    entries = observer.disk.list(path)
    answers.append((path, entries))
    return [] if isinstance(entries, Unseen) else [f"{path}/{x.name}" for x in entries if _is_directory(x)]


def _is_directory(entry: Entry) -> bool:
    return entry.kind is EntryKind.DIRECTORY


@contextmanager
def reading_ahead(
    directory: Path, number: int | None = None, fewest: int = FEWEST
) -> Iterator[tuple[AheadDisk, AheadObserver]]:
    """Give a disk and an observer for one walk over a directory; a terminal shows how far it is.

    Args:
        directory: The state directory.
        number: How many processes read ahead; None = as many as are of use here, and none where only one would run.
        fewest: Tasks in a directory from which on they do.
    """
    if number is None:
        useful = useful_number()
        number = useful if useful > 1 else 0
    disk = AheadDisk(directory)
    with progress_line() as progress, _without_collections():
        observer = AheadObserver(disk, number, fewest if number else sys.maxsize, progress)
        try:
            yield disk, observer
        finally:
            observer.close()


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
