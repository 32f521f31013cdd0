"""Bronze of older versions, Parquet files by day, becomes Delta tables: its files stay where they are."""

from __future__ import annotations

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from spark_rollup.bronze import table
from spark_rollup.bronze.dedupe import one_row_per_id
from spark_rollup.bronze.place import Place, below, remove_tree
from spark_rollup.bronze.snapshots import FOLDER
from spark_rollup.bronze.store import EVENTS, REJECTED, laid_out, read_events
from spark_rollup.columns import ROUTINE

HALF_COMPACTED = "_compacting"
"""File that names the day of which events may be there twice."""


def run(spark: SparkSession, bronze: Place) -> int:
    """Make Delta tables; if it is cut off anywhere, it can be repeated.

    Returns:
        How many events there are.
    """
    for name, partitions in ((REJECTED, ""), (EVENTS, f"day STRING, {ROUTINE} BOOLEAN")):
        if table.version(bronze / name) is None and below(bronze / name):
            table.convert(spark, bronze / name, partitions)
    flag = bronze / HALF_COMPACTED
    if flag.exists():
        for day in flag.read_text(encoding="ascii").split():
            rows = one_row_per_id(read_events(spark, bronze).where(F.col("day") == day))
            table.replace(laid_out(rows, 0), bronze / EVENTS, f"day = '{day}'")
        flag.unlink()
    remove_tree(bronze / FOLDER)  # `compact --snapshots` makes them again
    for left in ("_intake", "_upkeep"):
        (bronze / left).unlink(missing_ok=True)
    return read_events(spark, bronze).count()
