"""How far each copy of a store had come: every reading, and what the readings of all copies come down to.

A reading is a summary's row about one store, its orderly close, or a checkpoint's writing. Fleets send one reading per
store and minute, so only tasks in question are read one by one; for all others the last reading per `SLOT_US`, the last
of all, and the readings that can be compared between pods.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from agent.contract.events import Change
from spark_rollup.columns import TASK, summary
from spark_rollup.facts.timeline import marks
from spark_rollup.fleet.sizes import GLOBAL, SLOT_US
from spark_rollup.spark.single_partition import single_partition

COPY = (*TASK, "store", "offset", "pod", "identity", "entries_low", "entries_high")
"""What is compared between pods."""


def sizes(events: DataFrame, single: DataFrame) -> DataFrame:
    """Measure how far each copy of a store had come: puts and bytes at a changelog offset.

    Segments of a windowed store are added up. A checkpoint transition covers all stores of its task together, so
    it counts only where the task has a single one.

    Input columns: `EVENT_ROW`, one row per id; those of `single_stores`.
    Output columns: `TASK`, store, pod, at_us, identity, offset, puts, bytes, entries_low, entries_high (null =
        unknown), unsaved_puts (puts that 10,000 records make at most; null = no limit is known), segmented, anchor
        (offset and puts are known to be of the same moment: a close, or a checkpoint's writing), comparable (of an
        anchor: nothing of an earlier life that ended otherwise can be in the store), checkpoint (the row comes from a
        checkpoint's writing).
    Grain: one row per reading of a store.
    """
    readings = whole_stores(events).unionByName(_segmented_stores(events))
    changes = marks(events).withColumns(
        {
            "offset": F.col("offset_after"),
            "unsaved_puts": F.lit(None).cast("bigint"),
            "segmented": F.lit(False),
            "anchor": F.lit(True),
            "comparable": F.coalesce("comparable", F.lit(False)),
            "checkpoint": F.col("change") == Change.CHECKPOINT_WRITTEN.value,
        }
    )
    closed = changes.where((F.col("change") == Change.STORE_CLOSED.value) & F.col("store").isNotNull())
    written = (
        changes.where(F.col("checkpoint") & F.col("puts").isNotNull())
        .drop("store")
        .join(single, list(TASK), "inner")
        .withColumns({name: F.lit(None).cast("bigint") for name in ("entries_low", "entries_high")})
    )
    for rows in (closed, single_partition(written)):
        readings = readings.unionByName(rows.select(*readings.columns))
    return readings


def single_stores(events: DataFrame) -> DataFrame:
    """List the tasks that were never seen to have more than one store.

    Output columns: `TASK`, store.
    Grain: one row per task with a single store.
    """
    marked_stores = marks(events).where(F.col("store").isNotNull()).select(*TASK, "store")
    named = (
        _parts(events).select(*TASK, F.col("part.store").alias("store")).distinct().unionByName(marked_stores)
    )
    ends = named.groupBy(*TASK).agg(F.min("store").alias("store"), F.max("store").alias("other"))
    return ends.where(F.col("store") == F.col("other")).drop("other")


def _parts(events: DataFrame) -> DataFrame:
    return events.where(summary()).select(
        "id", *TASK, "pod", "observed_at_us", "offsets", F.explode("stores").alias("part")
    )


def whole_stores(events: DataFrame) -> DataFrame:
    """Take readings of stores without segments as they are: nothing is moved or sorted for them."""
    rows = _parts(events).where(F.col("part.segment").isNull())
    return rows.select(
        *TASK, F.col("part.store").alias("store"), "pod", F.col("observed_at_us").alias("at_us"),
        F.col("part.identity").alias("identity"),
        F.coalesce(F.col("part.offset"), _only_offset()).alias("offset"),
        *(
            F.col(f"part.{name}").alias(name)
            for name in ("puts", "bytes", "entries_low", "entries_high", "unsaved_puts")
        ),
        F.lit(False).alias("segmented"),
        *(F.lit(False).alias(name) for name in ("anchor", "comparable", "checkpoint")),
    )  # fmt: skip


def _segmented_stores(events: DataFrame) -> DataFrame:
    """Add segments up."""
    rows = _parts(events).where(F.col("part.segment").isNotNull())
    return (
        rows.groupBy(
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
            F.when(F.count("part.unsaved_puts") == F.count("*"), F.max("part.unsaved_puts")).alias(
                "unsaved_puts"
            ),
            F.lit(True).alias("segmented"),
            *(F.lit(False).alias(name) for name in ("anchor", "comparable", "checkpoint")),
        )
        .drop("id")
    )


def _only_offset() -> Column:
    return F.when(F.size("offsets") == 1, F.try_element_at("offsets", F.lit(1)).getField("offset"))


def curve(readings: DataFrame) -> DataFrame:
    """Thin the readings out: the last known numbers of each copy per slot.

    Input columns: those of `sizes`.
    Output columns: `TASK`, store, pod, at_us (the last reading), offset, offset_us (when it was known), puts, bytes,
        bytes_us, most_bytes.
    Grain: one row per copy and `SLOT_US`.
    """
    # at one time a checkpoint's word goes before a reading's
    order = F.col("at_us") * 2 + F.col("checkpoint").cast("bigint")
    known = {name: F.when(F.col(name).isNotNull(), order) for name in ("offset", "puts", "bytes")}
    return readings.groupBy(*TASK, "store", "pod", F.floor(F.col("at_us") / F.lit(SLOT_US)).alias("slot")).agg(
        F.max("at_us").alias("at_us"),
        *(F.max_by(name, when).alias(name) for name, when in known.items()),
        F.max(known["offset"]).alias("offset_us"),
        F.max(known["bytes"]).alias("bytes_us"),
        F.max("bytes").alias("most_bytes"),
    ).drop("slot")  # fmt: skip


def saved(changes: DataFrame) -> DataFrame:
    """Thin the checkpoints out: the last one of each copy of a task per slot.

    Input columns: those of `timeline.marks`.
    Output columns: `TASK`, pod, at_us, change, offset_after.
    Grain: one row per task, pod and `SLOT_US` in which one was written.
    """
    slot = F.floor(F.col("at_us") / F.lit(SLOT_US)).alias("slot")
    written = changes.where(F.col("change") == Change.CHECKPOINT_WRITTEN.value)
    return (
        written.groupBy(*TASK, "pod", "change", slot)
        .agg(F.max("at_us").alias("at_us"), F.max_by("offset_after", "at_us").alias("offset_after"))
        .drop("slot")
    )


def latest(points: DataFrame) -> DataFrame:
    """Say what is known last of each copy.

    Input columns: those of `curve`.
    Output columns: `TASK`, store, pod, offset, bytes, most_bytes.
    Grain: one row per copy.
    """
    return points.groupBy(*TASK, "store", "pod").agg(
        F.max_by("offset", "offset_us").alias("offset"),
        F.max_by("bytes", "bytes_us").alias("bytes"),
        F.max("most_bytes").alias("most_bytes"),
    )


def settled_copies(readings: DataFrame) -> DataFrame:
    """Keep readings whose offset and files are of the same moment, of stores that follow their own changelog.

    That is a reading with exactly the offset and puts of an anchor: the store's close, or a checkpoint's writing.

    Input columns: those of `sizes`.
    Output columns: `COPY`, comparable (of an anchor of it), first_us, last_us, anchor_us (the last anchor),
        seen_from_us and seen_to_us (when this incarnation was there, at any offset; null = identity not known).
    Grain: one row per copy, offset and bounds.
    """
    own = readings.where(F.col("task_id") != GLOBAL)
    counted = own.where(
        (F.col("offset") > 0)
        & F.col("entries_low").isNotNull()
        & F.col("entries_high").isNotNull()
        & ~F.col("segmented")
    )
    grouped = counted.groupBy(*COPY, "puts").agg(
        F.min("at_us").alias("first_us"), F.max("at_us").alias("last_us")
    )
    place = (*TASK, "store", "pod", "offset", "puts")
    anchors = (
        own.where(F.col("anchor"))
        .groupBy(*place, F.col("identity").alias("anchored"))
        .agg(F.max("comparable").alias("comparable"), F.max("at_us").alias("anchor_us"))
    )
    incarnation = (*TASK, "store", "pod", "identity")
    seen = (
        own.where(F.col("identity").isNotNull())
        .groupBy(*incarnation)
        .agg(F.min("at_us").alias("seen_from_us"), F.max("at_us").alias("seen_to_us"))
    )
    same = F.coalesce(F.col("anchored") == F.col("identity"), F.lit(True))
    return (
        grouped.join(anchors, list(place), "inner")
        .where(same)
        .groupBy(*COPY)
        .agg(
            F.max("comparable").alias("comparable"),
            F.min("first_us").alias("first_us"),
            F.max("last_us").alias("last_us"),
            F.max("anchor_us").alias("anchor_us"),
        )
        .join(seen, list(incarnation), "left")
    )
