"""The second half of `compact`: what is kept of days that are over.

Each day by itself: its rows, then the note that lists it. Cut off before that, the day is made again. An `ingest` that
adds events of the day takes it off the list; the two never run at the same time.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from agent.contract.events import Kind
from spark_rollup.bronze import snapshots
from spark_rollup.bronze.place import Place, size_bytes
from spark_rollup.bronze.snapshots import BEAT
from spark_rollup.bronze.store import EVENTS, check_format, laid_out, read_events
from spark_rollup.columns import ROUTINE, TASK, is_notable, scoped
from spark_rollup.fleet import keep
from spark_rollup.fleet.events import Event
from spark_rollup.fleet.meta import Row
from spark_rollup.fleet.thin import OfPod
from spark_rollup.judging.job import Wide, by_pods, counted, partitions
from spark_rollup.schemas import EVENT_ROW, HEARD
from spark_rollup.spark.rows import frame_of

RESTING = 2
"""How many of the newest days are left alone: today, and yesterday, whose late events still arrive. No look-back is
shorter."""

SHARE = 4
"""A snapshot takes less than this part of its day's bytes."""


def run(spark: SparkSession, bronze: Place) -> list[str]:
    """Make the snapshot of every day that has none, except the newest `RESTING`.

    Returns:
        Days that were made, oldest first.

    Raises:
        UsageError: bronze is of another format, or days were removed by another version.
    """
    check_format(bronze)
    known = snapshots.note(bronze)
    due = [day for day in snapshots.days(bronze)[:-RESTING] if day > known.removed and day not in known.days]
    for day in due:
        rows = _rows(spark, scoped(read_events(spark, bronze)), day)
        dated = rows.withColumn("day", F.lit(day))
        stored_bytes = size_bytes(bronze / EVENTS / f"day={day}")
        snapshots.write(bronze, day, laid_out(dated, stored_bytes // SHARE))
        spark.catalog.clearCache()
    return due


def _rows(spark: SparkSession, events: DataFrame, day: str) -> DataFrame:
    """Choose the rows of a day: of tasks that an agent reports something of, by the day after, all of them."""
    read = events.where(F.col("day") == day).select(*EVENT_ROW.names, ROUTINE)
    by_then = F.col("day").isin(day, snapshots.day_of(snapshots.end_us(day)))
    told = (
        events.where(is_notable() & by_then & (F.col("kind") == Kind.FINDING.value)).select(*TASK).distinct()
    )
    rest = read.join(F.broadcast(told), list(TASK), "left_anti")
    wide = Wide(read, read.limit(0))
    whose = rest.select(*Event._fields).rdd.map(lambda row: _whose(Event(*row)))
    chosen = whose.groupByKey(partitions(wide)).flatMap(_ids)
    ids = spark.createDataFrame(chosen, "id string")
    whole = read.join(F.broadcast(told), list(TASK), "left_semi")
    kept = whole.unionByName(rest.join(ids, "id", "left_semi")).withColumn(BEAT, F.lit(None).cast(HEARD))
    heard = frame_of(spark, by_pods(wide, counted(wide), _heard), HEARD).select(
        F.struct(*HEARD.names).alias(BEAT)
    )
    return kept.unionByName(heard, allowMissingColumns=True)


def _whose(event: Event) -> tuple[tuple[str | None, ...], Event]:
    if event.task_id is None:
        return (event.namespace, event.pod), event
    return (event.namespace, event.application_id, event.task_id), event


def _ids(group: tuple[tuple[str | None, ...], Iterable[Event]]) -> Iterator[tuple[str]]:
    choose = keep.of_task if len(group[0]) > 2 else keep.of_pod
    yield from ((one,) for one in choose(list(group[1])))


def _heard(_: tuple[str, str], given: OfPod) -> Iterator[Row]:
    yield from (x._asdict() for x in keep.runs(given.beats, given.torn))
