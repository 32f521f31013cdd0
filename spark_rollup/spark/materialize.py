"""Compute a frame once, and cut it loose from the plan that it came from."""

from __future__ import annotations

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

FEW_ROWS = 100_000
"""So many narrow rows are sent to all workers: a few MiB."""


def materialize(frame: DataFrame) -> DataFrame:
    """Compute a frame now and keep what it gave, for later plans to begin with.

    It is kept by the executors; an executor that is lost takes its part along, and the run breaks. Where Spark has a
    directory for checkpoints (`spark.checkpoint.dir`) it is kept there instead.
    """
    kept_in_files = frame.sparkSession.sparkContext.getCheckpointDir() is not None
    return frame.checkpoint() if kept_in_files else frame.localCheckpoint()


def small(kept: DataFrame) -> DataFrame:
    """Have Spark send a frame that is kept to all workers if it has few rows: Spark knows no size of what is kept.

    What it is joined with stays where it is then; else all of that is moved and sorted.
    """
    return F.broadcast(kept) if kept.count() <= FEW_ROWS else kept


def leave_nothing(spark: SparkSession) -> None:
    """Have Java remove this session's checkpoints when it ends; others' in the same directory stay."""
    place = spark.sparkContext.getCheckpointDir()
    if place is None:
        return
    jvm, jsc = spark.sparkContext._jvm, spark.sparkContext._jsc
    path = jvm.org.apache.hadoop.fs.Path(place)  # type: ignore[union-attr]
    path.getFileSystem(jsc.hadoopConfiguration()).deleteOnExit(path)
