"""Condense many events into a few that say the same to every stage and rule."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import Window as W
from pyspark.sql import functions as F

from agent.contract.events import Change, Kind, Status
from spark_rollup.bronze.snapshots import DAY_US
from spark_rollup.columns import ROUTINE, TASK, is_notable
from spark_rollup.facts.heartbeats import BOOT
from spark_rollup.judging.past import Past
from spark_rollup.spark.materialize import materialize

FLIPS = 32
"""Changes of holder kept per task and pod: the newest. The first hold is kept, too: findings are named by it."""

_APP_POD = ("namespace", "application_id", "pod")


def newest_flips(flips: DataFrame, kept: DataFrame) -> DataFrame:
    """Keep the newest changes of holder, the first hold, and each pod's last ones before each open finding of the task.

    In between no process is said to hold the task; so every hold is kept with its end.

    Input columns: those of `timeline.flips`; events that are kept.
    Output columns: those of `timeline.flips`.
    """
    order = ("observed_at_us", "boot_id", "sequence")
    whose = W.partitionBy(*TASK, "pod")
    so_far = whose.orderBy(*order).rowsBetween(W.unboundedPreceding, W.currentRow)
    ranked = materialize(
        flips.withColumns(
            {
                "newest": F.row_number().over(whose.orderBy(*(F.desc(name) for name in order))),
                "hold": F.sum(F.col("now_held").cast("int")).over(so_far),
            }
        )
    )
    opened = kept.where(_open_findings() & F.col("task_id").isNotNull())
    times = opened.select(*TASK, "opened_at_us").distinct()
    last = (
        ranked.join(F.broadcast(times), list(TASK), "inner")
        .where(F.col("observed_at_us") <= F.col("opened_at_us"))
        .groupBy(*TASK, "pod", "opened_at_us")
        .agg(F.max("hold").alias("started"), F.max(F.when(~F.col("now_held"), F.col("hold"))).alias("ended"))
        .select(*TASK, "pod", F.explode(F.array("started", "ended")).alias("hold"))
        .distinct()
        .withColumn("before_finding", F.lit(True))
    )
    wanted = (F.col("newest") <= FLIPS) | (F.col("hold") <= 1) | F.col("before_finding")
    return ranked.join(last, [*TASK, "pod", "hold"], "left").where(wanted).select(*flips.columns)


def _open_findings() -> Column:
    return (F.col("kind") == Kind.FINDING.value) & (F.col("status") == Status.OPEN.value)


def holds(flips: DataFrame) -> DataFrame:
    """Report changes of holder as transitions, as agents do."""
    change = F.when(F.col("now_held"), Change.TASK_HELD.value).otherwise(Change.TASK_RELEASED.value)
    return _event(
        flips.withColumns({"change": change, "held": F.col("now_held")}), Kind.TRANSITION, routine=False
    )


def memberships(members: DataFrame, at_us: int) -> DataFrame:
    """Report which pod belongs to which applications, as one heartbeat per pod."""
    known = F.array_sort(F.collect_set("application_id"))
    pods = members.groupBy("namespace", "pod").agg(known.alias("applications"))
    return _event(pods.withColumn("observed_at_us", F.lit(at_us - 1)), Kind.HEARTBEAT, routine=True)


def lasting_sightings(
    sightings: DataFrame, counted: DataFrame, kept: DataFrame, pasts: Sequence[Past]
) -> DataFrame:
    """Keep what a pod still shows, on several pods all of it, what rules choose, and what an open finding names.

    Input and output columns: those of `timeline.sightings`; `counted`: those of `heartbeats.beats`; `kept`: events.
    """
    last = counted.groupBy("namespace", "pod").agg(F.max("last_us").alias("heard_us"))
    thing = W.partitionBy("namespace", "application_id", "what", "key", "task_id", "store")
    shown = sightings.join(last, ["namespace", "pod"], "inner").withColumn(
        "shown", F.col("to_us") > F.col("heard_us") - DAY_US
    )
    seen = shown.withColumns(
        {
            "several": F.min("pod").over(thing) != F.max("pod").over(thing),
            "still": F.max("shown").over(thing),
        }
    )
    suspects = kept.where(_open_findings() & F.col("identity").isNotNull())
    named = suspects.select(
        "namespace", F.col("identity").alias("key"), F.lit(True).alias("named")
    ).distinct()
    one = ("namespace", "application_id", "what", "key")
    choices = dict.fromkeys(past.sightings for past in pasts if past.sightings)
    chosen = [choose(sightings).select(*one) for choose in choices] or [sightings.select(*one).limit(0)]
    asked = reduce(DataFrame.unionByName, chosen).distinct().withColumn("asked", F.lit(True))
    return (
        seen.join(named, ["namespace", "key"], "left")
        .join(asked, list(one), "left")
        .where(F.col("shown") | (F.col("several") & F.col("still")) | F.col("named") | F.col("asked"))
        .select(*sightings.columns)
    )


def ends_of(sightings: DataFrame) -> DataFrame:
    """Report a process id's or a store IDENTITY's first and last sighting as two transitions without a change."""
    is_store = F.col("what") == "store"
    ends = F.explode(F.array_distinct(F.array("from_us", "to_us"))).alias("observed_at_us")
    rows = sightings.select(
        *_APP_POD, "pod_uid", "boot_id", "task_id", "store", ends,
        F.when(is_store, F.col("key")).alias("identity"), F.when(~is_store, F.col("key")).alias("process_id"),
    )  # fmt: skip
    return _event(rows, Kind.TRANSITION, routine=False)


def blindness(events: DataFrame) -> DataFrame:
    """Report blind intervals that never ended as one heartbeat each; the oldest of a cause represents all."""
    beaten = events.where(is_notable() & (F.col("kind") == Kind.HEARTBEAT.value)).select(
        *BOOT, "observed_at_us", F.explode("blind").alias("one")
    )
    whose = ("cause", "application_id", "task_id")
    beats_of = beaten.groupBy(*BOOT, "one.from_us", *(f"one.{name}" for name in whose)).agg(
        F.max("one.to_us").alias("to_us"),
        F.max("observed_at_us").alias("observed_at_us"),
        F.max_by("one", "observed_at_us").alias("one"),
    )
    oldest = W.partitionBy("namespace", "pod", *whose).orderBy("from_us", "pod_uid", "boot_id")
    lasting = beats_of.where(F.col("to_us").isNull()).withColumn("rank", F.row_number().over(oldest))
    rows = lasting.where(F.col("rank") == 1).select(*BOOT, "observed_at_us", F.array("one").alias("blind"))
    return _event(rows, Kind.HEARTBEAT, routine=False)


def levels(events: DataFrame, newest: DataFrame) -> DataFrame:
    """Keep of each pod's newest heartbeat that counts which findings it names; its counts are in `HEARD`.

    Input columns: `EVENT_ROW`; those of `levels.newest_levels`.
    """
    named = events.where((F.col("kind") == Kind.HEARTBEAT.value) & (F.size("open_ids") > 0)).select(
        *BOOT, F.col("sequence").alias("level_last"), "observed_at_us", "open_ids"
    )
    kept = named.join(newest.select(*BOOT, "level_last"), [*BOOT, "level_last"], "left_semi")
    return _event(kept.withColumnRenamed("level_last", "sequence"), Kind.HEARTBEAT, routine=True)


def _event(rows: DataFrame, kind: Kind, *, routine: bool) -> DataFrame:
    """Make events of rows; the id is made of all that they say."""
    said = F.sha2(F.to_json(F.struct(*rows.columns)), 256)
    given: dict[str, Column] = {
        "id": F.concat(F.lit("carried-"), F.substring(said, 1, 32)),
        "kind": F.lit(kind.value),
        ROUTINE: F.lit(routine),
    }
    return rows.withColumns(given)
