"""Which copies of each task are held at the end of the input, and in what state they are."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from agent.contract.events import Level, Severity, Status
from spark_rollup.columns import TASK
from spark_rollup.facts.gaps import SILENT
from spark_rollup.facts.heartbeats import SLOT_US
from spark_rollup.judging.alone import unrefuted
from spark_rollup.judging.base import Facts
from spark_rollup.judging.fleet import SKEW_US, homes
from spark_rollup.spark.single_partition import single_partition

APPLICATION = ("namespace", "application_id")

LAG_RECORDS = 20_000
"""A copy this many records behind is not recent: acceptable.recovery.lag (10,000), and as many again that an active may
leave out of its checkpoint."""


def horizons(facts: Facts) -> DataFrame:
    """Find for each application the last time at which a process of it was seen alive, and who was alive then.

    The patience is the longest that a rebalance takes, and what two pods' clocks may differ by.

    Output columns: `APPLICATION`, since_us, horizon_us, spoken_us (until then every pod of it has spoken that is not
        silent or at its end; the horizon at most), patience_us, alive (pods), restless (a process started within
        the patience), leaving (the clocks decide whether some pod was alive), pods_seen, num_standby_replicas,
        release_low, release_high.
    Grain: one row per application with a visible process.
    """
    ends = facts.lives.groupBy(*APPLICATION).agg(
        F.min("from_us").alias("since_us"),
        F.max("from_us").alias("last_start_us"),
        F.max("to_us").alias("horizon_us"),
        F.array_sort(F.collect_set("pod")).alias("pods_seen"),
        F.collect_list(F.struct("pod", "to_us")).alias("ends"),
    )
    settings = facts.settings.select(
        *APPLICATION, "num_standby_replicas", "release_low", "release_high",
        ((F.col("session_ms") + F.col("probing_ms")) * 1_000 + SKEW_US).alias("patience_us"),
    )  # fmt: skip
    settled_us = F.col("horizon_us") - F.col("patience_us")
    recent = F.filter("ends", lambda end: end["to_us"] >= settled_us)
    leaving = F.exists("ends", lambda end: F.abs(end["to_us"] - settled_us) <= SKEW_US)
    return (
        single_partition(ends.join(settings, list(APPLICATION), "inner"))
        .join(_last_words(facts), list(APPLICATION), "left")
        .withColumn("spoken_us", F.least("horizon_us", "spoken_us"))
        .withColumn("alive", F.size(F.array_distinct(F.transform(recent, lambda end: end["pod"]))))
        .withColumn("restless", F.col("last_start_us") > settled_us)
        .withColumn("leaving", leaving)
        .drop("ends", "last_start_us")
    )


def _last_words(facts: Facts) -> DataFrame:
    """Find until when all pods of each application have reported; silent and ended ones are distinguished elsewhere."""
    speaking = facts.heard.where(~F.col("stopped") & (F.col("last_us") >= facts.as_of_us - SLOT_US)).select(
        "namespace", "pod", "last_us"
    )
    spoken = single_partition(homes(facts).join(speaking, ["namespace", "pod"], "inner"))
    return spoken.groupBy(*APPLICATION).agg(F.min("last_us").alias("spoken_us"))


def copies(facts: Facts, until: str = "horizon_us") -> DataFrame:
    """List the copies that are held at each application's horizon, or were until a moment before it.

    Args:
        facts: All facts.
        until: A copy that was held less than the patience before this column of `horizons` counts.

    Output columns: `TASK`, pod, first_us (of any hold of the task), horizon_us, offset (null = unknown), bytes, lag,
        damage (ids of agents' open findings of damage that are not refuted), watched, healthy, ill (why not, such as
        that `verify` proved it wrong; empty = healthy).
    Grain: one row per task and pod.
    """
    times = horizons(facts).select(
        *APPLICATION, "horizon_us", (F.col(until) - F.col("patience_us")).alias("settled_us")
    )
    owners = single_partition(facts.held.where(~F.col("cleaner")).join(times, list(APPLICATION), "inner"))
    first = owners.groupBy(*TASK).agg(F.min("from_us").alias("first_us"))
    late = F.col("lasting") | (F.col("to_us") >= F.col("settled_us"))
    held = owners.where(late).groupBy(*TASK, "pod").agg(F.max("horizon_us").alias("horizon_us"))
    silent = facts.gaps.where((F.col("cause") == SILENT) & (F.col("to_us") == facts.as_of_us))
    quiet = silent.select("namespace", "pod").distinct().withColumn("silent", F.lit(True))
    rows = (
        single_partition(held.join(first, list(TASK), "inner"))
        .join(_furthest(facts), [*TASK, "pod"], "left")
        .join(_damage(facts), [*TASK, "pod"], "left")
        .join(quiet, ["namespace", "pod"], "left")
    )
    lagging = F.coalesce(F.col("lag") > LAG_RECORDS, F.lit(False))
    ill = F.concat_ws(
        " and ",
        F.when(F.col("damage").isNotNull(), F.lit("(damaged)")),
        F.when(lagging, F.format_string("(%d records behind)", "lag")),
        F.when(F.col("silent"), F.lit("(not heard)")),
    )
    return rows.select(
        *TASK, "pod", "first_us", "horizon_us", "offset", "bytes", "lag",
        F.coalesce("damage", F.array().cast("array<string>")).alias("damage"),
        F.col("silent").isNull().alias("watched"),
        (ill == "").alias("healthy"),
        ill.alias("ill"),
    )  # fmt: skip


def _furthest(facts: Facts) -> DataFrame:
    """Find how far each copy is: the store that lags most behind the furthest copy of it decides."""
    last = facts.latest.select(*TASK, "store", "pod", "offset", "bytes")
    best = last.groupBy(*TASK, "store").agg(F.max("offset").alias("best"))
    return (
        single_partition(last.join(best, [*TASK, "store"], "inner"))
        .groupBy(*TASK, "pod")
        .agg(
            F.max("offset").alias("offset"),
            F.sum("bytes").alias("bytes"),
            F.max(F.col("best") - F.greatest("offset", F.lit(0))).alias("lag"),
        )
    )


def _damage(facts: Facts) -> DataFrame:
    bad = (
        (F.col("level") == Level.DAMAGE.value)
        & (F.col("status") == Status.OPEN.value)
        & (F.col("severity") == Severity.CRITICAL.value)
        & F.col("task_id").isNotNull()
    )
    said = unrefuted(facts.local.where(bad), facts.refuted).select(*TASK, "pod", "finding_id")
    if facts.wrong is not None:  # whatever agents say of it
        said = said.unionByName(facts.wrong.withColumn("finding_id", F.lit(None).cast("string")))
    return said.groupBy(*TASK, "pod").agg(F.array_sort(F.collect_set("finding_id")).alias("damage"))
