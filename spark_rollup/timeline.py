"""Per application, task and pod: who held what when, what was made and deleted, how far each copy had come.

All times are microseconds since the epoch, intervals half-open. Every frame carries the key `columns.TASK` and `pod`.
"""

from __future__ import annotations

from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import Window as W
from pyspark.sql import functions as F

from agent.contract.events import Change, Kind
from spark_rollup.columns import MICROS, TASK, numbered
from spark_rollup.gaps import last_words
from spark_rollup.schemas import TIMELINE

CLEANER_MARGIN_US = 2 * MICROS
"""A lock that goes free this shortly before or after a cleaner deleted the directory was the cleaner's own."""


def holders(events: DataFrame) -> DataFrame:
    """Find who held a task when, from `task-held`, `task-released` and the summaries between them.

    A holder is visible through an open RocksDB or a held task lock; a task whose locks nobody can see has no row.
    The cleaner takes the lock of a directory that it deletes: such an interval has `cleaner` set, it is no owner.

    Output columns: `TASK`, pod, from_us, to_us, lasting (still held when the pod was last heard), cleaner.
    Grain: one row per interval.
    """
    told = F.when(F.col("change") == Change.TASK_HELD.value, F.lit(True)).when(
        F.col("change").isin(Change.TASK_RELEASED.value, Change.TASK_DELETED.value), F.lit(False)
    )
    seen = F.when(F.col("kind") == Kind.SUMMARY.value, F.col("held"))
    points = events.where(F.col("task_id").isNotNull()).select(
        *TASK, "pod", "observed_at_us", "boot_id", "sequence", F.coalesce(told, seen).alias("now_held")
    ).where(F.col("now_held").isNotNull())  # fmt: skip
    order = W.partitionBy(*TASK, "pod").orderBy("observed_at_us", "boot_id", "sequence")
    changes = points.withColumn("was_held", F.lag("now_held").over(order)).where(
        F.col("was_held").isNull() | (F.col("was_held") != F.col("now_held"))
    )
    heard = last_words(events).select("namespace", "pod", "last_us")
    intervals = (
        changes.withColumn("until_us", F.lead("observed_at_us").over(order))
        .where(F.col("now_held"))
        .join(heard, ["namespace", "pod"], "inner")
        .select(
            *TASK, "pod",
            F.col("observed_at_us").alias("from_us"),
            F.coalesce("until_us", "last_us").alias("to_us"),
            F.col("until_us").isNull().alias("lasting"),
        )
    )  # fmt: skip
    cleaned = marks(events).where(F.col("shape") == "cleaner-walk")
    return _mark_cleaners(intervals, cleaned)


def _mark_cleaners(intervals: DataFrame, cleaned: DataFrame) -> DataFrame:
    ends = cleaned.where(F.col("change") == Change.TASK_DELETED.value).groupBy(*TASK, "pod").agg(
        F.collect_list("at_us").alias("cleaned_us")
    )  # fmt: skip
    own = F.exists(
        "cleaned_us",
        lambda at: (at >= F.col("from_us")) & (at >= F.col("to_us") - CLEANER_MARGIN_US)
        & (at <= F.col("to_us") + CLEANER_MARGIN_US),
    )  # fmt: skip
    short = ~F.col("lasting")
    return intervals.join(ends, [*TASK, "pod"], "left").select(
        *TASK, "pod", "from_us", "to_us", "lasting", F.coalesce(short & own, F.lit(False)).alias("cleaner")
    )


def marks(events: DataFrame) -> DataFrame:
    """List what changed on disk, with the artefact's own time where that is earlier than the look.

    Output columns: `TASK`, pod, at_us, observed_at_us, sequence, change, store, segment, identity, identity_before,
        offset_before, offset_after, puts, puts_before, bytes, shape, detail.
    Grain: one row per transition of a task.
    """
    return events.where((F.col("kind") == Kind.TRANSITION.value) & F.col("task_id").isNotNull()).select(
        *TASK, "pod",
        F.least("observed_at_us", F.coalesce("occurred_at_us", "observed_at_us")).alias("at_us"),
        "observed_at_us", "sequence", "change", "store", "segment", "identity", "identity_before", "offset_before",
        "offset_after", "puts", "puts_before", "bytes", "shape", "detail",
    )  # fmt: skip


def sizes(events: DataFrame) -> DataFrame:
    """Measure how far each copy of a store had come: puts and bytes at a changelog offset.

    Segments of a windowed store are added up. A checkpoint transition speaks of all stores of its task together, so
    it counts only where the task has a single one.

    Output columns: `TASK`, store, pod, at_us, identity, offset, puts, bytes, entries_low, entries_high (null =
        unknown), segmented, sealed (offset and files are known to tell the same moment: a closed store of
        4.3 or later), checkpoint (the row was told by a checkpoint's writing).
    Grain: one row per look at a store.
    """
    looks = (
        events.where(F.col("kind") == Kind.SUMMARY.value)
        .select("id", *TASK, "pod", "observed_at_us", "offsets", F.explode("stores").alias("part"))
        .groupBy(
            "id", *TASK, F.col("part.store").alias("store"), "pod", F.col("observed_at_us").alias("at_us")
        )
        .agg(
            F.when(F.count("*") == 1, F.max("part.identity")).alias("identity"),
            F.max(F.coalesce("part.offset", _only_offset())).alias("offset"),
            F.sum("part.puts").alias("puts"),
            F.sum("part.bytes").alias("bytes"),
            *(
                F.when(F.count(f"part.{name}") == F.count("*"), F.sum(f"part.{name}")).alias(name)
                for name in ("entries_low", "entries_high")
            ),
            (F.count("part.segment") > 0).alias("segmented"),
            F.coalesce(F.max("part.status") == "closed", F.lit(False)).alias("sealed"),
            F.lit(False).alias("checkpoint"),
        )
        .drop("id")
    )
    changes = marks(events)
    named = (
        changes.select(*TASK, "store")
        .unionByName(looks.select(*TASK, "store"))
        .where(F.col("store").isNotNull())
    )
    single = named.groupBy(*TASK).agg(F.min("store").alias("store"), F.max("store").alias("other"))
    written = (
        changes.where((F.col("change") == Change.CHECKPOINT_WRITTEN.value) & F.col("puts").isNotNull())
        .drop("store")
        .join(single.where(F.col("store") == F.col("other")), list(TASK), "inner")
    )
    return looks.unionByName(
        written.select(
            *TASK, "store", "pod", "at_us", "identity", F.col("offset_after").alias("offset"), "puts", "bytes",
            F.lit(None).cast("bigint").alias("entries_low"), F.lit(None).cast("bigint").alias("entries_high"),
            F.lit(False).alias("segmented"), F.lit(False).alias("sealed"), F.lit(True).alias("checkpoint"),
        )
    )  # fmt: skip


def _only_offset() -> Column:
    return F.when(F.size("offsets") == 1, F.try_element_at("offsets", F.lit(1)).getField("offset"))


def lives(events: DataFrame, held: DataFrame) -> DataFrame:
    """Find when each pod's Streams process lived, as far as anybody could tell.

    Process transitions decide where the agent sees them. Otherwise a process lived at least from its first hold to
    its last sign: a lock it held, or a directory its cleaner deleted.

    Output columns: namespace, application_id, pod, from_us, to_us.
    Grain: one row per life.
    """
    app_pod = ("namespace", "application_id", "pod")
    process = events.where(
        F.col("change").isin(Change.PROCESS_STARTED.value, Change.PROCESS_ENDED.value)
    ).select(*app_pod, "observed_at_us", "boot_id", "sequence", "change")  # fmt: skip
    order = W.partitionBy(*app_pod).orderBy("observed_at_us", "boot_id", "sequence")
    heard = last_words(events).select("namespace", "pod", "last_us")
    seen = (
        process.withColumn("next_us", F.lead("observed_at_us").over(order))
        .where(F.col("change") == Change.PROCESS_STARTED.value)
        .join(heard, ["namespace", "pod"], "inner")
        .select(
            *app_pod,
            F.col("observed_at_us").alias("from_us"),
            F.coalesce("next_us", "last_us").alias("to_us"),
        )
    )
    cleaned = marks(events).where(F.col("shape") == "cleaner-walk")
    signs = held.select(*app_pod, "from_us", "to_us").unionByName(
        cleaned.select(*app_pod, F.col("at_us").alias("from_us"), F.col("at_us").alias("to_us"))
    )
    inferred = signs.groupBy(*app_pod).agg(F.min("from_us").alias("from_us"), F.max("to_us").alias("to_us"))
    return seen.unionByName(inferred.join(process.select(*app_pod).distinct(), list(app_pod), "left_anti"))


def members(events: DataFrame) -> DataFrame:
    """List which pods belong to which application; a pod that never named any could belong to each.

    Output columns: namespace, application_id (null = the pod named none), pod.
    Grain: one row per application and pod.
    """
    named = events.select("namespace", "application_id", "pod").unionByName(
        events.where(F.col("kind") == Kind.HEARTBEAT.value).select(
            "namespace", F.explode("applications").alias("application_id"), "pod"
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
    place = ("namespace", "application_id", "pod", "pod_uid", "boot_id", "observed_at_us")
    nothing = F.lit(None).cast("string")
    process = events.where(F.col("process_id").isNotNull()).select(
        *place, F.lit("process").alias("what"), F.col("process_id").alias("key"),
        nothing.alias("task_id"), nothing.alias("store"),
    )  # fmt: skip
    store = F.lit("store").alias("what")
    told = events.where(
        (F.col("kind") == Kind.TRANSITION.value)
        & F.col("identity").isNotNull()
        & F.col("task_id").isNotNull()
    ).select(*place, store, F.col("identity").alias("key"), "task_id", "store")
    looked = (
        events.where(F.col("kind") == Kind.SUMMARY.value)
        .select(*place, "task_id", F.explode("stores").alias("part"))
        .where(F.col("part.identity").isNotNull())
        .select(
            *place, store, F.col("part.identity").alias("key"), "task_id", F.col("part.store").alias("store")
        )
    )
    boot = [name for name in place if name != "observed_at_us"]
    return (
        process.unionByName(told)
        .unionByName(looked)
        .groupBy(*boot, "what", "key", "task_id", "store")
        .agg(F.min("observed_at_us").alias("from_us"), F.max("observed_at_us").alias("to_us"))
    )


_MARK_LANES = {
    Change.CHECKPOINT_WRITTEN: "checkpoint",
    Change.TASK_CREATED: "created",
    Change.STORE_CREATED: "created",
    Change.TASK_DELETED: "deleted",
    Change.STORE_DELETED: "deleted",
    Change.CHECKPOINT_DELETED: "checkpoint-deleted",
}


def timelines(
    events: DataFrame, held: DataFrame, life: DataFrame, gaps: DataFrame, measured: DataFrame
) -> DataFrame:
    """Put everything on one table: lanes of intervals and marks.

    Lanes: holder, cleaner, process, incarnation, unknown (intervals); checkpoint, created, deleted,
    checkpoint-deleted, size (marks).

    Output columns: `TIMELINE`.
    """
    lane = F.create_map(*(F.lit(text) for pair in _MARK_LANES.items() for text in pair))
    marked = (
        marks(events)
        .withColumn("lane", F.try_element_at(lane, F.col("change")))
        .where(F.col("lane").isNotNull())
        .withColumn("offset", F.coalesce("offset_after", "offset_before"))
        .withColumn("note", F.coalesce("detail", F.concat_ws(" ", "change", "shape")))
    )
    parts = (
        _lane(
            held.withColumn("detail", F.when(F.col("lasting"), F.lit("lasting"))),
            F.when(F.col("cleaner"), F.lit("cleaner")).otherwise(F.lit("holder")),
        ),
        _lane(life, F.lit("process")),
        _lane(gaps.withColumn("detail", F.col("cause")), F.lit("unknown")),
        _lane(
            marked.withColumn("from_us", F.col("at_us")).withColumn("detail", F.col("note")), F.col("lane")
        ),
        _lane(_incarnations(events), F.lit("incarnation")),
        _lane(
            measured.withColumn("from_us", F.col("at_us")).withColumn(
                "detail", numbered("%d puts at offset %d", "puts", "offset")
            ),
            F.lit("size"),
        ),
    )
    return reduce(DataFrame.unionByName, parts).distinct()


def _incarnations(events: DataFrame) -> DataFrame:
    """Find the life of each store identity on a pod: from its creation or first sight to the next one or its end."""
    made = marks(events).where(
        F.col("change").isin(
            Change.STORE_CREATED.value, Change.STORE_DELETED.value, Change.STORE_OPENED.value
        )
    )
    order = W.partitionBy(*TASK, "pod", "store", "segment").orderBy("at_us", "sequence")
    steps = (
        made.withColumn("key", F.when(F.col("change") != Change.STORE_DELETED.value, F.col("identity")))
        .withColumn("before", F.lag("key").over(order))
        .where(~F.col("key").eqNullSafe(F.col("before")))
    )
    return (
        steps.withColumn("to_us", F.lead("at_us").over(order))
        .where(F.col("key").isNotNull())
        .withColumn("from_us", F.col("at_us"))
        .withColumn("detail", F.concat(F.lit("identity "), F.col("key")))
    )


def _lane(rows: DataFrame, lane: Column) -> DataFrame:
    named = rows.withColumn("lane", lane)
    present = set(named.columns)
    return named.select(
        *(
            F.col(field.name) if field.name in present else F.lit(None).cast(field.dataType).alias(field.name)
            for field in TIMELINE.fields
        )
    )
