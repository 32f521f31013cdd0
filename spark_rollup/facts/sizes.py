"""How far each copy of a store had come: every reading, and what the readings of all copies come down to.

A reading is a summary's row about one store, or a checkpoint's writing. Fleets send one reading per store and minute,
so only tasks in question are read one by one; for all others the last reading per `SLOT_US`, the last of all, and the
readings that can be compared between pods.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from agent.contract.events import Change
from spark_rollup.columns import MICROS, TASK, summary
from spark_rollup.facts.timeline import marks

SLOT_US = 600 * MICROS
"""The curve of a copy has one point per slot (microseconds)."""

COPY = (*TASK, "store", "offset", "pod", "identity", "entries_low", "entries_high")
"""What is compared between pods."""


def sizes(events: DataFrame, single: DataFrame) -> DataFrame:
    """Measure how far each copy of a store had come: puts and bytes at a changelog offset.

    Segments of a windowed store are added up. A checkpoint transition covers all stores of its task together, so
    it counts only where the task has a single one.

    Input columns: `EVENT_ROW`, one row per id; those of `single_stores`.
    Output columns: `TASK`, store, pod, at_us, identity, offset, puts, bytes, entries_low, entries_high (null =
        unknown), segmented, sealed (offset and files are known to be of the same moment: a closed store of
        4.3 or later), checkpoint (the row comes from a checkpoint's writing).
    Grain: one row per reading of a store.
    """
    readings = whole_stores(events).unionByName(_segmented_stores(events))
    written = (
        marks(events)
        .where((F.col("change") == Change.CHECKPOINT_WRITTEN.value) & F.col("puts").isNotNull())
        .drop("store")
        .join(single, list(TASK), "inner")
    )
    return readings.unionByName(
        written.select(
            *TASK, "store", "pod", "at_us", "identity", F.col("offset_after").alias("offset"), "puts", "bytes",
            F.lit(None).cast("bigint").alias("entries_low"), F.lit(None).cast("bigint").alias("entries_high"),
            F.lit(False).alias("segmented"), F.lit(False).alias("sealed"), F.lit(True).alias("checkpoint"),
        )
    )  # fmt: skip


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
        *(F.col(f"part.{name}").alias(name) for name in ("puts", "bytes", "entries_low", "entries_high")),
        F.lit(False).alias("segmented"),
        _is_closed(F.col("part.status")).alias("sealed"),
        F.lit(False).alias("checkpoint"),
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
            F.lit(True).alias("segmented"),
            _is_closed(F.max("part.status")).alias("sealed"),
            F.lit(False).alias("checkpoint"),
        )
        .drop("id")
    )


def _is_closed(status: Column) -> Column:
    return F.coalesce(status == "closed", F.lit(False))


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
    """Keep readings whose offset and files are of the same moment.

    Up to 4.2 that is a reading with exactly the puts that the checkpoint's writing reported; later, a store marked
    closed.

    Input columns: those of `sizes`.
    Output columns: `COPY`, first_us, last_us.
    Grain: one row per copy, offset and bounds.
    """
    counted = readings.where(
        (F.col("offset") > 0)
        & F.col("entries_low").isNotNull()
        & F.col("entries_high").isNotNull()
        & ~F.col("segmented")
    )
    grouped = (
        counted.withColumn("puts", F.when(~F.col("sealed"), F.col("puts")))
        .groupBy(*COPY, "sealed", "puts")
        .agg(F.min("at_us").alias("first_us"), F.max("at_us").alias("last_us"))
    )
    written = (
        readings.where(F.col("checkpoint"))
        .select(*TASK, "store", "pod", "offset", "puts")
        .distinct()
        .withColumn("known", F.lit(True))
    )
    checked = grouped.join(written, [*TASK, "store", "pod", "offset", "puts"], "left")
    return (
        checked.where(F.col("sealed") | F.col("known"))
        .groupBy(*COPY)
        .agg(F.min("first_us").alias("first_us"), F.max("last_us").alias("last_us"))
    )
