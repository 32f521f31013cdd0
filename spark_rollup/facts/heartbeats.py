"""What each boot of an agent said in each slot of time, counted: gaps and coverage need no more of all the events.

Only whole numbers are aggregated, so Spark hashes the events where they lie and moves one row per slot.
"""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from agent.contract.events import Kind
from spark_rollup.fleet.events import SLOT_US

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


def torn(events: DataFrame, counted: DataFrame) -> DataFrame:
    """Take slots with a hole inside apart, event by event.

    Input columns: `EVENT_ROW`; those of `beats`.
    Output columns: `BOOT`, first, last (both the sequence), at_first_us, at_last_us (both when it was observed).
    """
    slots = counted.where(F.col("last") - F.col("first") + 1 != F.col("events")).select(*BOOT, "slot")
    own = events.select(
        *BOOT, "sequence", "observed_at_us",
        F.floor(F.col("observed_at_us") / F.lit(SLOT_US)).alias("slot"),
    )  # fmt: skip
    return own.where(F.col("sequence").isNotNull()).join(slots, [*BOOT, "slot"], "left_semi").select(
        *BOOT, F.col("sequence").alias("first"), F.col("sequence").alias("last"),
        F.col("observed_at_us").alias("at_first_us"), F.col("observed_at_us").alias("at_last_us"),
    )  # fmt: skip


def newest_levels(counted: DataFrame) -> DataFrame:
    """Find the newest heartbeat of each pod's newest boot that counts what is open.

    Input columns: those of `beats`.
    Output columns: `BOOT`, level_last (null = it counts nothing: its agent is older than contract 1.3), level_us.
    Grain: one row per pod.
    """
    boots = counted.groupBy(*BOOT).agg(
        F.max(F.struct("last_us", "at_last_us", "last")).alias("newest"),
        F.max_by(F.struct("level_last", "level_us"), "level_last").alias("level"),
    )
    whole = F.struct("pod_uid", "boot_id", "level")
    newest = boots.groupBy("namespace", "pod").agg(
        F.max_by(whole, F.struct("newest", "boot_id")).alias("boot")
    )
    return newest.select("namespace", "pod", "boot.pod_uid", "boot.boot_id", "boot.level.*")


def naming_open(events: DataFrame, counted: DataFrame) -> DataFrame:
    """Take the heartbeats of `newest_levels` that name what is open: events."""
    named = events.where((F.col("kind") == Kind.HEARTBEAT.value) & (F.size("open_ids") > 0))
    newest = F.broadcast(newest_levels(counted).select(*BOOT, F.col("level_last").alias("sequence")))
    return named.join(newest, [*BOOT, "sequence"], "left_semi")
