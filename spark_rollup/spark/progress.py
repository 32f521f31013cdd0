"""`--progress`: Spark's progress on stderr: a bar on a terminal, a line per finished stage elsewhere.

A thread asks Spark's status tracker twice a second. Spark's own bar would not do: it knows terminals only.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TextIO

from pyspark import StatusTracker
from pyspark.sql import SparkSession

POLL_S = 0.5
"""Seconds between two readings."""

BAR_CHARS = 30

_AHEAD = 20
"""Stages that Spark skipped have numbers, too: so many are passed over when looking for the next one."""


@dataclass(frozen=True, slots=True)
class Stage:
    """One stage as Spark reports it."""

    number: int
    tasks: int
    done: int
    failed: int

    @property
    def is_finished(self) -> bool:
        """Whether all its tasks are done."""
        return self.tasks > 0 and self.done >= self.tasks


def bar(stages: Sequence[Stage], finished: int) -> str:
    """Draw one line for the stages that run now.

    Args:
        stages: Those that run.
        finished: How many were finished before.
    """
    tasks, done = sum(stage.tasks for stage in stages), sum(stage.done for stage in stages)
    full = BAR_CHARS * done // tasks if tasks else 0
    names = ", ".join(str(stage.number) for stage in stages) or "-"
    return f"[{'#' * full}{'.' * (BAR_CHARS - full)}] {done}/{tasks} tasks, stage {names}; {finished} stages done"


def line(stage: Stage) -> str:
    """Write one line for a finished stage."""
    failed = f", {stage.failed} failed and were repeated" if stage.failed else ""
    return f"stage {stage.number}: {stage.done} of {stage.tasks} tasks done{failed}"


class Watcher:
    """Turns what the tracker says into what is new since the reading before."""

    def __init__(self) -> None:
        """Begin before the first stage."""
        self.first = 0
        self._counted: set[int] = set()

    @property
    def finished(self) -> int:
        """How many stages were finished so far."""
        return len(self._counted)

    def poll(self, known: Sequence[Stage], active: Sequence[int]) -> list[Stage]:
        """Give the stages that finished since the last reading.

        Args:
            known: Stages that the tracker knows, from `first` on.
            active: Numbers of those that run. What is below them and not finished was skipped: a stage has a
                higher number than the stages that it waits for.
        """
        fresh = [stage for stage in known if stage.is_finished and stage.number not in self._counted]
        self._counted.update(stage.number for stage in fresh)
        self.first = max(self.first, min(active, default=0))
        return fresh


def announce(out: TextIO) -> None:
    """Say to a person at a terminal that it takes a while: Spark says nothing until it is done."""
    if out.isatty():
        out.write(
            "starting Spark (half a minute to a minute for little input); --progress shows the progress\n"
        )
        out.flush()


@contextmanager
def shown(spark: SparkSession, out: TextIO) -> Iterator[None]:
    """Show progress until the block ends."""
    stop = threading.Event()
    thread = threading.Thread(target=_show, args=(spark, out, stop), name="progress", daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


def _show(spark: SparkSession, out: TextIO, stop: threading.Event) -> None:
    watcher, terminal, last = Watcher(), out.isatty(), False
    tracker = spark.sparkContext.statusTracker()
    while not last:
        last = stop.wait(POLL_S)
        active = list(tracker.getActiveStageIds())
        known = _known(tracker, watcher.first)
        fresh = watcher.poll(known, active)
        if terminal:
            running = [stage for stage in known if stage.number in active]
            out.write("\r\033[K" + ("" if last else bar(running, watcher.finished)))
        else:
            out.writelines(f"{line(stage)}\n" for stage in fresh)
        out.flush()


def _known(tracker: StatusTracker, first: int) -> list[Stage]:
    found, absent, number = [], 0, first
    while absent < _AHEAD:
        info = tracker.getStageInfo(number)
        if info is not None:
            found.append(Stage(number, info.numTasks, info.numCompletedTasks, info.numFailedTasks))
        absent = absent + 1 if info is None else 0
        number += 1
    return found
