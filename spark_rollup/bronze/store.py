"""Where bronze keeps what, how it is read and written: Parquet by day, clustered and sorted by task and pod."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as T

from spark_rollup.bronze.snapshots import read_parquet
from spark_rollup.columns import ROUTINE, is_routine
from spark_rollup.schemas import EVENT_ROW, QUARANTINE

TAKEN = "_taken"
"""Directory with the lists of files that were taken in."""

COMPACTING = "_compacting"
"""While this file is there some events may be in bronze twice, never missing: readers drop repeats."""

AT = "at_us"
"""Column of the quarantine in bronze: when a row was put there."""

FILE_BYTES = 64 * 1024 * 1024
"""How much raw input (compressed) goes into one file of bronze."""

ORDER = ("namespace", "application_id", "task_id", "pod", "observed_at_us", "sequence")

_STORED = T.StructType(
    [
        *EVENT_ROW.fields,
        T.StructField("line", T.StringType()),
        T.StructField("day", T.StringType()),
        T.StructField(ROUTINE, T.BooleanType()),
    ]
)


def read_events(spark: SparkSession, bronze: Path) -> DataFrame:
    """Read all events; a field that an older version did not store is null.

    Output columns: `EVENT_ROW`, line, day, routine.
    """
    return read_parquet(spark, bronze / "events", _STORED)


def read_quarantine(spark: SparkSession, bronze: Path) -> DataFrame:
    """Read what could not be used.

    Output columns: `QUARANTINE`.
    """
    return read_parquet(spark, bronze / "quarantine", QUARANTINE)


def read_dated_quarantine(spark: SparkSession, files: Sequence[Path]) -> DataFrame:
    """Read some files of the quarantine.

    Output columns: `QUARANTINE`, at_us (when it was put there; null = by a version that did not say).
    """
    return read_parquet(spark, files, T.StructType([*QUARANTINE.fields, T.StructField(AT, T.LongType())]))


def write_quarantine(rows: DataFrame, target: Path, mode: str) -> None:
    """Write rows of the quarantine as one file."""
    rows.coalesce(1).write.mode(mode).option("compression", "zstd").parquet(str(target))


def move_in(staging: Path, target: Path) -> None:
    """Move Parquet files to where readers see them; Spark's names are unique per job."""
    for path in sorted(staging.rglob("*.parquet")):
        place = target / path.relative_to(staging)
        place.parent.mkdir(parents=True, exist_ok=True)
        path.rename(place)


def remove(files: Sequence[Path]) -> None:
    """Remove Parquet files and what belongs to them."""
    for path in files:
        path.unlink()
        path.with_name(f".{path.name}.crc").unlink(missing_ok=True)


def write_events(events: DataFrame, target: Path, size_bytes: int, mode: str) -> None:
    """Write events by day, in files of a sensible size, sorted so that every later stage finds tasks together."""
    files = number_of_files(size_bytes)
    classed = events.withColumn(ROUTINE, is_routine())
    key = ("day", ROUTINE, *ORDER)
    placed = classed.coalesce(1) if files == 1 else classed.repartitionByRange(files, *key[:6])
    placed.sortWithinPartitions(*key).write.mode(mode).option("compression", "zstd").partitionBy(
        "day", ROUTINE
    ).parquet(str(target))


def number_of_files(size_bytes: int) -> int:
    """Choose how many files so much input (compressed bytes) becomes."""
    return 1 + size_bytes // FILE_BYTES
