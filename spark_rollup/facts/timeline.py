"""Per application, task and pod: who held what when, what was made and deleted, how far each copy had come.

All times are microseconds since the epoch, intervals half-open. Every frame carries the key `columns.TASK` and `pod`.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from agent.contract.events import Change, Kind
from spark_rollup.columns import MICROS, TASK, is_notable, summary
from spark_rollup.spark.materialize import materialize

HOUR_US = 3600 * MICROS


_SLOT = (*TASK, "pod", "boot_id", "slot")


def points(events: DataFrame) -> DataFrame:
    """List who was seen to hold what when, without summaries that only repeat.

    Where all summaries of a slot agree, or changed once, and no transition came between, the first of each
    kind says it all. All other slots are taken apart, summary by summary.

    Output columns: `TASK`, pod, observed_at_us, boot_id, sequence, now_held.
    """
    marked_held = F.when(F.col("change") == Change.TASK_HELD.value, F.lit(True)).when(
        F.col("change").isin(Change.TASK_RELEASED.value, Change.TASK_DELETED.value), F.lit(False)
    )
    slot = F.floor(F.col("observed_at_us") / F.lit(HOUR_US)).alias("slot")
    columns = (*TASK, "pod", "observed_at_us", "boot_id", "sequence")
    steps = (
        events.where(is_notable() & F.col("task_id").isNotNull())
        .select(*columns, marked_held.alias("now_held"), slot)
        .where(F.col("now_held").isNotNull())
    )
    readings = events.where(summary() & F.col("task_id").isNotNull() & F.col("held").isNotNull()).select(
        *columns, F.col("held").alias("now_held"), slot
    )
    held, free = (F.when(side, F.col("observed_at_us")) for side in (F.col("now_held"), ~F.col("now_held")))
    folded = materialize(
        readings.groupBy(*_SLOT)
        .agg(
            F.min(held).alias("held_from_us"), F.max(held).alias("held_to_us"),
            F.min(free).alias("free_from_us"), F.max(free).alias("free_to_us"),
        )
    )  # fmt: skip
    mixed = (F.col("held_from_us") <= F.col("free_to_us")) & (F.col("free_from_us") <= F.col("held_to_us"))
    apart = folded.where(mixed).select(*_SLOT).unionByName(steps.select(*_SLOT)).distinct()
    first = F.array(
        F.struct(F.col("held_from_us").alias("at_us"), F.lit(True).alias("now_held")),
        F.struct(F.col("free_from_us").alias("at_us"), F.lit(False).alias("now_held")),
    )
    plain = (
        folded.join(apart, list(_SLOT), "left_anti")
        .select(*_SLOT, F.inline(first))
        .where(F.col("at_us").isNotNull())
        .select(
            *TASK, "pod", F.col("at_us").alias("observed_at_us"), "boot_id",
            F.lit(0).cast("bigint").alias("sequence"), "now_held",
        )
    )  # fmt: skip
    single = readings.join(apart, list(_SLOT), "left_semi").drop("slot")
    return plain.unionByName(single).unionByName(steps.drop("slot"))


def marks(events: DataFrame) -> DataFrame:
    """List what changed on disk, with the artefact's own time where that is earlier than the reading.

    Output columns: `TASK`, pod, at_us, observed_at_us, sequence, change, store, segment, identity, identity_before,
        offset_before, offset_after, puts, puts_before, bytes, entries_low, entries_high, comparable, shape, detail.
    Grain: one row per transition of a task.
    """
    return events.where(is_notable() & (F.col("kind") == Kind.TRANSITION.value) & F.col("task_id").isNotNull()).select(
        *TASK, "pod",
        F.least("observed_at_us", F.coalesce("occurred_at_us", "observed_at_us")).alias("at_us"),
        "observed_at_us", "sequence", "change", "store", "segment", "identity", "identity_before", "offset_before",
        "offset_after", "puts", "puts_before", "bytes", "entries_low", "entries_high", "comparable", "shape", "detail",
    )  # fmt: skip


def members(events: DataFrame) -> DataFrame:
    """List which pods belong to which application; a pod that never named any could belong to each.

    Output columns: namespace, application_id (null = the pod named none), pod.
    Grain: one row per application and pod.
    """
    place = ("namespace", "application_id", "pod")
    listed = events.where(F.col("kind") == Kind.HEARTBEAT.value).select("namespace", "pod", "applications")
    named = (
        events.select(*place)
        .distinct()
        .unionByName(
            listed.distinct().select("namespace", F.explode("applications").alias("application_id"), "pod")
        )
    )
    known = F.array_sort(F.collect_set("application_id"))  # skips nulls
    pods = named.groupBy("namespace", "pod").agg(known.alias("known"))
    return pods.select("namespace", F.explode_outer("known").alias("application_id"), "pod")


def sightings(events: DataFrame) -> DataFrame:
    """Find when each boot of an agent had a process id or a store's IDENTITY before its eyes.

    Within one boot a volume can be neither attached nor detached, so between two sightings the thing was there.

    Output columns: namespace, application_id, what (`process` or `store`), key, task_id, store (null for processes),
        pod, pod_uid, boot_id, from_us, to_us.
    Grain: one row per thing and boot.
    """
    boot = ("namespace", "application_id", "pod", "pod_uid", "boot_id")
    thing = "struct<what:string,key:string,task_id:string,store:string>"

    def seen(what: str, key: Column, task: Column, store: Column) -> Column:
        return F.when(key.isNotNull(), F.struct(F.lit(what), key, task, store).cast(thing))

    nothing = F.lit(None).cast("string")
    marked_store = F.when(F.col("kind") == Kind.TRANSITION.value, F.col("identity"))
    stores = F.transform(
        F.coalesce("stores", F.array().cast(events.schema["stores"].dataType)),
        lambda part: seen("store", part["identity"], F.col("task_id"), part["store"]),
    )
    own = F.array(
        seen("process", F.col("process_id"), nothing, nothing),
        F.when(F.col("task_id").isNotNull(), seen("store", marked_store, F.col("task_id"), F.col("store"))),
    )
    rows = events.select(*boot, "observed_at_us", F.explode(F.concat(own, stores)).alias("thing"))
    return (
        rows.where(F.col("thing").isNotNull())
        .groupBy(*boot, "thing")
        .agg(F.min("observed_at_us").alias("from_us"), F.max("observed_at_us").alias("to_us"))
        .select(*boot, "thing.*", "from_us", "to_us")
    )
