"""Join the many small files of finished days; readers see every event all the time, at worst twice.

Per day: write the joined files aside, raise the flag, move them in, remove the old ones, lower the flag. Whatever
step is cut off, the next run starts the day again and drops the repeats. Nothing is removed before the new files are
known to hold every event of the old ones.
"""

from __future__ import annotations

import shutil
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from spark_rollup.bronze.dedupe import one_row_per_id
from spark_rollup.bronze.load import AWAITED
from spark_rollup.bronze.snapshots import DAY_US, read_parquet
from spark_rollup.bronze.store import (
    AT,
    COMPACTING,
    move_in,
    number_of_files,
    read_dated_quarantine,
    read_events,
    remove,
    write_events,
    write_quarantine,
)
from spark_rollup.errors import DamagedError

STAGING = "_staging"

KEEP_DAYS = 31
"""So long the quarantine keeps a line or file of which no other version will make more."""


def run(spark: SparkSession, bronze: Path) -> int:
    """Compact each day but the newest that lies in more files than needed, and what an earlier run left half done.

    Returns:
        Number of days compacted.

    Raises:
        DamagedError: events would be lost; nothing was removed.
    """
    flag = bronze / COMPACTING
    half_done = flag.read_text(encoding="ascii").split() if flag.exists() else []
    days = sorted(path.name.removeprefix("day=") for path in (bronze / "events").glob("day=*"))
    chosen = [day for day in days if day in half_done or (day != days[-1] and _is_scattered(bronze, day))]
    for day in chosen:
        rows = of_day(spark, bronze, day)
        rewrite(spark, bronze, day, rows, rows)
    flag.unlink(missing_ok=True)
    return len(chosen)


def _is_scattered(bronze: Path, day: str) -> bool:
    """Tell whether a day lies in more files than it would be written in: routine events and others lie apart."""
    files = _files(bronze, day)
    return len(files) > number_of_files(sum(path.stat().st_size for path in files)) + 1


def _files(bronze: Path, day: str) -> list[Path]:
    return sorted((bronze / "events" / f"day={day}").rglob("*.parquet"))


def of_day(spark: SparkSession, bronze: Path, day: str) -> DataFrame:
    """Read the events of a day."""
    return read_events(spark, bronze).where(F.col("day") == day)


def rewrite(spark: SparkSession, bronze: Path, day: str, rows: DataFrame, wanted: DataFrame) -> None:
    """Put the rows of a day, each once, in the place of its files.

    Args:
        spark: Session.
        bronze: Bronze directory.
        day: `YYYY-MM-DD`.
        rows: What to write.
        wanted: What must be there afterwards: without all its ids nothing is removed.

    Raises:
        DamagedError: an event would be lost.
    """
    old, staging = _files(bronze, day), bronze / STAGING
    size_bytes = sum(path.stat().st_size for path in old)
    write_events(one_row_per_id(rows), staging, size_bytes, mode="overwrite")
    written = read_parquet(spark, staging, wanted.select("id").schema)
    lost = wanted.select("id").distinct().join(written, "id", "left_anti").count()
    if lost:
        shutil.rmtree(staging)
        raise DamagedError(
            f"{day}: {lost} events would be lost in the joined files, so nothing of {bronze} was changed: see with "
            f"`fsck` and by another copy whether its volume can be trusted, then try again"
        )
    (bronze / COMPACTING).write_text(f"{day}\n", encoding="ascii")
    move_in(staging, bronze / "events")
    remove(old)
    shutil.rmtree(staging)
    (bronze / COMPACTING).unlink()
    spark.catalog.clearCache()


def tidy(spark: SparkSession, bronze: Path, now_us: int) -> int:
    """Join the files of the quarantine, without what lies there for longer than `KEEP_DAYS`.

    What waits for another version of the rollup stays.

    Args:
        spark: Session.
        bronze: Bronze directory.
        now_us: Microseconds since the epoch.

    Returns:
        Number of lines and files that were dropped.
    """
    old, staging = sorted((bronze / "quarantine").glob("*.parquet")), bronze / STAGING
    if not old:
        return 0
    rows = read_dated_quarantine(spark, old).withColumn(AT, F.coalesce(AT, F.lit(now_us)))
    stays = F.col("reason").isin(*AWAITED) | (F.col(AT) >= now_us - KEEP_DAYS * DAY_US)
    dropped = rows.where(~stays).count()
    if len(old) > 1 or dropped:
        write_quarantine(rows.where(stays), staging, "overwrite")
        move_in(staging, bronze / "quarantine")
        remove(old)
        shutil.rmtree(staging)
    return dropped
