"""Rows on the driver: as a frame for Spark, and a frame's rows as plain values."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

FEW_CHARS = 4 << 20
"""So much of JSON may be part of a plan."""


def rows_of(frame: DataFrame) -> list[dict[str, object]]:
    """Collect a small frame as plain values: column -> value, also within structs."""
    return [row.asDict(recursive=True) for row in frame.collect()]


def frame_of(spark: SparkSession, rows: Sequence[Mapping[str, object]], schema: T.StructType) -> DataFrame:
    """Make a frame of texts, whole numbers and what is built of them.

    Few rows become part of the plan: `createDataFrame` would start Python on an executor, which costs more than all
    that follows.
    """
    text = json.dumps([{name: row[name] for name in schema.names} for row in rows])
    if len(text) > FEW_CHARS:
        return spark.createDataFrame([tuple(row[name] for name in schema.names) for row in rows], schema)
    kind = T.ArrayType(schema)
    parsed = F.from_json(F.lit(text), kind, {"mode": "FAILFAST"})
    return spark.range(0, 1, 1, 1).select(F.inline(parsed)).select(*schema.names)
