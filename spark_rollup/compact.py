"""Join the many small files of finished days; readers see every event all the time, at worst twice.

Per day: write the joined files aside, raise the flag, move them in, remove the old ones, lower the flag. Whatever
step is cut off, the next run starts the day again and drops the repeats.
"""

from __future__ import annotations

import shutil
from pathlib import Path

from pyspark.sql import SparkSession

from spark_rollup.bronze import COMPACTING, number_of_files, read_events, write_events
from spark_rollup.dedupe import one_row_per_id

STAGING = "_staging"


def run(spark: SparkSession, bronze: Path) -> int:
    """Compact each day but the newest that lies in more files than needed, and what an earlier run left half done.

    Returns:
        Number of days compacted.
    """
    flag = bronze / COMPACTING
    half_done = flag.read_text(encoding="ascii").split() if flag.exists() else []
    days = sorted(path.name.removeprefix("day=") for path in (bronze / "events").glob("day=*"))
    chosen = [day for day in days if day in half_done or (day != days[-1] and _is_scattered(bronze, day))]
    for day in chosen:
        _compact(spark, bronze, day)
    flag.unlink(missing_ok=True)
    return len(chosen)


def _is_scattered(bronze: Path, day: str) -> bool:
    """Tell whether a day lies in more files than it would be written in: routine events and others lie apart."""
    files = _files(bronze, day)
    return len(files) > number_of_files(sum(path.stat().st_size for path in files)) + 1


def _files(bronze: Path, day: str) -> list[Path]:
    return sorted((bronze / "events" / f"day={day}").rglob("*.parquet"))


def _compact(spark: SparkSession, bronze: Path, day: str) -> None:
    old, staging = _files(bronze, day), bronze / STAGING
    rows = read_events(spark, bronze).where(f"day = '{day}'")
    size_bytes = sum(path.stat().st_size for path in old)
    write_events(one_row_per_id(rows), staging, size_bytes, mode="overwrite")
    (bronze / COMPACTING).write_text(f"{day}\n", encoding="ascii")
    for path in sorted((staging / f"day={day}").rglob("*.parquet")):
        place = bronze / "events" / path.relative_to(staging)
        place.parent.mkdir(exist_ok=True)
        path.rename(place)  # Spark's names are unique per job
    for path in old:
        path.unlink()
        path.with_name(f".{path.name}.crc").unlink(missing_ok=True)
    shutil.rmtree(staging)
    (bronze / COMPACTING).unlink()
    spark.catalog.clearCache()
