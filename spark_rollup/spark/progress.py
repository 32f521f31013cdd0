"""`--progress`: what Spark does now, on stderr: one line that is written over on a terminal, elsewhere one at a time.

Spark's own bar would not do: it knows terminals only.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TextIO

from pyspark.sql import SparkSession

POLL_S, LINE_S = 0.5, 5.0
"""Seconds between two readings, on a terminal and elsewhere."""


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
    stop, tracker = threading.Event(), spark.sparkContext.statusTracker()
    thread = threading.Thread(target=_show, args=(tracker, out, stop), name="progress", daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


def _show(tracker: Any, out: TextIO, stop: threading.Event) -> None:
    before, over = "", "\r\033[K" if out.isatty() else ""
    while not stop.wait(POLL_S if over else LINE_S):
        text = line(tracker)
        if text not in ("", before):
            out.write(f"{over}{text}" if over else f"{text}\n")
            out.flush()
        before = text
    out.write(over)
    out.flush()


def line(tracker: Any) -> str:
    """Describe the stages that run; empty = none does."""
    found = [tracker.getStageInfo(number) for number in sorted(tracker.getActiveStageIds())]
    return "; ".join(
        f"stage {stage.stageId}: {stage.numCompletedTasks} of {stage.numTasks} tasks done"
        + (f", {stage.numFailedTasks} failed and were repeated" if stage.numFailedTasks else "")
        for stage in found
        if stage is not None
    )
