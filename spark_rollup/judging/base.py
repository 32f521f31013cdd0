"""What agents said last, where there are too many events for the driver."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from agent.contract.events import Kind, Status
from spark_rollup.columns import is_notable

_KEPT = (
    "application_id", "task_id", "store", "identity", "detector", "level", "confidence", "status", "opened_at_us",
)  # fmt: skip


def last_local_findings(events: DataFrame) -> DataFrame:
    """Keep the last word about each agent finding, by time and sequence: one row per finding_id and pod.

    A status that a newer minor version of the contract may add is taken for open.
    """
    rows = events.where(is_notable() & (F.col("kind") == Kind.FINDING.value))
    last = F.max_by(F.struct(*_KEPT), F.struct("observed_at_us", "sequence")).alias("said")
    said = (
        rows.groupBy("namespace", "pod", "finding_id")
        .agg(last)
        .select("namespace", "pod", "finding_id", "said.*")
    )
    resolved = F.col("status") == Status.RESOLVED.value
    return said.withColumn("status", F.when(resolved, F.col("status")).otherwise(F.lit(Status.OPEN.value)))
