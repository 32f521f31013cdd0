"""What each boot of an agent said in each slot of time, counted: gaps and coverage need no more of all the events.

Only whole numbers are aggregated, so Spark hashes the events where they lie and moves one row per slot.
"""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from spark_rollup.columns import MICROS
from spark_rollup.config import SILENT_AFTER_S

SLOT_US = SILENT_AFTER_S * MICROS
"""Two events with more than the silence limit between them never share a slot (microseconds)."""

BOOT = ("namespace", "pod", "pod_uid", "boot_id")


def beats(events: DataFrame) -> DataFrame:
    """Count what each boot said per slot.

    Input columns: `EVENT_ROW`, one row per id.
    Output columns: `BOOT`, node, agent_version, slot, events, first_us, last_us (by time), stop_us (announced end),
        first, last (sequences), at_first_us, at_last_us (when those were observed), level_last and level_us (sequence
        and time of the newest heartbeat that counts what is open), criticals, warnings, tasks (its counts).
    Grain: one row per boot and slot of `SLOT_US`.
    """
    at = F.col("observed_at_us")
    counts = F.when(F.col("open_criticals").isNotNull(), F.col("sequence"))
    return events.groupBy(*BOOT, "node", "agent_version", F.floor(at / F.lit(SLOT_US)).alias("slot")).agg(
        F.count("*").alias("events"),
        F.min("observed_at_us").alias("first_us"),
        F.max("observed_at_us").alias("last_us"),
        F.max(F.when(F.col("phase") == "stopping", at)).alias("stop_us"),
        F.min("sequence").alias("first"),
        F.max("sequence").alias("last"),
        F.min_by("observed_at_us", "sequence").alias("at_first_us"),
        F.max_by("observed_at_us", "sequence").alias("at_last_us"),
        F.max(counts).alias("level_last"),
        F.max_by("observed_at_us", counts).alias("level_us"),
        F.max_by("open_criticals", counts).alias("criticals"),
        F.max_by("open_warnings", counts).alias("warnings"),
        F.max_by("tasks", counts).alias("tasks"),
    )


def stretches(events: DataFrame, counted: DataFrame) -> DataFrame:
    """List runs of sequences without a hole; slots with a hole inside are taken apart, event by event.

    Input columns: `EVENT_ROW`; those of `heartbeats`.
    Output columns: `BOOT`, first, last (sequences), at_first_us, at_last_us.
    Grain: one row per slot without a hole, or per event.
    """
    shown = (*BOOT, "first", "last", "at_first_us", "at_last_us")
    whole = F.col("last") - F.col("first") + 1 == F.col("events")
    torn = counted.where(~whole).select(*BOOT, "slot")
    single = (
        events.select(
            *BOOT, "sequence", "observed_at_us",
            F.floor(F.col("observed_at_us") / F.lit(SLOT_US)).alias("slot"),
        )
        .join(torn, [*BOOT, "slot"], "left_semi")
        .select(
            *BOOT, F.col("sequence").alias("first"), F.col("sequence").alias("last"),
            F.col("observed_at_us").alias("at_first_us"), F.col("observed_at_us").alias("at_last_us"),
        )
    )  # fmt: skip
    return counted.where(whole).select(*shown).unionByName(single)


def last_words(counted: DataFrame, since_us: int = 0) -> DataFrame:
    """Say when each pod was last heard, by whom, and whether its agent had announced its end.

    Input columns: those of `heartbeats`.
    Output columns: namespace, pod, first_us, last_us, stopped, pod_uid, node, agent_version, boots and events (of
        the look-back).
    Grain: one row per pod.
    """
    order = F.struct("last_us", "at_last_us", "last", "boot_id")
    recent = F.col("last_us") >= since_us
    return counted.groupBy("namespace", "pod").agg(
        F.min("first_us").alias("first_us"),
        F.max("last_us").alias("last_us"),
        F.coalesce(F.max("stop_us") >= F.max("last_us"), F.lit(False)).alias("stopped"),
        F.max_by(F.struct("pod_uid", "node", "agent_version"), order).alias("who"),
        F.count_distinct(F.when(recent, F.struct("pod_uid", "boot_id"))).alias("boots"),
        F.sum(F.when(recent, F.col("events")).otherwise(F.lit(0))).alias("events"),
    ).select("namespace", "pod", "first_us", "last_us", "stopped", "who.*", "boots", "events")  # fmt: skip
