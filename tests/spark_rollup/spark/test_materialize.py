"""Frames are kept by the executors, or in a directory where Spark has one; their plans are left behind."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from spark_rollup.spark import materialize as module
from spark_rollup.spark.materialize import leave_nothing, materialize, small

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]


@pytest.fixture
def directory(spark, tmp_path):
    """Give the session a directory for checkpoints, as `spark.checkpoint.dir` does."""
    java = spark.sparkContext._jsc.sc()
    spark.sparkContext.setCheckpointDir(str(tmp_path / "checkpoints"))
    yield tmp_path / "checkpoints"
    getattr(java, "checkpointDir_$eq")(spark._jvm.scala.Option.empty())


def some(spark: SparkSession) -> DataFrame:
    return spark.range(20).groupBy((F.col("id") % 3).alias("key")).agg(F.max("id").alias("last"))


def kept(directory: Path) -> list[Path]:
    return list(directory.rglob("rdd-*/part-*"))


def test_what_is_kept_has_no_plan(spark):
    frame = materialize(some(spark))
    assert "Aggregate" not in str(frame._jdf.queryExecution().executedPlan().treeString())
    assert sorted(map(tuple, frame.collect())) == [(0, 18), (1, 19), (2, 17)]


def test_with_a_directory_it_is_kept_there(spark, directory):
    frame = materialize(some(spark))
    assert kept(directory)
    assert "Aggregate" not in str(frame._jdf.queryExecution().executedPlan().treeString())
    assert sorted(map(tuple, frame.collect())) == [(0, 18), (1, 19), (2, 17)]


def test_without_one_nothing_is_written_nor_left(spark, tmp_path):
    leave_nothing(spark)
    materialize(some(spark))
    assert not kept(tmp_path)


def test_javas_end_removes_this_sessions_own_only(spark, directory):
    leave_nothing(spark)
    materialize(some(spark))
    (directory / "another's").mkdir()
    spark._jvm.org.apache.hadoop.fs.FileSystem.closeAll()  # what Java's end does
    assert [path.name for path in directory.iterdir()] == ["another's"]


@pytest.mark.parametrize(("few", "is_sent"), [(3, True), (2, False)])
def test_few_rows_are_sent_to_where_many_are(spark, monkeypatch, few, is_sent):
    monkeypatch.setattr(module, "FEW_ROWS", few)
    joined = spark.range(20).withColumn("key", F.col("id") % 2).join(small(materialize(some(spark))), "key")
    assert ("BroadcastHashJoin" in str(joined._jdf.queryExecution().executedPlan().treeString())) is is_sent
    assert joined.count() == 20
