"""The second half of `compact`: what finished days leave to later audits, each from the day before and its own events.

Per day: write the tables, then the marker. Cut off before it, the day is made again. An `ingest` that adds events of
that day or an earlier one removes the marker; the two never run at the same time.
"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from spark_rollup.bronze import snapshots, table
from spark_rollup.bronze.place import Place, remove_tree
from spark_rollup.bronze.snapshots import MADE, TABLES
from spark_rollup.bronze.store import check_format, read_events
from spark_rollup.columns import ROUTINE, scoped
from spark_rollup.history import carry
from spark_rollup.judging.past import Past
from spark_rollup.schemas import EVENT_ROW

RESTING = 2
"""How many of the newest days are left alone: today, and yesterday, whose late events still arrive. No look-back is
shorter."""

KEEP = 31
"""How many snapshots are kept: the newest."""


def run(spark: SparkSession, bronze: Place, pasts: Sequence[Past]) -> list[str]:
    """Make the snapshot of every day that has none, except the newest `RESTING`.

    Args:
        spark: The session.
        bronze: Where the days are.
        pasts: What rules need of the past.

    Returns:
        Days that were made, oldest first.

    Raises:
        UsageError: bronze is of another format.
    """
    check_format(bronze)
    done: list[str] = []
    while (day := next_day(bronze)) is not None:
        _make(spark, bronze, day, pasts)
        done.append(day)
    base = snapshots.base_day(bronze)
    for day in snapshots.days_made(bronze)[:-KEEP]:
        if day != base:
            _remove(snapshots.folder(bronze, day))
    return done


def next_day(bronze: Place) -> str | None:
    """Find the first day after the newest valid snapshot; None = there is none to be made."""
    made = snapshots.days_made(bronze)
    after = made[-1] if made else ""
    return next((day for day in snapshots.days(bronze)[:-RESTING] if day > after), None)


def _make(spark: SparkSession, bronze: Place, day: str, pasts: Sequence[Past]) -> None:
    place = snapshots.folder(bronze, day)
    before = [made for made in snapshots.days_made(bronze) if made < day]
    earlier = snapshots.read(spark, snapshots.folder(bronze, before[-1])) if before else None
    carried = carry.carry(_events(spark, bronze, day), earlier, snapshots.end_us(day), pasts)
    for name in TABLES:
        _write(getattr(carried, name), place / name)
    spark.catalog.clearCache()
    snapshots.finish(place)


def _events(spark: SparkSession, bronze: Place, day: str) -> DataFrame:
    rows = scoped(read_events(spark, bronze))
    return rows.where(F.col("day") == day).select(*EVENT_ROW.names, ROUTINE)


def _write(rows: DataFrame, target: Place) -> None:
    key = [name for name in ("namespace", "application_id", "task_id", "pod") if name in rows.columns]
    table.replace(rows.coalesce(1).sortWithinPartitions(*key), target)


def _remove(place: Place) -> None:
    (place / MADE).unlink(missing_ok=True)  # first: half a snapshot must not be valid
    remove_tree(place)
