"""Shortages: times in which a task had fewer holders than promised, and what else was true then.

Each function adds columns to one row per shortage (`row_key`); `missing_standby` decides what they mean.
"""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import Column, DataFrame
from pyspark.sql import Window as W
from pyspark.sql import functions as F

from agent.contract.events import Change
from spark_rollup.columns import MICROS, TASK
from spark_rollup.judging.base import Facts
from spark_rollup.judging.fleet import attach, prefixed, same_task, with_unwatched

APPLICATION = ("namespace", "application_id")

SETTLE_US = 5 * MICROS
"""A deletion this long after the shortage ended still belongs to it: readings are not instants."""


@dataclass(frozen=True, slots=True)
class Parts:
    """What shortages are computed from.

    Args of the dataclass:
        owners: Holder intervals, cleaners left out.
        lives: Process lives.
        applications: Per application: pods, num_standby_replicas, patience_us, release_low, release_high.
    """

    owners: DataFrame
    lives: DataFrame
    applications: DataFrame


def find_shortages(parts: Parts, as_of_us: int) -> DataFrame:
    """Find maximal intervals in which a task had fewer holders than the application's size promises.

    A copy still held when its pod was last heard counts as held ever since: not knowing is not missing.

    Output columns: `TASK`, from_us, to_us, most (the most holders at any time inside), and the application's columns.
    """
    promised = F.lit(1) + F.least("num_standby_replicas", F.col("pods") - 1)
    expecting = parts.applications.where(F.col("num_standby_replicas") >= 1).withColumn("promised", promised)
    steps = parts.owners.select(*TASK, F.col("from_us").alias("at_us"), F.lit(1).alias("step")).unionByName(
        parts.owners.where(~F.col("lasting")).select(
            *TASK, F.col("to_us").alias("at_us"), F.lit(-1).alias("step")
        )
    )
    order = W.partitionBy(*TASK).orderBy("at_us")
    counted = (
        steps.groupBy(*TASK, "at_us")
        .agg(F.sum("step").alias("step"))
        .withColumn("holders", F.sum("step").over(order.rowsBetween(W.unboundedPreceding, W.currentRow)))
        .withColumn("to_us", F.coalesce(F.lead("at_us").over(order), F.lit(as_of_us)))
        .join(expecting, list(APPLICATION), "inner")
        .withColumn("low", F.col("holders") < F.col("promised"))
    )
    started = F.when(F.col("low") & ~F.coalesce(F.lag("low").over(order), F.lit(False)), F.lit(1)).otherwise(
        F.lit(0)
    )
    islands = counted.withColumn("started", started).withColumn(
        "island", F.sum("started").over(order.rowsBetween(W.unboundedPreceding, W.currentRow))
    )
    return (
        islands.where(F.col("low"))
        .groupBy(
            *TASK, "island", "pods", "num_standby_replicas", "patience_us", "release_low", "release_high"
        )
        .agg(F.min("at_us").alias("from_us"), F.max("to_us").alias("to_us"), F.max("holders").alias("most"))
        .drop("island")
    )


def settled(shortages: DataFrame, parts: Parts) -> DataFrame:
    """Keep shortages that outlast a rebalance on pods which all lived through it.

    The clock starts when the last process of the application started. Processes that end meanwhile do not count.

    Output columns: those of `find_shortages`, row_key, since_us, settled_us (= since_us + patience), alive, expected,
        until_us (the end, or the last sign of any process: nothing is missing from a stopped application).
    """
    keyed = shortages.withColumn("row_key", F.concat_ws("/", *TASK, F.col("from_us").cast("string")))
    # one array per application, not one row per shortage and life: a hot application has thousands of both
    life = F.struct(*(F.col(name).alias(f"life_{name}") for name in ("pod", "from_us", "to_us")))
    known = parts.lives.groupBy(*APPLICATION).agg(F.collect_set(life).alias("all_lives"))
    grown = (
        keyed.join(known, list(APPLICATION), "inner")
        .withColumn("lives", F.filter("all_lives", lambda life: life["life_from_us"] < F.col("to_us")))
        .drop("all_lives")
    )
    last_start = F.array_max(F.transform("lives", lambda life: life["life_from_us"]))
    through = F.filter("lives", lambda life: life["life_to_us"] >= F.col("settled_us"))
    alive = F.size(F.array_distinct(F.transform(through, lambda life: life["life_pod"])))
    return (
        grown.withColumn("since_us", F.greatest("from_us", last_start))
        .withColumn("settled_us", F.col("since_us") + F.col("patience_us"))
        .withColumn("alive", alive.cast("bigint"))
        .withColumn(
            "until_us", F.least("to_us", F.array_max(F.transform("lives", lambda life: life["life_to_us"])))
        )
        .withColumn("expected", F.lit(1) + F.least("num_standby_replicas", F.col("alive") - 1))
        .where(
            (F.col("settled_us") < F.col("to_us"))
            & (F.col("most") < F.col("expected"))
            & (F.col("expected") >= 2)
        )
        .drop("lives")
    )


def with_unowned(shortages: DataFrame, parts: Parts, facts: Facts) -> DataFrame:
    """Add the pod whose directory no process holds though its process lives (`unowned_*`; null = none)."""
    gone = facts.marks.where(F.col("change") == Change.TASK_DELETED.value).select(
        *TASK, "pod", "at_us", "shape"
    )
    left = parts.owners.where(~F.col("lasting")).withColumn(
        "row_key", F.concat_ws("/", *TASK, "pod", F.col("from_us").cast("string"))
    )
    after = same_task("gone_") & (F.col("gone_pod") == F.col("pod")) & (F.col("gone_at_us") >= F.col("to_us"))
    deletion = F.min(F.struct("gone_at_us", "gone_shape"))
    left = attach(left, prefixed(gone, "gone_"), after, {"deletion": deletion})
    busy = prefixed(parts.owners.select(*APPLICATION, "pod", "from_us", "to_us"), "busy_")
    spans = F.collect_set(F.struct("busy_from_us", "busy_to_us"))
    left = attach(
        left, busy, same_application("busy_") & (F.col("busy_pod") == F.col("pod")), {"busy": spans}
    )
    released = F.col("left_to_us").between(
        F.col("since_us") - F.col("patience_us"), F.col("since_us") + MICROS
    )
    deleted_us = F.col("left_deletion.gone_at_us")
    stayed = deleted_us.isNull() | (deleted_us >= F.col("settled_us"))
    cleaned = (F.col("left_deletion.gone_shape") == "cleaner-walk") & (
        deleted_us <= F.col("to_us") + SETTLE_US
    )
    working = F.exists(
        "left_busy",
        lambda span: (
            (span["busy_from_us"] <= F.col("since_us")) & (span["busy_to_us"] >= F.col("settled_us"))
        ),
    )
    same = same_task("left_") & released & stayed & (working | F.coalesce(cleaned, F.lit(False)))
    unowned = F.max(
        F.struct(
            F.col("left_to_us").alias("unowned_since_us"),
            F.col("left_pod").alias("unowned_pod"),
            deleted_us.alias("unowned_gone_us"),
        )
    )
    return attach(shortages, prefixed(left, "left_"), same, {"unowned": unowned}).select(
        *shortages.columns, "unowned.*"
    )


def with_siblings(shortages: DataFrame, all_shortages: DataFrame, parts: Parts) -> DataFrame:
    """Add how many sibling tasks of the same subtopology were complete through the waiting time."""
    visible = parts.owners.select(*TASK).distinct().withColumn("subtopology", _subtopology())
    short = all_shortages.select(*TASK, "from_us", "to_us").withColumn("subtopology", _subtopology())
    wide = shortages.withColumn("subtopology", _subtopology())
    counted = visible.groupBy(*APPLICATION, "subtopology").agg(F.count("*").alias("siblings"))
    wide = wide.join(counted, [*APPLICATION, "subtopology"], "inner")
    overlap = (F.col("short_from_us") <= F.col("settled_us")) & (F.col("short_to_us") >= F.col("since_us"))
    same = same_application("short_") & (F.col("short_subtopology") == F.col("subtopology")) & overlap
    wide = attach(wide, prefixed(short, "short_"), same, {"incomplete": F.count_distinct("short_task_id")})
    return wide.withColumn("complete", F.col("siblings") - F.col("incomplete"))


def _subtopology() -> Column:
    return F.regexp_replace("task_id", r"_\d+$", "")


def same_application(prefix: str) -> Column:
    """Compare a shortage's application with that of `prefixed` rows."""
    return (F.col(f"{prefix}namespace") == F.col("namespace")) & (
        F.col(f"{prefix}application_id") == F.col("application_id")
    )


def with_doubt(shortages: DataFrame, facts: Facts) -> DataFrame:
    """Add `unwatched_pods`: pods of the application that were not watched through all of the waiting time."""
    return with_unwatched(shortages, facts, "since_us", "settled_us")
