"""May a pod be restarted? For each task that it holds: who else has a good copy, and what an unclean stop does."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from agent.contract.events import Status
from spark_rollup.columns import TASK, release
from spark_rollup.correlate.base import Facts
from spark_rollup.correlate.copies import copies
from spark_rollup.correlate.fleet import attach, prefixed, same_task
from spark_rollup.schemas import RESTARTS

SAFE, CLEAN_ONLY, RESTORE, KEEP, UNKNOWN = "safe", "clean-stop-only", "restore", "keep", "unknown"

ANSWERS = {
    SAFE: "a healthy, recent copy is held elsewhere",
    CLEAN_ONLY: "stop it cleanly: a kill after the grace period leaves records that were never committed (KAFKA-20685)",
    RESTORE: "no copy elsewhere: the task is restored from the changelog, or waits until the pod is back",
    UNKNOWN: "a pod that may have the other copy is not heard: nobody can say",
    KEEP: "the only healthy copy; the others are damaged or far behind: repair those first",
}
"""What each answer means; from harmless to dangerous. A pod's answer is the worst of its tasks'."""

WALKS_AWAY = ((4, 3, 0), (4, 3, 1))
"""First and last release on which a task that moves away may be deleted before it comes back (KAFKA-20805)."""


def restarts(facts: Facts) -> DataFrame:
    """Answer for every task that every pod holds.

    Output columns: `RESTARTS`.
    Grain: one row per held copy of a task.
    """
    held = copies(facts).withColumn("row_key", F.concat_ws("/", *TASK, "pod"))
    other = (
        prefixed(held.select(*TASK, "pod", "healthy", "watched", "ill"), "other_"),
        same_task("other_") & (F.col("other_pod") != F.col("pod")),
    )
    found = {
        "healthy_elsewhere": F.array_sort(F.collect_set(F.when(F.col("other_healthy"), F.col("other_pod")))),
        "ill_elsewhere": F.array_sort(
            F.collect_set(F.when(~F.col("other_healthy"), F.concat_ws(" ", "other_pod", "other_ill")))
        ),
        "unheard": F.coalesce(F.max(~F.col("other_watched")), F.lit(False)),
    }
    story = attach(held, *other, found)
    exposed = facts.local.where(
        (F.col("detector") == "stale-eos-checkpoint") & (F.col("status") == Status.OPEN.value)
    ).select(*TASK, "pod", F.lit(True).alias("exposed"))
    settings = facts.settings.select(
        "namespace", "application_id", "processing_guarantee", "release_low", "release_high"
    )
    rows = story.join(exposed.distinct(), [*TASK, "pod"], "left").join(
        settings, ["namespace", "application_id"], "left"
    )
    known = rows.withColumn("exposed", F.coalesce("exposed", F.lit(False)))
    return known.select(
        *TASK, "pod", _answer().alias("answer"), "healthy_elsewhere", "ill_elsewhere",
        F.when(F.size("healthy_elsewhere") == 0, F.col("bytes")).alias("restore_bytes"),
        _unclean().alias("unclean_stop"),
    ).select(*RESTARTS.names)  # fmt: skip


def _answer() -> Column:
    alone = F.size("healthy_elsewhere") == 0
    return (
        F.when(F.col("healthy") & alone & (F.size("ill_elsewhere") > 0) & ~F.col("unheard"), F.lit(KEEP))
        .when(alone & F.col("unheard"), F.lit(UNKNOWN))
        .when(F.col("exposed"), F.lit(CLEAN_ONLY))
        .when(alone, F.lit(RESTORE))
        .otherwise(F.lit(SAFE))
    )


def _unclean() -> Column:
    """Say what happens to this copy if the process is killed instead of stopped."""
    exactly_once = F.col("processing_guarantee").startswith("exactly_once")
    deleted = F.when(
        (F.col("release_low") <= release(*WALKS_AWAY[1]))
        & (F.col("release_high") >= release(*WALKS_AWAY[0])),
        F.lit(
            "; if the task moves away meanwhile, its directory may be deleted before it comes back (KAFKA-20805)"
        ),
    )
    main = (
        F.when(F.col("exposed"), F.lit("uncommitted records stay in the store and are trusted (KAFKA-20685)"))
        .when(exactly_once, F.lit("the store is wiped at the next start and restored"))
        .when(
            F.col("processing_guarantee").isNull(),
            F.lit("depends on the processing guarantee, which is not known"),
        )
        .otherwise(F.lit("records since the last checkpoint are replayed onto the store"))
    )
    return F.concat(main, F.coalesce(deleted, F.lit("")))
