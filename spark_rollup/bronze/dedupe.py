"""At-least-once delivery -> exactly one row per event id."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import Window as W
from pyspark.sql import functions as F


def one_row_per_id(events: DataFrame) -> DataFrame:
    """Keep one row of every event, the same one whatever order the copies came in.

    Input columns: id, line, and any others.
    Output columns: the same.
    Grain: one row per id.
    Ordering: among rows that share an id the one with the smallest raw text stays.
    """
    first = W.partitionBy("id").orderBy("line")
    return events.withColumn("_copy", F.row_number().over(first)).where(F.col("_copy") == 1).drop("_copy")
