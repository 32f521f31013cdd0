"""Where bronze keeps what, how it is read and written: Parquet by day, clustered and sorted by task and pod."""

from __future__ import annotations

from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as T

from spark_rollup.columns import ROUTINE, is_routine
from spark_rollup.config import literal
from spark_rollup.schemas import EVENT_ROW, QUARANTINE

TAKEN = "_taken"
"""Directory with the lists of files that were taken in."""

COMPACTING = "_compacting"
"""While this file is there some events may be in bronze twice, never missing: readers drop repeats."""

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
    return spark.read.schema(_STORED).parquet(literal(bronze / "events"))


def read_quarantine(spark: SparkSession, bronze: Path) -> DataFrame:
    """Read what could not be used.

    Output columns: `QUARANTINE`.
    """
    return spark.read.schema(QUARANTINE).parquet(literal(bronze / "quarantine"))


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
