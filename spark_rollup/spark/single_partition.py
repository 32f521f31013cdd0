"""Small inputs stay in one partition: Spark then joins, groups and sorts in place, in one stage, and moves nothing.

With a single shuffle partition (`spark.session` chooses it by size) each exchange would be a stage that only hands the
same rows on: closures written and read, a task started, files made. Spark sees no need for any where it knows that
there is one partition. It loses sight of that after inner and full joins: there, `single_partition` says it again.
"""

from __future__ import annotations

from pyspark.sql import DataFrame, SparkSession


def is_whole(spark: SparkSession) -> bool:
    """Return whether all that is computed fits one partition."""
    return str(spark.conf.get("spark.sql.shuffle.partitions")) == "1"


def single_partition(frame: DataFrame) -> DataFrame:
    """Put small inputs into one partition; leave others as they are."""
    return frame.coalesce(1) if is_whole(frame.sparkSession) else frame
