"""Which role a pod's copy of a task had before a crash, by what the rest of the fleet did meanwhile."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from agent.contract.events import Change
from spark_rollup.columns import TASK, numbered
from spark_rollup.judging.base import Facts
from spark_rollup.judging.fleet import (
    NOISE_PUTS,
    SKEW_US,
    attach,
    homes,
    prefixed,
    same_task,
    with_unwatched,
)
from spark_rollup.judging.growth import counted, course, growth


def with_proof_of_active(suspects: DataFrame, facts: Facts) -> DataFrame:
    """Add `why_active`: what shows that the suspect was the active when it crashed (null = nothing does).

    The application has no other pod. Or no other pod held the task for longer than it takes a group to miss an active
    and give the task to another, and all its pods were watched meanwhile. Or others held it, but as standbys: one of
    them wrote checkpoints as it went on, which under exactly-once a standby does every 10,000 records and an active
    never, while the suspect put in records and wrote none.

    Args:
        suspects: row_key, `TASK`, pod, opened_at_us, tenure (own_from_us and own_to_us of the hold before the crash).
        facts: All facts.
    """
    waits = facts.settings.select(
        "namespace", "application_id", (F.col("session_ms") * 1_000 + SKEW_US).alias("wait_us")
    )
    known = suspects.join(waits, ["namespace", "application_id"], "left").withColumns(
        {
            "over_us": F.col("tenure.own_to_us"),
            "settled_us": F.col("tenure.own_to_us") - F.col("wait_us"),
            "begun_us": F.col("tenure.own_from_us"),
        }
    )
    held = prefixed(facts.held.where(~F.col("cleaner")), "held_")
    beside = (
        same_task("held_")
        & (F.col("held_pod") != F.col("pod"))
        & (F.col("held_from_us") <= F.col("over_us"))
        & (F.col("held_to_us") >= F.col("settled_us"))
    )
    known = attach(known, held, beside, {"beside": F.array_sort(F.collect_set("held_pod"))})
    known = attach(known, prefixed(homes(facts), "home_"), _beside_it(), {"pods": F.count("home_pod")})
    known = with_unwatched(known, facts, "settled_us", "over_us")
    known = _with_standby(known, facts)
    since = (F.col("begun_us") <= F.col("settled_us")) & (F.size("unwatched_pods") == 0)
    lone = F.when(
        F.col("over_us").isNotNull() & (F.col("pods") == 0),
        numbered("%s has no other pod: %s was the active of %s", "application_id", "pod", "task_id"),
    )
    alone = F.when(
        since & (F.size("beside") == 0),
        numbered("no other pod held %s before the crash: %s was its active", "task_id", "pod"),
    )
    other = F.when(
        since & (F.size("beside") == 1),
        numbered(
            "%s wrote checkpoints of %s as a standby does, %s wrote none: it was the active",
            "standby_pod", "task_id", "pod",
        ),
    )  # fmt: skip
    return known.select(*suspects.columns, F.coalesce(lone, alone, other).alias("why_active"))


def _beside_it() -> Column:
    return (
        (F.col("home_namespace") == F.col("namespace"))
        & (F.col("home_application_id") == F.col("application_id"))
        & (F.col("home_pod") != F.col("pod"))
    )


def _with_standby(suspects: DataFrame, facts: Facts) -> DataFrame:
    """Add `standby_pod`: another pod that behaved as a standby where the suspect did not (null = none)."""
    written = facts.marks.where(F.col("change") == Change.CHECKPOINT_WRITTEN.value).select(
        *TASK, "pod", "at_us"
    )
    during = F.col("step_at_us").between(F.col("begun_us") + SKEW_US, F.col("over_us") - SKEW_US)
    theirs = same_task("step_") & (F.col("step_pod") != F.col("pod")) & during
    steps = (
        suspects.select(*TASK, "pod", "row_key", "begun_us", "over_us")
        .join(prefixed(written, "step_"), theirs, "inner")
        .groupBy("row_key", *TASK, "pod", "step_pod")
        .agg(F.min("step_at_us").alias("first_us"), F.max("step_at_us").alias("last_us"))
        .where(F.col("last_us") - F.col("first_us") > 2 * SKEW_US)
        .withColumnRenamed("step_pod", "standby_pod")
        .withColumn("pair", F.concat_ws("/", "row_key", "standby_pod"))
        .withColumnRenamed("row_key", "suspect_key")
        .withColumnRenamed("pair", "row_key")
    )
    within = F.col("own_at_us").between(F.col("first_us") - SKEW_US, F.col("last_us") + SKEW_US)
    mine = same_task("own_") & (F.col("own_pod") == F.col("pod")) & within
    own = steps.join(prefixed(counted(facts.sizes), "own_"), mine, "inner")
    worked = (
        own.groupBy("row_key", "own_store")
        .agg(growth(course("own_at_us", "own_puts")).alias("grown"))
        .where(F.col("grown") > NOISE_PUTS)
    )
    wrote = steps.join(prefixed(written, "own_"), mine, "inner").select("row_key")
    proved = steps.join(worked, "row_key", "left_semi").join(wrote, "row_key", "left_anti")
    standby = proved.groupBy("suspect_key").agg(F.min("standby_pod").alias("standby_pod"))
    return suspects.join(standby, F.col("suspect_key") == F.col("row_key"), "left").drop("suspect_key")
