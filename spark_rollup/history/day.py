"""The second half of `compact`: what finished days leave to later audits, each from the day before and its own events.

Per day: put the token down, write the tables, rename the token to the marker. Cut off at any step, the day has no
marker and is made again. An `ingest` that adds events of that day or an earlier one takes the token away, so the
rename fails and the day is made once more.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from spark_rollup.bronze import snapshots
from spark_rollup.bronze.dedupe import one_row_per_id
from spark_rollup.bronze.snapshots import FORMAT, MADE, TOKEN
from spark_rollup.bronze.store import COMPACTING, read_events
from spark_rollup.columns import ROUTINE, scoped
from spark_rollup.errors import UsageError
from spark_rollup.history import carry
from spark_rollup.judging.past import Past
from spark_rollup.schemas import EVENT_ROW

RESTING = 2
"""The newest days are left alone: today, and yesterday, of which late events still come in. No look-back is shorter."""

TRIES = 3
"""How often a day is begun anew because events of it came in meanwhile."""

KEEP = 31
"""Snapshots that stay: the newest."""


def run(spark: SparkSession, bronze: Path, pasts: Sequence[Past]) -> list[str]:
    """Make the snapshot of every day that has none, but for those that rest.

    Args:
        spark: The session.
        bronze: Where the days lie.
        pasts: What rules need of the past.

    Returns:
        Days that were made, oldest first.

    Raises:
        UsageError: events of such a day came in all the time.
    """
    done: list[str] = []
    while (day := next_day(bronze)) is not None:
        for _ in range(TRIES):
            if _make(spark, bronze, day, pasts):
                break
        else:
            raise UsageError(f"events of {day} or before come in all the time: try again when they have")
        done.append(day)
    made = snapshots.days_made(bronze)
    for day in made[:-KEEP]:
        _remove(snapshots.folder(bronze, day))
    return done


def next_day(bronze: Path) -> str | None:
    """Find the first day after the newest snapshot that holds; None = there is none to be made."""
    made = snapshots.days_made(bronze)
    after = made[-1] if made else ""
    return next((day for day in snapshots.days(bronze)[:-RESTING] if day > after), None)


def _make(spark: SparkSession, bronze: Path, day: str, pasts: Sequence[Past]) -> bool:
    """Make one day's snapshot; False = it was withdrawn meanwhile."""
    place = snapshots.folder(bronze, day)
    place.mkdir(parents=True, exist_ok=True)
    (place / TOKEN).write_text(json.dumps({"format": FORMAT}) + "\n", encoding="ascii")
    # only now: whoever adds events from here on finds the token
    before = [made for made in snapshots.days_made(bronze) if made < day]
    earlier = snapshots.read(spark, snapshots.folder(bronze, before[-1])) if before else None
    carried = carry.carry(_events(spark, bronze, day), earlier, snapshots.end_us(day), pasts)
    for name in ("events", "heard", "unwatched"):
        _write(getattr(carried, name), place / name)
    spark.catalog.clearCache()
    try:
        (place / TOKEN).rename(place / MADE)
    except FileNotFoundError:
        return False
    return True


def _events(spark: SparkSession, bronze: Path, day: str) -> DataFrame:
    rows = (
        scoped(read_events(spark, bronze))
        .where(F.col("day") == day)
        .select(*EVENT_ROW.names, "line", ROUTINE)
    )
    once = one_row_per_id(rows) if (bronze / COMPACTING).exists() else rows
    return once.drop("line")


def _write(rows: DataFrame, target: Path) -> None:
    key = [name for name in ("namespace", "application_id", "task_id", "pod") if name in rows.columns]
    rows.coalesce(1).sortWithinPartitions(*key).write.mode("overwrite").option("compression", "zstd").parquet(
        str(target)
    )


def _remove(place: Path) -> None:
    (place / MADE).unlink(missing_ok=True)  # first: half a snapshot holds for nobody
    shutil.rmtree(place)
