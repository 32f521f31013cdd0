"""`ingest --trigger`: the same intake as a stream. Spark keeps the place in a checkpoint; bronze drops repeats.

A turn is: what is new -> `ingest.add_batch` -> the checkpoint's commit. Killed in between, the turn is repeated with
the same files or offsets, and bronze knows the events by their ids.
"""

from __future__ import annotations

import hashlib
import logging
import re
import signal
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession

from spark_rollup.bronze.place import Place
from spark_rollup.bronze.snapshots import P
from spark_rollup.errors import RollupError, SourceError, UsageError
from spark_rollup.intake import ingest
from spark_rollup.intake.claim import claimed
from spark_rollup.intake.ingest import Ingested
from spark_rollup.sources.base import Source
from spark_rollup.spark.failures import damage

CHECKPOINTS = "_checkpoints"
"""Directory in bronze with one checkpoint per source."""

AVAILABLE_NOW = "availableNow"

WHY_CHARS = 300
"""How many characters of Spark's account of a failure are reported."""

Trigger = Mapping[str, Any]
"""Arguments of Spark's `trigger`."""


def parse_trigger(text: str) -> Trigger:
    """Read `availableNow` or `processing 60 seconds`.

    Raises:
        UsageError: neither.
    """
    if text == AVAILABLE_NOW:
        return {AVAILABLE_NOW: True}
    every = re.fullmatch(r"processing (\d+ (?:second|minute|hour)s?)", text)
    if every and not every[1].startswith("0 "):
        return {"processingTime": every[1]}
    raise UsageError(f"--trigger {text!r} is neither {AVAILABLE_NOW} nor like 'processing 60 seconds'")


def checkpoint_in(bronze: P, source: Source) -> P:
    """Return where a source's checkpoint is unless configured otherwise."""
    return bronze / CHECKPOINTS / hashlib.sha256(source.name.encode()).hexdigest()[:16]


def run(
    spark: SparkSession,
    source: Source,
    bronze: Place,
    trigger: Trigger,
    checkpoint: Place,
    report: Callable[[Ingested], None],
) -> None:
    """Ingest what is there, or go on until SIGTERM or Ctrl-C; bronze is claimed turn by turn.

    Raises:
        SourceError: the source does not answer, refuses, went away, or has files that cannot be read; a restart goes
            on from the checkpoint.
        DamagedError: a file of bronze cannot be read.
    """
    failures: list[RollupError] = []
    logging.getLogger("py4j.clientserver").setLevel(
        logging.CRITICAL
    )  # it would print at length what is reported below

    def turn(frame: DataFrame, _: int) -> None:
        try:
            with claimed(bronze, "a stream", frame.sparkSession):
                batch = source.batch_of(frame, ingest.read_ends(bronze))
                counts = ingest.add_batch(frame.sparkSession, batch, bronze) if batch.parts else None
            if counts and counts.unread:  # a turn that ends well is never repeated
                file, why = next(iter(counts.unread.items()))
                raise SourceError(f"{len(counts.unread)} files could not be read, the first is {file}: {why}")
        except RollupError as error:
            failures.append(error)
            raise
        if counts:
            report(counts)

    writer = source.stream(spark, ingest.read_ends(bronze)).writeStream.foreachBatch(turn).trigger(**trigger)
    query = writer.option("checkpointLocation", str(checkpoint)).start()
    try:
        with stop_asked() as asked:
            while not asked.is_set() and not query.awaitTermination(1):
                pass
    except StreamingQueryException as error:
        if failures:
            raise failures[-1] from error
        damaged = damage(error)
        if damaged:
            raise damaged from error
        account = str(error).partition("=== Streaming Query ===")[0]  # what follows is the plan
        why = " ".join(account.split())[-WHY_CHARS:]  # causes come last
        raise SourceError(f"the stream from {source.name} ended: ... {why}") from error
    finally:
        query.stop()  # in the middle of whatever runs: what is not committed is repeated by the next start


@contextmanager
def stop_asked() -> Iterator[threading.Event]:
    """Give a flag that SIGTERM and Ctrl-C raise; an exception from a handler would leave Spark's gateway torn."""
    asked = threading.Event()
    before = {
        number: signal.signal(number, lambda *_: asked.set()) for number in (signal.SIGTERM, signal.SIGINT)
    }
    try:
        yield asked
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
