"""Where bronze keeps what, how it is read and written: Delta tables, events by day, sorted by task and pod."""

from __future__ import annotations

import json

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from spark_rollup.bronze import table
from spark_rollup.bronze.place import Place
from spark_rollup.columns import ROUTINE, is_routine
from spark_rollup.config import MARKER, is_bronze
from spark_rollup.errors import UsageError
from spark_rollup.schemas import EVENT_ROW, QUARANTINE

EVENTS, REJECTED = "events", "quarantine"
"""Directories of the tables."""

FORMAT = 2
"""How bronze is laid out, written into its marker. 1 had no number there."""

TAKEN = "_taken"
"""Directory with the lists of files that were ingested."""

AT = "at_us"
"""Column of the quarantine in bronze: when a row was put there."""

FILE_BYTES = 64 * 1024 * 1024
"""How much raw input (compressed) goes into one file of bronze."""

ORDER = ("namespace", "application_id", "task_id", "pod", "observed_at_us", "sequence")

PARTITIONS = ("day", ROUTINE)

STATS = ("observed_at_us", "namespace", "application_id", "task_id", "pod")
"""Columns that are asked for by ranges; Delta would keep ranges of 32."""

_STORED = T.StructType(
    [
        *EVENT_ROW.fields,
        T.StructField("line", T.StringType()),
        T.StructField("day", T.StringType()),
        T.StructField(ROUTINE, T.BooleanType()),
    ]
)

_DATED = T.StructType([*QUARANTINE.fields, T.StructField(AT, T.LongType())])


def require_bronze(where: Place) -> None:
    """Go on with bronze of this format only.

    Raises:
        UsageError: it is no bronze, or of another format.
    """
    if not is_bronze(where):
        raise UsageError(f"{where} is not a bronze directory: `ingest` makes one")
    check_format(where)


def check_format(bronze: Place) -> None:
    """Leave bronze of another format alone, an older or a newer one.

    Raises:
        UsageError: it is of another format; says what to do.
    """
    try:
        marker = json.loads((bronze / MARKER).read_text(encoding="ascii"))
        written = int(marker.get("format", 1))
    except (OSError, ValueError, AttributeError, TypeError):
        return  # there is none, or it is torn: the next `ingest` writes it again
    if written != FORMAT:
        raise UsageError(
            f"{bronze} was written by another statewarden-rollup ({marker.get('judged_by', 'unknown')}; format "
            f"{written}, this one knows {FORMAT}): use that version on it, or name another --bronze and ingest the "
            f"segments again; nothing was changed or lost"
        )


def read_events(
    spark: SparkSession, bronze: Place, at_version: int | None = None, *, fixed: bool = True
) -> DataFrame:
    """Read all events, as of one version of the table unless not `fixed`; what an older release did not store is null.

    Output columns: `EVENT_ROW`, line, day, routine.
    """
    return table.read(spark, bronze / EVENTS, _STORED, at_version, fixed=fixed)


def read_quarantine(spark: SparkSession, bronze: Place) -> DataFrame:
    """Read what could not be used.

    Output columns: `QUARANTINE`.
    """
    return read_dated_quarantine(spark, bronze).select(*QUARANTINE.names)


def read_dated_quarantine(spark: SparkSession, bronze: Place) -> DataFrame:
    """Read what could not be used; nothing, if there is no quarantine.

    Output columns: `QUARANTINE`, at_us (when it was put there; null = by a version that did not say).
    """
    if table.version(bronze / REJECTED) is None:
        nothing = [F.lit(None).cast(field.dataType).alias(field.name) for field in _DATED.fields]
        return spark.range(0).select(*nothing)
    return table.read(spark, bronze / REJECTED, _DATED, fixed=False)


def add_quarantine(rows: DataFrame, bronze: Place) -> None:
    """Add rows to the quarantine."""
    place = bronze / REJECTED
    table.append(rows.coalesce(1).select(*_DATED.names), place, table.version(place))


def replace_quarantine(rows: DataFrame, bronze: Place) -> None:
    """Put rows in the place of all that the quarantine holds."""
    table.replace(rows.coalesce(1).select(*_DATED.names), bronze / REJECTED)


def write_events(events: DataFrame, bronze: Place, size_bytes: int, onto: int | None) -> None:
    """Add events, sorted so that every later stage finds tasks together; none of them is in bronze as of `onto`."""
    classed = events.withColumn(ROUTINE, is_routine())
    table.append(laid_out(classed, size_bytes), bronze / EVENTS, onto, PARTITIONS, STATS)


def laid_out(events: DataFrame, size_bytes: int) -> DataFrame:
    """Distribute and sort events as they are to be stored in files."""
    files = number_of_files(size_bytes)
    key = (*PARTITIONS, *ORDER)
    placed = events.coalesce(1) if files == 1 else events.repartitionByRange(files, *key[:6])
    return placed.sortWithinPartitions(*key)


def number_of_files(size_bytes: int) -> int:
    """Choose how many files so much input (compressed bytes) becomes."""
    return 1 + size_bytes // FILE_BYTES
