"""The table `timelines`: what happened to every task on every pod, as lanes of intervals and marks."""

from __future__ import annotations

from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import Window as W
from pyspark.sql import functions as F

from agent.contract.events import Change
from spark_rollup.columns import TASK, numbered
from spark_rollup.judging.base import Facts
from spark_rollup.schemas import TIMELINE

_MARK_LANES = {
    Change.CHECKPOINT_WRITTEN: "checkpoint",
    Change.TASK_CREATED: "created",
    Change.STORE_CREATED: "created",
    Change.TASK_DELETED: "deleted",
    Change.STORE_DELETED: "deleted",
    Change.CHECKPOINT_DELETED: "checkpoint-deleted",
}


def timelines(facts: Facts) -> DataFrame:
    """Put everything on one table: lanes of intervals and marks.

    Lanes: holder, cleaner, process, incarnation, unknown (intervals); checkpoint, created, deleted,
    checkpoint-deleted, size (marks). Checkpoints and sizes of tasks that are not in question are thinned out: one per
    slot of `sizes.SLOT_US`.

    Output columns: `TIMELINE`.
    """
    lane = F.create_map(*(F.lit(text) for pair in _MARK_LANES.items() for text in pair))
    thinned = facts.saved.join(facts.questioned, list(TASK), "left_anti")
    marked = (
        facts.marks.unionByName(thinned, allowMissingColumns=True)
        .withColumn("lane", F.try_element_at(lane, F.col("change")))
        .where(F.col("lane").isNotNull())
        .withColumn("offset", F.coalesce("offset_after", "offset_before"))
        .withColumn("note", F.coalesce("detail", F.concat_ws(" ", "change", "shape")))
    )
    numbers = numbered("%d puts at offset %d", "puts", "offset")
    points = facts.curve.join(facts.questioned, list(TASK), "left_anti")
    measured = facts.sizes.unionByName(points, allowMissingColumns=True)
    parts = (
        _lane(
            facts.held.withColumn("detail", F.when(F.col("lasting"), F.lit("lasting"))),
            F.when(F.col("cleaner"), F.lit("cleaner")).otherwise(F.lit("holder")),
        ),
        _lane(facts.lives, F.lit("process")),
        _lane(facts.gaps.withColumn("detail", F.col("cause")), F.lit("unknown")),
        _lane(
            marked.withColumn("from_us", F.col("at_us")).withColumn("detail", F.col("note")), F.col("lane")
        ),
        _lane(_incarnations(facts.marks), F.lit("incarnation")),
        _lane(measured.withColumn("from_us", F.col("at_us")).withColumn("detail", numbers), F.lit("size")),
    )
    return reduce(DataFrame.unionByName, parts).distinct()


def _incarnations(marked: DataFrame) -> DataFrame:
    """Find the life of each store identity on a pod: from its creation or first sight to the next one or its end."""
    made = marked.where(
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
