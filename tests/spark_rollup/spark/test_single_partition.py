"""Small inputs are never moved between stages."""

from __future__ import annotations

import pytest
from pyspark.sql import functions as F

from spark_rollup.spark.single_partition import is_whole, single_partition

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]


def exchanges(frame) -> int:
    return str(frame._jdf.queryExecution().executedPlan().treeString()).count("Exchange ")


def test_joins_and_groups_of_whole_frames_move_nothing(spark):
    """Not even after an inner join, of which Spark does not know that it has one partition."""
    assert is_whole(spark)
    rows = single_partition(
        spark.range(20).select((F.col("id") % 3).cast("string").alias("key"), "id")
    ).localCheckpoint()
    last = single_partition(rows.groupBy("key").agg(F.max("id").alias("last"))).localCheckpoint()
    inner = single_partition(rows.join(last, "key", "inner"))
    joined = inner.join(last.withColumnRenamed("last", "other"), "key", "left")
    assert exchanges(joined.groupBy("key").agg(F.count("*"))) == 0
    assert joined.count() == 20


def test_larger_inputs_stay_as_they_are(spark):
    before = str(spark.conf.get("spark.sql.shuffle.partitions"))
    spark.conf.set("spark.sql.shuffle.partitions", "8")
    try:
        frame = spark.range(0, 20, 1, 4)
        assert single_partition(frame) is frame
    finally:
        spark.conf.set("spark.sql.shuffle.partitions", before)
