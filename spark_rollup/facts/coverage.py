"""How well each pod was watched, and what is known about it: the tables `coverage` and `pods`."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import Window as W
from pyspark.sql import functions as F

from spark_rollup.columns import MICROS, rfc3339
from spark_rollup.facts.levels import has_ended
from spark_rollup.fleet.pods import LOST, SILENT
from spark_rollup.schemas import COVERAGE, PODS

_POD = ("namespace", "pod")


def coverage(last: DataFrame, gaps: DataFrame, as_of_us: int, since_us: int = 0) -> DataFrame:
    """Measure for each pod how much of its time since the look-back began was really watched.

    A blind interval of one task or application does not count against the whole pod; overlapping ones count once.

    Input columns: those of `levels.with_missed`; `GAP`.
    Output columns: `COVERAGE`.
    Grain: one row per pod.
    """
    first_us = F.greatest("first_us", F.least("last_us", F.lit(since_us)))
    missed = [
        F.when(has_ended(as_of_us), F.lit(0)).otherwise(F.col(name)).cast("bigint").alias(name)
        for name in ("missed_criticals", "missed_warnings")
    ]
    heard = last.select(*_POD, first_us.alias("first_us"), "last_us", "boots", "events", *missed)
    lost = gaps.where(F.col("cause") == LOST).groupBy(*_POD).agg(F.sum("missing").alias("lost_events"))
    silent = gaps.where((F.col("cause") == SILENT) & (F.col("to_us") == as_of_us)).select(*_POD).distinct()
    ends = silent.withColumn("silent", F.lit(True))
    within = gaps.withColumn("from_us", F.greatest("from_us", F.lit(since_us)))
    table = (
        heard.join(_unknown_time(within), list(_POD), "left")
        .join(lost, list(_POD), "left")
        .join(ends, list(_POD), "left")
    )
    end_us = F.when(F.coalesce("silent", F.lit(False)), F.lit(as_of_us)).otherwise(F.col("last_us"))
    span = (end_us - F.col("first_us")) / F.lit(float(MICROS))
    unknown = F.coalesce(F.col("unknown_us"), F.lit(0)) / F.lit(float(MICROS))
    shaped = table.select(
        *_POD,
        rfc3339("first_us").alias("first_seen"),
        rfc3339("last_us").alias("last_seen"),
        "boots",
        "events",
        F.coalesce("lost_events", F.lit(0)).alias("lost_events"),
        "missed_criticals",
        "missed_warnings",
        span.alias("span_seconds"),
        F.least(unknown, span).alias("unknown_seconds"),
        F.when(span > 0, F.lit(1.0) - F.least(unknown, span) / span).alias("watched_ratio"),
    )
    return shaped.select(*COVERAGE.names)


def _unknown_time(gaps: DataFrame) -> DataFrame:
    whole = gaps.where(F.col("application_id").isNull() & F.col("task_id").isNull())
    order = W.partitionBy(*_POD).orderBy("from_us", "to_us")
    reached = F.max("to_us").over(order.rowsBetween(W.unboundedPreceding, -1))
    fresh = whole.withColumn("reached", reached).withColumn(
        "new_us",
        F.greatest(F.col("to_us") - F.greatest("from_us", F.coalesce("reached", "from_us")), F.lit(0)),
    )
    return fresh.groupBy(*_POD).agg(F.sum("new_us").alias("unknown_us"))


def pods(members: DataFrame, held: DataFrame, last: DataFrame, gaps: DataFrame, as_of_us: int) -> DataFrame:
    """Describe each pod as last seen.

    Output columns: `PODS`; agent_state is `watching`, `stopped` or `silent`.
    Grain: one row per pod.
    """
    known = members.groupBy(*_POD).agg(F.array_sort(F.collect_set("application_id")).alias("applications"))
    holding = (
        held.where(F.col("lasting") & ~F.col("cleaner"))
        .groupBy(*_POD)
        .agg(F.count_distinct("application_id", "task_id").alias("tasks_held"))
    )
    silent = gaps.where((F.col("cause") == SILENT) & (F.col("to_us") == as_of_us)).select(*_POD).distinct()
    state = (
        F.when(F.col("stopped"), F.lit("stopped"))
        .when(F.col("silent"), F.lit("silent"))
        .otherwise(F.lit("watching"))
    )
    return (
        last.join(known, list(_POD), "inner")
        .join(holding, list(_POD), "left")
        .join(silent.withColumn("silent", F.lit(True)), list(_POD), "left")
        .select(
            *_POD, "pod_uid", "node", "agent_version", state.alias("agent_state"),
            rfc3339("last_us").alias("last_seen"), "applications",
            F.coalesce("tasks_held", F.lit(0)).alias("tasks_held"),
        )
        .select(*PODS.names)
    )  # fmt: skip
