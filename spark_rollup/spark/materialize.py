"""Compute a frame once, and cut it loose from the plan that it came from."""

from __future__ import annotations

from pyspark.sql import DataFrame, SparkSession


def materialize(frame: DataFrame) -> DataFrame:
    """Compute a frame now and keep what it gave, for later plans to begin with.

    It is kept by the executors; an executor that is lost takes its part along, and the run breaks. Where Spark has a
    directory for checkpoints (`spark.checkpoint.dir`) it is kept there instead.
    """
    kept_in_files = frame.sparkSession.sparkContext.getCheckpointDir() is not None
    return frame.checkpoint() if kept_in_files else frame.localCheckpoint()


def leave_nothing(spark: SparkSession) -> None:
    """Have Java remove this session's checkpoints when it ends; others' in the same directory stay."""
    place = spark.sparkContext.getCheckpointDir()
    if place is None:
        return
    jvm, jsc = spark.sparkContext._jvm, spark.sparkContext._jsc
    path = jvm.org.apache.hadoop.fs.Path(place)  # type: ignore[union-attr]
    path.getFileSystem(jsc.hadoopConfiguration()).deleteOnExit(path)
