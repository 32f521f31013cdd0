"""Questions about the rest of the fleet that several rules ask. A suspect row has a unique `row_key`."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from spark_rollup.columns import MICROS, TASK, clock, entry, numbered
from spark_rollup.facts.gaps import touches
from spark_rollup.judging.base import Facts
from spark_rollup.spark.single_partition import single_partition

SKEW_US = 10 * MICROS
"""Clocks of two pods differ by less than this (microseconds): what is shorter says nothing about their order."""

FAR_MORE_RATIO = 2
"""A copy with more than this many times the puts of another one has far more."""

NOISE_PUTS = 10
"""Differences up to this many puts say nothing."""

OFFSET_SLACK = 0.05
"""Offsets this close (share of the suspect's) are about the same."""

MAX_INTERVALS = 20
"""How many holder intervals one evidence chain shows."""


def attach(suspects: DataFrame, others: DataFrame, same: Column, found: Mapping[str, Column]) -> DataFrame:
    """Join other rows to suspects and add what the matching ones say.

    One join and one grouping instead of joining an aggregate back: a plan that joins itself doubles with every step.

    Args:
        suspects: One row per `row_key`.
        others: Rows whose column names differ from the suspects' (see `prefixed`).
        same: Join condition.
        found: Aggregates over the matching rows, by the name of the new column.

    Returns:
        The suspects with the new columns; still one row per `row_key`.
    """
    kept = F.first(F.struct(*suspects.columns)).alias("kept")
    grouped = (
        single_partition(suspects)
        .join(single_partition(others), same, "left")
        .groupBy(F.col("row_key").alias("group_key"))
    )
    return grouped.agg(kept, *(column.alias(name) for name, column in found.items())).select("kept.*", *found)


def prefixed(rows: DataFrame, prefix: str) -> DataFrame:
    """Rename every column, so that the rows can be joined to suspects."""
    return rows.select(*(F.col(name).alias(prefix + name) for name in rows.columns))


def same_task(prefix: str) -> Column:
    """Compare a suspect's task with that of `prefixed` rows."""
    first, *rest = (F.col(name) == F.col(prefix + name) for name in TASK)
    for condition in rest:
        first = first & condition
    return first


def same_store(prefix: str) -> Column:
    """Compare stores; a finding without a store covers all of its task's."""
    return F.coalesce(F.col(f"{prefix}store") == F.col("store"), F.lit(True))


def own_size(suspects: DataFrame, sizes: DataFrame, since: str) -> DataFrame:
    """Add how far the suspect's own store incarnation came, and when it was first seen there.

    Args:
        suspects: row_key, `TASK`, pod, store, identity and the time column `since`.
        sizes: `sizes.sizes`.
        since: Readings without an identity count from this time on.

    Returns:
        The suspects with own_at_us, own_offset, own_puts (null = never seen).
    """
    readings = prefixed(sizes.where(F.col("offset").isNotNull() & F.col("puts").isNotNull()), "reading_")
    incarnation = F.coalesce(
        F.col("reading_identity") == F.col("identity"), F.col("reading_at_us") >= F.col(since)
    )
    same = (
        same_task("reading_") & (F.col("reading_pod") == F.col("pod")) & incarnation & same_store("reading_")
    )
    furthest = F.max(
        F.struct("reading_offset", "reading_puts", (-F.col("reading_at_us")).alias("minus_at_us"))
    )
    return attach(suspects, readings, same, {"furthest": furthest}).select(
        *suspects.columns,
        (-F.col("furthest.minus_at_us")).alias("own_at_us"),
        F.col("furthest.reading_offset").alias("own_offset"),
        F.col("furthest.reading_puts").alias("own_puts"),
    )


def closest_replica(suspects: DataFrame, sizes: DataFrame) -> DataFrame:
    """Add the other pod's reading that is closest to the suspect's offset, and not beyond it.

    A copy at a higher offset may hold more for good reason, so it proves nothing.

    Args:
        suspects: row_key, `TASK`, pod, store, own_offset, own_puts.
        sizes: `sizes.sizes`.

    Returns:
        The suspects with replica_pod, replica_at_us, replica_offset, replica_puts, replica_entries_low (null = none)
        and `far_less`: this store holds far less than that replica (null = nothing to compare).
    """
    readings = prefixed(sizes.where(F.col("offset").isNotNull() & F.col("puts").isNotNull()), "replica_")
    comparable = F.col("replica_offset") <= F.col("own_offset") * (1 + OFFSET_SLACK) + NOISE_PUTS
    same = (
        same_task("replica_") & (F.col("replica_pod") != F.col("pod")) & comparable & same_store("replica_")
    )
    names = ("replica_pod", "replica_at_us", "replica_offset", "replica_puts", "replica_entries_low")
    distance = F.abs(F.col("replica_offset") - F.col("own_offset"))
    nearest = F.min_by(
        F.struct(*names), F.struct(distance, -F.col("replica_puts"), "replica_at_us", "replica_pod")
    )
    return attach(suspects, readings, same, {"nearest": nearest}).select(
        *suspects.columns,
        "nearest.*",
        far_less(F.col("own_puts"), F.col("nearest.replica_puts")).alias("far_less"),
    )


def far_less(own: Column, other: Column) -> Column:
    """Return whether one copy holds far less than another; null when one of the two is unknown."""
    return (other > own * FAR_MORE_RATIO) & (other - own > NOISE_PUTS)


def elsewhere(suspects: DataFrame, held: DataFrame, from_us: str, to_us: str) -> DataFrame:
    """Add who else held the task between two times.

    Returns:
        The suspects with `elsewhere` (array of evidence entries) and `other_pods` (array of names); empty = none.
    """
    others = prefixed(held.where(~F.col("cleaner")), "held_")
    overlap = (F.col("held_from_us") <= F.col(to_us)) & (F.col("held_to_us") >= F.col(from_us))
    same = same_task("held_") & (F.col("held_pod") != F.col("pod")) & overlap
    until = F.when(F.col("held_lasting"), F.lit("the last reading")).otherwise(clock("held_to_us"))
    shown = entry(
        F.col("held_from_us"),
        numbered("%s held the task from %s to %s", "held_pod", clock("held_from_us"), until),
        F.col("held_pod"),
    )
    found = {
        "elsewhere": F.slice(F.array_sort(F.collect_list(shown)), 1, MAX_INTERVALS),
        "other_pods": F.array_sort(F.collect_set("held_pod")),
    }
    return attach(suspects, others, same, found)


def with_gap_flag(suspects: DataFrame, gaps: DataFrame, from_us: str, to_us: str, flag: str) -> DataFrame:
    """Add a boolean column: was the suspect's pod unwatched at any time of the closed interval [from_us, to_us]?"""
    same = (
        (F.col("gap_namespace") == F.col("namespace"))
        & (F.col("gap_pod") == F.col("pod"))
        & concerns_task()
        & touches(F.col(from_us), F.col(to_us))
    )
    return attach(
        suspects,
        prefixed(gaps, "gap_"),
        same,
        {flag: F.coalesce(F.max(F.col("gap_pod").isNotNull()), F.lit(False))},
    )


def with_unwatched(suspects: DataFrame, facts: Facts, from_us: str, to_us: str) -> DataFrame:
    """Add `unwatched_pods`: pods of the application that were not watched all through the closed [from_us, to_us].

    A pod that never named any application may have been one of this application's.
    """
    home = homes(facts).withColumnRenamed("application_id", "member")
    known = prefixed(facts.unwatched.join(home, ["namespace", "pod"], "inner"), "gap_")
    same = (
        (F.col("gap_namespace") == F.col("namespace"))
        & (F.col("gap_member") == F.col("application_id"))
        & concerns_task()
        & touches(F.col(from_us), F.col(to_us))
    )
    return attach(suspects, known, same, {"unwatched_pods": F.array_sort(F.collect_set("gap_pod"))})


def homes(facts: Facts) -> DataFrame:
    """List which pods may be of which application: one that never named any may be of each in its namespace.

    Output columns: namespace, pod, application_id.
    """
    # a pod that named no application has one row without any
    at_home = facts.members.where(F.col("application_id").isNull()).select("namespace", "pod")
    named = single_partition(
        facts.settings.select("namespace", "application_id").join(at_home, "namespace", "inner")
    )
    members = facts.members.where(F.col("application_id").isNotNull()).unionByName(named)
    return members.select("namespace", "pod", "application_id")


def concerns_task() -> Column:
    """Return whether a gap (prefixed `gap_`) concerns the suspect's task: most concern all of the pod."""
    application, task = F.col("gap_application_id"), F.col("gap_task_id")
    return F.coalesce(application == F.col("application_id"), F.lit(True)) & F.coalesce(
        task == F.col("task_id"), F.lit(True)
    )


def suspects_of(local: DataFrame, *detectors: str) -> DataFrame:
    """Take agents' findings of some detectors as suspects.

    Output columns: those of `last_local_findings`, row_key.
    """
    key = F.concat_ws("/", "namespace", "pod", "finding_id")
    return local.where(F.col("detector").isin(*detectors)).withColumn("row_key", key)
