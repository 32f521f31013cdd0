"""Looks and commits that later audits may ask for: each copy's extremes, and what was around remembered moments.

A look is a summary, a commit the writing of a checkpoint or a flush; they are nearly all of the events. What is kept
of them is chosen by time, and with every look kept the checkpoint written before it and the one after it: a rule that
asks whether anything was written between two looks is never told "nothing" because it was left out.
"""

from __future__ import annotations

from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import Window as W
from pyspark.sql import functions as F

from agent.contract.events import Change, Kind, Status
from spark_rollup import sizes
from spark_rollup.columns import MICROS, TASK, summary, told
from spark_rollup.correlate import diverged_replica, resurrected_checkpoint, split_owner
from spark_rollup.correlate.questioned import FREQUENT
from spark_rollup.timeline import marks

IDENTITIES = 4
"""Incarnations of a store kept per pod: the newest."""

BROADCAST_ROWS = 500_000
"""Up to this many chosen times are sent to where the events lie; more, and the events are moved instead."""

SLACK_US = 3600 * MICROS
"""Moments that are this old when the days begin have been seen to their ends by an earlier snapshot."""

_TURNS = (Change.TASK_DELETED.value, Change.STORE_DELETED.value, Change.STORE_CREATED.value)

_COPY = (*TASK, "store", "pod", "identity")
_PLACE = (*TASK, "pod", "at_us")
_STEP = (*TASK, "pod", "what")


def extremes() -> dict[str, Column]:
    """List the looks of each copy that are kept, as the time of each."""
    at = F.col("at_us")

    def last_with(name: str) -> Column:
        return F.max(F.when(F.col(name).isNotNull(), at))

    def most(name: str) -> Column:  # the last of them: what is kept must not depend on the order of files
        return F.max(F.when(F.col(name).isNotNull(), F.struct(name, at))).getField("at_us")

    return {
        "last": F.max(at),  # where the copy stands; where it stood when it was last heard
        "offset_known": last_with("offset"),  # unprotected-task, safe-to-restart: how far behind
        "bytes_known": last_with("bytes"),  # safe-to-restart: what a restoration costs
        "largest": most("bytes"),  # task-churn: what restorations cost
        "furthest": most("offset"),  # resurrected-checkpoint, split-owner: how far it came
        "fullest": most("puts"),  # the same, where offsets are not known
        "richest": most("entries_low"),  # unrestored-task: what it surely held
    }


def moments(flips: DataFrame, kept: DataFrame) -> DataFrame:
    """List the times around which looks and commits are kept: of all copies of the task, whatever pod it is about.

    Changes of holder (and when what they stir up has settled), deletions and creations, and when findings that are
    open opened.

    Input columns: those of `timeline.flips`; events that are kept.
    Output columns: `TASK`, at_us.
    """
    at = F.col("observed_at_us")
    turned = flips.select(*TASK, F.explode(F.array(at, at + split_owner.SETTLE_US)).alias("at_us"))
    changed = marks(kept).where(F.col("change").isin(*_TURNS)).select(*TASK, "at_us")
    opened = kept.where(
        (F.col("kind") == Kind.FINDING.value)
        & (F.col("status") == Status.OPEN.value)
        & F.col("task_id").isNotNull()
    ).select(*TASK, F.col("opened_at_us").alias("at_us"))
    return turned.unionByName(changed).unionByName(opened).distinct()


def nearby(read: DataFrame, earlier: DataFrame | None, around: DataFrame, from_us: int) -> DataFrame:
    """Choose and take looks and commits.

    Args:
        read: All events of some days.
        earlier: Events carried from before those days.
        around: Those of `moments`.
        from_us: When the days begin.

    Returns:
        Events.
    """
    events = read.unionByName(earlier) if earlier else read
    looks = sizes.sizes(events, sizes.single_stores(events).localCheckpoint())
    around = around.localCheckpoint()
    fresh = around.where(F.col("at_us") >= from_us - SLACK_US)
    parts = [_extremes(looks), _settled(looks), _first_writes(events), _beside(_steps(events), fresh)]
    if earlier:
        parts.append(_beside(_steps(earlier), around))
    chosen = reduce(DataFrame.unionByName, parts).distinct().localCheckpoint()
    newer = chosen.where(F.col("at_us") >= from_us - SLACK_US)
    written = [_written_beside(events, newer)]
    if earlier:
        written.append(_written_beside(earlier, chosen))
    times = reduce(DataFrame.unionByName, (chosen, *written)).distinct().localCheckpoint()
    return _at(events, times)


def _extremes(looks: DataFrame) -> DataFrame:
    kept = extremes()
    copies = looks.groupBy(*_COPY).agg(*(time.alias(name) for name, time in kept.items())).localCheckpoint()
    newest = W.partitionBy(*TASK, "store", "pod").orderBy(F.desc("last"), "identity")
    return (
        copies.withColumn("rank", F.row_number().over(newest))
        .where(F.col("rank") <= IDENTITIES)
        .select(*TASK, "pod", F.explode(F.array(*kept)).alias("at_us"))
        .where(F.col("at_us").isNotNull())
        .distinct()
    )


def _settled(looks: DataFrame) -> DataFrame:
    """Choose what `diverged-replica` compares: each copy's furthest settled look, and those that differ already."""
    copies = looks.select(*TASK, "store", "pod").distinct()
    several = copies.groupBy(*TASK, "store").agg(F.count("*").alias("pods")).where(F.col("pods") > 1)
    settled = sizes.settled_copies(looks.join(several, [*TASK, "store"], "left_semi")).localCheckpoint()
    furthest = W.partitionBy(*_COPY).orderBy(F.desc("offset"), F.desc("last_us"))
    last = (
        settled.withColumn("rank", F.row_number().over(furthest))
        .where(F.col("rank") == 1)
        .select(*TASK, "pod", F.explode(F.array("first_us", "last_us")).alias("at_us"))
    )
    pairs = diverged_replica.pairs(settled)
    sides = [
        pairs.select(*TASK, F.col(f"{side}_pod").alias("pod"), F.col(f"{side}_first_us").alias("at_us"))
        for side in ("less", "more")
    ]
    return reduce(DataFrame.unionByName, (last, *sides)).distinct()


def _first_writes(events: DataFrame) -> DataFrame:
    """Choose the checkpoints by which `resurrected-checkpoint` tells an old offset on a fresh store."""
    deleted = events.where(F.col("change") == Change.TASK_DELETED.value).select(*TASK).distinct()
    mine = marks(events).join(deleted, list(TASK), "left_semi").localCheckpoint()
    first = resurrected_checkpoint.carried_over(mine).select(
        *TASK, "pod", F.col("opened_at_us").alias("observed_at_us")
    )
    return mine.join(first, [*TASK, "pod", "observed_at_us"], "left_semi").select(*TASK, "pod", "at_us")


def _at_us() -> Column:
    """Tell when something happened, as `timeline.marks` does; a summary happens when it is told."""
    return F.least("observed_at_us", F.coalesce("occurred_at_us", "observed_at_us"))


def _steps(events: DataFrame) -> DataFrame:
    """List looks and commits.

    Output columns: `TASK`, pod, at_us, what.
    """
    commit = told() & F.col("change").isin(*FREQUENT)
    rows = events.where((summary() | commit) & F.col("task_id").isNotNull())
    return rows.select(*TASK, "pod", _at_us().alias("at_us"), F.coalesce("change", "kind").alias("what"))


def _beside(steps: DataFrame, around: DataFrame) -> DataFrame:
    """Choose of every copy and kind the last one up to each moment, and the first one after it."""
    tasks = around.select(*TASK).distinct()
    own = steps.join(F.broadcast(tasks), list(TASK), "left_semi")
    copies = own.select(*_STEP).distinct()
    return _neighbours(own, copies.join(around, list(TASK), "inner"), _STEP)


def _written_beside(events: DataFrame, chosen: DataFrame) -> DataFrame:
    """Choose the checkpoints written last before, and first after, what is kept of the same copy."""
    writes = events.where(told() & (F.col("change") == Change.CHECKPOINT_WRITTEN.value)).select(
        *TASK, "pod", _at_us().alias("at_us")
    )
    return _neighbours(writes, chosen, (*TASK, "pod"))


def _neighbours(steps: DataFrame, around: DataFrame, key: tuple[str, ...]) -> DataFrame:
    """Keep steps that come last up to one of their key's moments, or first after one: by one sort, however many."""
    both = steps.select(*key, "at_us", F.lit(0).alias("moment")).unionByName(
        around.select(*key, "at_us", F.lit(1).alias("moment"))
    )
    order = W.partitionBy(*key).orderBy("at_us", "moment")
    beside = F.greatest(F.lead("moment").over(order), F.lag("moment").over(order))
    return (
        both.withColumn("beside", beside)
        .where((F.col("moment") == 0) & (F.col("beside") == 1))
        .select(*_PLACE)
        .distinct()
    )


def _at(events: DataFrame, times: DataFrame) -> DataFrame:
    """Take the looks and commits of some times."""
    commit = told() & F.col("change").isin(*FREQUENT)
    rows = events.where((summary() | commit) & F.col("task_id").isNotNull()).withColumn("at_us", _at_us())
    wanted = F.broadcast(times) if times.count() <= BROADCAST_ROWS else times
    return rows.join(wanted, list(_PLACE), "left_semi").drop("at_us")
