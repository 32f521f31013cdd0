"""Where no agent was watching: gaps in each agent's sequence, its own blind intervals, silence.

Nothing may be concluded inside any of these intervals. Half-open, microseconds since the epoch.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import reduce

from pyspark.sql import DataFrame
from pyspark.sql import Window as W
from pyspark.sql import functions as F

from agent.contract.events import Kind
from agent.contract.reporting import SUMMARY_S
from spark_rollup.columns import MICROS, is_notable
from spark_rollup.facts.heartbeats import BOOT, SLOT_US, last_words, stretches
from spark_rollup.fleet.pods import DROPPED, EARLIER, FAST, LOST, SILENT, STOPPED
from spark_rollup.schemas import GAP

MOST_US = 86_400 * MICROS
"""No gap of a fast clock is reported as longer than this (microseconds)."""


def find_gaps(events: DataFrame, counted: DataFrame, as_of_us: int) -> DataFrame:
    """Collect every interval in which a pod was not watched.

    Input columns: `EVENT_ROW`, one row per id; those of `heartbeats.beats`.
    Output columns: `GAP`; `cause` is one of this module's constants or the agent's own blind cause.
    Grain: one row per interval.
    Nulls: application_id and task_id are null where everything on the pod is concerned.
    """
    parts = (
        sequence_holes(events, counted),
        pauses(counted),
        blind_intervals(events, as_of_us),
        silent_agents(counted, as_of_us),
    )
    return reduce(DataFrame.unionByName, parts)


def sequence_holes(events: DataFrame, counted: DataFrame) -> DataFrame:
    """Find missing sequence numbers within one boot of an agent.

    Numbers that a `drop` record announces are a gap of cause `dropped-events`; those before a boot's first record
    are `earlier-events-not-in-input` (an input that starts later has them), if the boot counted what is open since;
    all others are `lost-events`.

    Output columns: `GAP`.
    """
    boot = W.partitionBy(*BOOT).orderBy("first")
    holes = (
        stretches(events, counted)
        .withColumn("before", F.coalesce(F.lag("last").over(boot), F.lit(0)))
        .withColumn("before_us", F.coalesce(F.lag("at_last_us").over(boot), F.col("at_first_us")))
        .where(F.col("first") > F.col("before") + 1)
        .select(
            *BOOT,
            (F.col("before") + 1).alias("first"),
            (F.col("first") - 1).alias("last"),
            F.col("before_us").alias("from_us"),
            F.greatest("at_first_us", "before_us").alias("to_us"),
        )
    )
    drops = events.where(is_notable() & (F.col("kind") == Kind.DROP.value)).select(
        "pod_uid",
        "boot_id",
        F.col("first_sequence").alias("drop_first"),
        F.col("last_sequence").alias("drop_last"),
    )
    # `least` and `greatest` skip nulls: without a drop they would announce the whole hole
    overlap = F.when(
        F.col("drop_first").isNotNull(), F.least("last", "drop_last") - F.greatest("first", "drop_first") + 1
    )
    key = [*BOOT, "first", "last", "from_us", "to_us"]
    announced = (
        holes.join(drops, ["pod_uid", "boot_id"], "left")
        .groupBy(*key)
        .agg(F.coalesce(F.sum(F.greatest(overlap, F.lit(0))), F.lit(0)).alias("announced"))
        .withColumn("lost", F.greatest(F.col("last") - F.col("first") + 1 - F.col("announced"), F.lit(0)))
    )
    counts = counted.groupBy(*BOOT).agg(F.max("level_last").isNotNull().alias("counts"))
    cause = F.when((F.col("first") == 1) & F.col("counts"), F.lit(EARLIER)).otherwise(F.lit(LOST))
    announced = announced.join(counts, list(BOOT), "inner")
    lost = announced.where(F.col("lost") > 0).select(
        "*", cause.alias("cause"), F.col("lost").alias("missing")
    )
    dropped = announced.where(F.col("lost") == 0).select(
        "*", F.lit(DROPPED).alias("cause"), F.col("announced").alias("missing")
    )
    return _gap(lost.unionByName(dropped))


def pauses(counted: DataFrame) -> DataFrame:
    """Find times between two events of a pod in which its agent said nothing or did not run.

    Input columns: those of `heartbeats.beats`.
    Output columns: `GAP`; cause `agent-not-running` after an announced stop, else `silent-agent`.
    """
    pod = W.partitionBy("namespace", "pod").orderBy("first_us", "pod_uid", "boot_id")
    seen = counted.select(
        "namespace", "pod", "first_us",
        F.lag("last_us").over(pod).alias("before_us"),
        F.lag("stop_us").over(pod).alias("before_stop_us"),
    )  # fmt: skip
    stopped = F.coalesce(F.col("before_stop_us") >= F.col("before_us"), F.lit(False))
    long = F.col("first_us") - F.col("before_us") > SLOT_US
    return _gap(
        seen.where(F.when(stopped, F.col("first_us") > F.col("before_us")).otherwise(long)).select(
            "namespace", "pod",
            F.col("before_us").alias("from_us"),
            F.col("first_us").alias("to_us"),
            F.when(stopped, F.lit(STOPPED)).otherwise(F.lit(SILENT)).alias("cause"),
        )
    )  # fmt: skip


def blind_intervals(events: DataFrame, as_of_us: int) -> DataFrame:
    """Take over what agents say about themselves in their heartbeats.

    A heartbeat repeats an open interval; the last word about it counts. One that never ended lasts until now.

    Output columns: `GAP`.
    """
    rows = events.where(is_notable() & (F.col("kind") == Kind.HEARTBEAT.value)).select(
        *BOOT, F.explode("blind").alias("blind")
    )
    key = [*BOOT, "from_us", "cause", "application_id", "task_id"]
    return _gap(
        rows.select(*BOOT, "blind.*")
        .groupBy(*key)
        .agg(F.coalesce(F.max("to_us"), F.lit(as_of_us)).alias("to_us"))
    )


def silent_agents(counted: DataFrame, as_of_us: int) -> DataFrame:
    """Find agents that went silent without saying that they stop.

    Input columns: those of `heartbeats.beats`.
    Output columns: `GAP`, cause `silent-agent`, until now.
    """
    last = last_words(counted)
    quiet = F.lit(as_of_us) - F.col("last_us") > SLOT_US
    return _gap(
        last.where(quiet & ~F.col("stopped")).select(
            "namespace", "pod", F.col("last_us").alias("from_us"), F.lit(as_of_us).alias("to_us"),
            F.lit(SILENT).alias("cause"),
        )
    )  # fmt: skip


def fast_clocks(events: DataFrame, ahead: Mapping[tuple[str, str], int], as_of_us: int) -> DataFrame:
    """Put in doubt what a pod said last whose clock is ahead: all of it may have been by so much earlier.

    Args:
        events: Any frame of the session.
        ahead: Namespace and pod -> how far, microseconds.
        as_of_us: The audit's time, microseconds since the epoch.

    Returns:
        `GAP`; cause `clock-ahead`.
    """
    rows = [
        {
            "namespace": namespace,
            "pod": pod,
            "from_us": as_of_us - min(lead_us, MOST_US),
            "to_us": as_of_us,
            "cause": FAST,
        }
        for (namespace, pod), lead_us in ahead.items()
    ]
    kind = "array<struct<namespace:string,pod:string,from_us:bigint,to_us:bigint,cause:string>>"
    table = events.sparkSession.range(1).select(F.inline(F.from_json(F.lit(json.dumps(rows)), kind)))
    return _gap(table)


def merged(gaps: DataFrame) -> DataFrame:
    """Join gaps of a pod that overlap or meet, whatever their causes: lossy fleets have very many small ones.

    Input columns: `GAP`.
    Output columns: namespace, pod, application_id, task_id, from_us, until_us.
    Grain: one row per time (closed interval) that was not watched.
    """
    whose = ("namespace", "pod", "application_id", "task_id")
    order = W.partitionBy(*whose).orderBy("from_us", "until_us")
    reached = F.max("until_us").over(order.rowsBetween(W.unboundedPreceding, -1))
    begins = F.when(F.col("from_us") <= reached, F.lit(0)).otherwise(F.lit(1))
    island = F.sum("begins").over(order.rowsBetween(W.unboundedPreceding, W.currentRow))
    return (
        gaps.select(*whose, "from_us", "until_us")
        .withColumn("begins", begins)
        .withColumn("island", island)
        .groupBy(*whose, "island")
        .agg(F.min("from_us").alias("from_us"), F.max("until_us").alias("until_us"))
        .drop("island")
    )


def _gap(rows: DataFrame) -> DataFrame:
    lost = F.col("cause").isin(
        LOST, DROPPED, EARLIER
    )  # no agent rescans after these: the next summaries repair
    repaired = F.col("to_us") + F.when(lost, F.lit((SUMMARY_S + 1) * MICROS)).otherwise(F.lit(0))
    rows = rows.withColumn("until_us", repaired)
    missing = set(rows.columns)
    return rows.select(
        *(
            F.col(field.name) if field.name in missing else F.lit(None).cast(field.dataType).alias(field.name)
            for field in GAP.fields
        )
    )
