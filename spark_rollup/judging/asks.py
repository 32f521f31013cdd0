"""What rules ask of the readings of a task, and of days that are over: chosen in Spark, as only some are kept.

Of all other tasks a summary is enough; what a snapshot keeps is the sum of what the rules ask for.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import Window as W
from pyspark.sql import functions as F

from agent.contract.events import Change, Severity
from spark_rollup.columns import MICROS, TASK
from spark_rollup.facts import timeline
from spark_rollup.facts.sizes import settled_copies
from spark_rollup.fleet.application import MOVES, SETTLE_US, SKEW_US
from spark_rollup.judging.past import PLACE, Past, Seen, Window, last, most, neighbours
from spark_rollup.spark.materialize import materialize

ROLE_US = 24 * 3600 * MICROS
"""So long before a crash whose owner's role the agent does not know all readings and steps are remembered: what each
copy put in, and who wrote checkpoints meanwhile, shows it."""

_ANCHORS = (Change.CHECKPOINT_WRITTEN.value, Change.STORE_CLOSED.value)
"""What fixes a copy's offset and content."""

_COPY = (
    "pod", "identity", "entries_low", "entries_high", "first_us", "last_us", "anchor_us", "comparable",
    "seen_from_us", "seen_to_us",
)  # fmt: skip
"""What is known of each copy of a pair."""


def carried_over(marks: DataFrame) -> DataFrame:
    """Find first checkpoints at or beyond the offset at which the same pod's copy had been deleted.

    Tasks whose damage the agent itself reports are left to its finding.

    Input columns: those of `timeline.marks`.
    Output columns: `TASK`, pod, store, identity, opened_at_us, old_offset, row_key.
    Grain: one row per deletion.
    """
    order = W.partitionBy(*TASK, "pod").orderBy("observed_at_us", "sequence")
    so_far = order.rowsBetween(W.unboundedPreceding, W.currentRow)
    is_deleted = F.col("change") == Change.TASK_DELETED.value
    is_created = F.col("change") == Change.STORE_CREATED.value
    deletion = F.when(is_deleted, F.struct(F.col("at_us"), F.col("offset_before").alias("offset")))
    creation = F.when(is_created, F.struct("at_us", "identity", "store"))
    written = (
        marks.withColumn("deletion", F.last(deletion, ignorenulls=True).over(so_far))
        .withColumn("creation", F.last(creation, ignorenulls=True).over(so_far))
        .where(
            (F.col("change") == Change.CHECKPOINT_WRITTEN.value)
            & (F.col("deletion.offset") > 0)
            & (F.col("creation.at_us") >= F.col("deletion.at_us"))
            & (F.col("offset_after") >= F.col("deletion.offset"))
        )
    )
    first = W.partitionBy(*TASK, "pod", "deletion.at_us").orderBy("observed_at_us", "sequence")
    return (
        written.withColumn("rank", F.row_number().over(first))
        .where(F.col("rank") == 1)
        .select(
            *TASK, "pod",
            F.coalesce("store", "creation.store").alias("store"),
            F.coalesce("identity", "creation.identity").alias("identity"),
            F.col("observed_at_us").alias("opened_at_us"),
            F.col("deletion.offset").alias("old_offset"),
            F.concat_ws("/", *TASK, "pod", F.col("deletion.at_us").cast("string")).alias("row_key"),
        )
    )  # fmt: skip


def _first_writes(seen: Seen) -> DataFrame:
    """Choose the checkpoints by which an old offset on a fresh store is found.

    Output columns: `PLACE`.
    """
    deleted = seen.events.where(F.col("change") == Change.TASK_DELETED.value).select(*TASK).distinct()
    mine = materialize(timeline.marks(seen.events).join(deleted, list(TASK), "left_semi"))
    first = carried_over(mine).select(*TASK, "pod", F.col("opened_at_us").alias("observed_at_us"))
    return mine.join(first, [*TASK, "pod", "observed_at_us"], "left_semi").select(*PLACE)


def pairs(copies: DataFrame) -> DataFrame:
    """Find copies whose bounds exclude each other; the furthest offset of each pair of pods counts.

    Where both copies of a pair are comparable at some offset, the furthest of these counts.

    Output columns: `TASK`, store, offset, comparable, less_* and more_* (`_COPY`), from_us, to_us, row_key.
    Grain: one row per task, store, poorer and richer pod.
    """
    place = (*TASK, "store", "offset")
    copy = F.struct(*_COPY)
    together = copies.groupBy(*place).agg(
        F.array_sort(F.collect_list(copy)).alias("copies"), F.count_distinct("pod").alias("pods")
    )

    def poorer_than(more: Column) -> Callable[[Column], Column]:
        return lambda less: (less["entries_high"] < more["entries_low"]) & (less["pod"] != more["pod"])

    both = F.flatten(
        F.transform(
            "copies",
            lambda more: F.transform(
                F.filter("copies", poorer_than(more)),
                lambda less: F.struct(less.alias("less"), more.alias("more")),
            ),
        )
    )
    rows = together.where(F.col("pods") > 1).select(*place, F.explode(both).alias("both"))
    flat = rows.select(
        *place,
        *(
            F.col(f"both.{side}.{name}").alias(f"{side}_{name}")
            for side in ("less", "more")
            for name in _COPY
        ),
    ).withColumn("comparable", F.col("less_comparable") & F.col("more_comparable"))
    rest = [name for name in flat.columns if name not in (*TASK, "store", "less_pod", "more_pod")]
    first = ("comparable", "offset")
    furthest = F.max(F.struct(*first, *(name for name in rest if name not in first)))
    return (
        flat.groupBy(*TASK, "store", "less_pod", "more_pod")
        .agg(furthest.alias("last"))
        .select(*TASK, "store", "less_pod", "more_pod", "last.*")
        .withColumn("from_us", F.least("less_first_us", "more_first_us"))
        .withColumn("to_us", F.greatest("less_first_us", "more_first_us"))
        .withColumn("row_key", F.concat_ws("/", *TASK, "store", "less_pod", "more_pod"))
    )


def _compared(seen: Seen) -> DataFrame:
    """Choose the readings that may be compared: each copy's furthest settled one, and those that differ already.

    Output columns: `PLACE`.
    """
    copies = seen.readings.select(*TASK, "store", "pod").distinct()
    several = copies.groupBy(*TASK, "store").agg(F.count("*").alias("pods")).where(F.col("pods") > 1)
    readings = seen.readings.join(several, [*TASK, "store"], "left_semi")
    settled = materialize(settled_copies(readings))
    furthest = W.partitionBy(*TASK, "store", "pod", "identity", "comparable").orderBy(
        F.desc("offset"), F.desc("last_us")
    )
    last = _times(settled.withColumn("rank", F.row_number().over(furthest)).where(F.col("rank") == 1), "")
    of_pairs = (pairs(settled), pairs(settled.where("comparable")))
    sides = [
        _times(differing.withColumn("pod", F.col(f"{side}_pod")), f"{side}_")
        for differing in of_pairs
        for side in ("less", "more")
    ]
    return reduce(DataFrame.unionByName, (last, *sides)).distinct()


def _times(copies: DataFrame, prefix: str) -> DataFrame:
    """List the readings that show a copy: when it was at the offset, what fixes that, and how long it was there.

    Output columns: `PLACE`.
    """
    names = ("first_us", "last_us", "anchor_us", "seen_from_us", "seen_to_us")
    times = F.array(*(F.col(prefix + name) for name in names))
    return copies.select(*TASK, "pod", F.explode(times).alias("at_us")).where(F.col("at_us").isNotNull())


def _ends_and_thaws(seen: Seen) -> DataFrame:
    """List when each pod that has a copy was last heard: a pair of holders ends there; and when a frozen one thaws.

    Output columns: `TASK`, at_us.
    """
    heard = seen.counted.groupBy("namespace", "pod").agg(F.max("last_us").alias("at_us"))
    pods = seen.copies.select(*TASK, "pod").distinct()
    ends = pods.join(heard, ["namespace", "pod"], "inner").select(*TASK, "at_us")
    return ends.unionByName(_thaws(seen))


def _thaws(seen: Seen) -> DataFrame:
    """List when two that hold a task to the end moved first, each: the frozen one thaws there."""
    newest = F.max_by(
        F.struct("now_held", "observed_at_us"), F.struct("observed_at_us", "boot_id", "sequence")
    )
    ends = seen.flips.groupBy(*TASK, "pod").agg(newest.alias("end"))
    holders = ends.where(F.col("end.now_held")).select(
        *TASK, "pod", F.col("end.observed_at_us").alias("from_us")
    )
    others = holders.select(*TASK, F.col("pod").alias("other_pod"), F.col("from_us").alias("other_from_us"))
    both_us = F.greatest("from_us", "other_from_us") + SETTLE_US
    pairs = holders.join(others, list(TASK), "inner").where(F.col("pod") != F.col("other_pod"))
    starts = pairs.select(*TASK, "pod", both_us.alias("at_us")).distinct()
    moves = seen.steps.where(F.col("what").isin(*MOVES)).select(*PLACE)
    return neighbours(moves, starts, (*TASK, "pod")).select(*TASK, "at_us")


def shared(sightings: DataFrame) -> DataFrame:
    """List what two pods showed at the same time, for longer than clocks can differ.

    Output columns: namespace, application_id, what, key, task_id, store, pod, other_pod, from_us, to_us (overlap).
    Grain: one row per thing and pair of sightings, the smaller name of a pod first.
    """
    seen = F.array_sort(F.collect_list(F.struct("pod", "from_us", "to_us")))
    thing = ("namespace", "application_id", "what", "key", "task_id", "store")
    things = sightings.groupBy(*thing).agg(seen.alias("seen"), F.count_distinct("pod").alias("pods"))
    pair = F.flatten(
        F.transform("seen", lambda one: F.transform(F.filter("seen", _beside(one)), _overlap(one)))
    )
    several = things.where(F.col("pods") > 1)
    return several.select(*thing, F.explode(pair).alias("both")).select(*thing, "both.*")


def _beside(one: Column) -> Callable[[Column], Column]:
    def judge(other: Column) -> Column:
        shared_us = F.least(one["to_us"], other["to_us"]) - F.greatest(one["from_us"], other["from_us"])
        return (one["pod"] < other["pod"]) & (shared_us > SKEW_US)

    return judge


def _overlap(one: Column) -> Callable[[Column], Column]:
    def build(other: Column) -> Column:
        return F.struct(
            one["pod"].alias("pod"),
            other["pod"].alias("other_pod"),
            F.greatest(one["from_us"], other["from_us"]).alias("from_us"),
            F.least(one["to_us"], other["to_us"]).alias("to_us"),
        )

    return build


PASTS: tuple[Past, ...] = (
    # an old offset on a fresh store
    Past(
        extremes=(most("offset"), most("puts")),
        steps=(Change.TASK_DELETED.value,),
        turns=(Change.TASK_DELETED.value, Change.STORE_DELETED.value, Change.STORE_CREATED.value),
        moments=_first_writes,
        places=_first_writes,
    ),
    # what the previous owner held
    Past(extremes=(most("entries_low"),)),
    # the role of a pod before its crash
    Past(window=Window("skipped-eos-wipe", Severity.INFO, ROLE_US)),
    # copies at one offset
    Past(places=_compared, steps=_ANCHORS),
    # things that two pods show
    Past(sightings=shared),
    # two holders, one of them stalled
    Past(extremes=(most("offset"), most("puts")), steps=MOVES, settled_us=SETTLE_US, moments=_ends_and_thaws),
    # what a restoration costs
    Past(extremes=(most("bytes"),)),
    # how far behind a copy is
    Past(extremes=(last("offset"), last("bytes"))),
)
"""What the rules and the table of restarts need of the past; `compact --snapshots` keeps it."""
