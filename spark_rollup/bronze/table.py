"""Delta tables: which version there is, read at one version, append, replace, join files, clean up.

A reader fixes the version first and keeps to it (for up to `KEPT_HOURS`). A writer compares with one version
and commits onto exactly that one, or learns that another run was faster.
"""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Sequence
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as T

from spark_rollup.bronze.place import Place, below
from spark_rollup.errors import DamagedError, UsageError

LOG = "_delta_log"

KEPT_HOURS = 24
"""How long files that were replaced are kept for readers that started before."""

WRITER = "statewarden-ingest"
"""Under this name appends are numbered: Delta refuses one of two that run at the same time."""

_PROPERTIES = {"delta.deletedFileRetentionDuration": f"interval {KEPT_HOURS} hours"}


def version(table: Place) -> int | None:
    """Return a table's newest version; None = there is no such table."""
    return max((int(path.name[:20]) for path in _commits(table)), default=None)


def _commits(table: Place) -> list[Place]:
    return [path for path in below(table / LOG) if re.fullmatch(r"\d{20}\.json", path.name)]


def _is_torn(commit: Place) -> bool:
    try:
        return not all(
            isinstance(json.loads(line), dict) for line in commit.read_text(encoding="utf-8").splitlines()
        )
    except (OSError, ValueError):
        return True


def read(
    spark: SparkSession,
    table: Place,
    schema: T.StructType,
    at_version: int | None = None,
    *,
    fixed: bool = True,
) -> DataFrame:
    """Read a table as of one version; what an older release did not store is null.

    Args:
        spark: Session.
        table: Where it is.
        schema: Columns to give.
        at_version: None = the newest now.
        fixed: Whether later commits are not seen, however often the frame is computed; the log is read twice for it.

    Raises:
        DamagedError: there is no such table, or its log cannot be read.
    """
    chosen = version(table) if at_version is None else at_version
    if chosen is None:
        raise DamagedError(
            f"{table} is not a Delta table: its log is gone; restore it, or ingest everything again"
        )
    try:
        reader = spark.read.format("delta")
        found = (reader.option("versionAsOf", chosen) if fixed else reader).load(str(table))
        stored = {field.name: field.dataType for field in found.schema.fields}
    except Exception as error:
        torn = next(filter(_is_torn, _commits(table)), None)
        if torn is None:
            raise
        raise DamagedError(
            f"{torn} cannot be read: restore this file of the table's log, or move {table} away and ingest "
            f"everything again with `ingest --again`"
        ) from error
    is_same = all(stored.get(field.name) == field.dataType for field in schema.fields)
    return found.select(*schema.names) if is_same else found.to(schema)


def append(
    rows: DataFrame, table: Place, onto: int | None, partitions: Sequence[str] = (), stats: Sequence[str] = ()
) -> None:
    """Add rows to a table, or make it, onto the version that they were compared with (None = there was no table).

    Raises:
        UsageError: another run added to the table meanwhile.
    """
    number, token = (onto if onto is not None else -1) + 1, uuid.uuid4().hex
    options: dict[str, str | int] = {
        **_PROPERTIES,
        **({"delta.dataSkippingStatsColumns": ",".join(stats)} if stats else {}),
        "txnAppId": WRITER,
        "txnVersion": number,
        "userMetadata": token,
        "mergeSchema": "true",
        "compression": "zstd",
    }
    rows.write.format("delta").mode("append").partitionBy(*partitions).options(**options).save(str(table))
    # an append whose number is taken is silently skipped
    if token not in _commit(table, number):
        raise UsageError(
            f"another run added to {table} at the same time: run this again, nothing is lost or doubled"
        )


def _commit(table: Place, number: int) -> str:
    return (table / LOG / f"{number:020d}.json").read_text(encoding="utf-8")


def replace(rows: DataFrame, table: Place, where: str | None = None) -> None:
    """Replace all rows, or those for which a condition on the partitions holds; rows may bring new columns."""
    writer = (
        rows.write.format("delta")
        .mode("overwrite")
        .option("compression", "zstd")
        .option("mergeSchema", "true")
    )
    if where is None:
        for key, value in _PROPERTIES.items():
            writer = writer.option(key, value)
    else:
        writer = writer.option("replaceWhere", where)
    writer.save(str(table))


def drop(spark: SparkSession, table: Place, where: str) -> None:
    """Remove the rows for which a condition on the partitions holds; no file is opened for it."""
    spark.sql(f"DELETE FROM delta.{_quoted(table)} WHERE {where}").collect()  # noqa: S608 - ours


def join_files(spark: SparkSession, table: Place, where: str) -> None:
    """Join the small files of some partitions."""
    spark.sql(f"OPTIMIZE delta.{_quoted(table)} WHERE {where}").collect()


def clean(spark: SparkSession, table: Place) -> None:
    """Remove files that no version of the last `KEPT_HOURS` has."""
    spark.sql(f"VACUUM delta.{_quoted(table)} RETAIN {KEPT_HOURS} HOURS").collect()


def _quoted(table: Place) -> str:
    where = table.absolute() if isinstance(table, Path) else table  # Delta takes a relative one for a name
    return "`" + str(where).replace("`", "``") + "`"
