"""Looks and steps that later audits may ask for: each copy's extremes, and what was around remembered moments.

A look is a summary, a step a change of files: the writing of a checkpoint, a flush, a store opened, made or deleted.
They are nearly all of the events. What is kept of them is chosen by time, and with all that is kept the step of each
kind before it and the one after it: a rule that asks whether anything moved between two looks is never told "nothing"
because it was left out.

Every moment is looked at anew each day: what comes first after it may come days later.
"""

from __future__ import annotations

from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import Window as W
from pyspark.sql import functions as F

from agent.contract.events import Change, Kind, Severity, Status
from spark_rollup.columns import TASK, summary, told
from spark_rollup.correlate import diverged_replica, resurrected_checkpoint, split_owner
from spark_rollup.facts import sizes
from spark_rollup.facts.timeline import marks

IDENTITIES = 4
"""Incarnations of a store kept per pod: the newest."""

BROADCAST_ROWS = 500_000
"""Up to this many chosen times are sent to where the events lie; more, and the events are moved instead."""

ROLE_US = 86_400_000_000
"""How long before a crash a copy's work is remembered for the sake of its role."""

STEPS = (*split_owner.MOVES, Change.TASK_DELETED.value)
"""Changes of files that rules look for between two moments."""

_TURNS = (Change.TASK_DELETED.value, Change.STORE_DELETED.value, Change.STORE_CREATED.value)

_COPY = (*TASK, "store", "pod", "identity")
_PLACE = (*TASK, "pod", "at_us")
_STEP = (*TASK, "pod", "what")


def extremes() -> dict[str, Column]:
    """List the looks of each copy that are kept: what makes them extreme, and the time of each."""
    at = F.col("at_us")

    def most(name: str, value: Column | None = None) -> Column:
        worth = F.col(name) if value is None else value
        # of equals the last: what is kept must not depend on the order of files
        return F.max(F.when(F.col(name).isNotNull(), F.struct(worth.alias("worth"), at.alias("at_us"))))

    return {
        "last": most("at_us"),  # where the copy stands; where it stood when it was last heard
        "offset_known": most("offset", at),  # unprotected-task, safe-to-restart: how far behind
        "bytes_known": most("bytes", at),  # safe-to-restart: what a restoration costs
        "largest": most("bytes"),  # task-churn: what restorations cost
        "furthest": most("offset"),  # resurrected-checkpoint, split-owner: how far it came
        "fullest": most("puts"),  # the same, where offsets are not known
        "richest": most("entries_low"),  # unrestored-task: what it surely held
    }


def nearby(events: DataFrame, flips: DataFrame, kept: DataFrame, counted: DataFrame) -> DataFrame:
    """Choose and take looks and steps.

    Args:
        events: All events of some days, and those carried from before them.
        flips: Those of `timeline.flips` that are kept.
        kept: Other events that are kept.
        counted: `heartbeats.beats`.

    Returns:
        Events.
    """
    looks = sizes.sizes(events, sizes.single_stores(events).localCheckpoint())
    steps = _steps(events)
    first = _first_writes(events).localCheckpoint()
    copies = steps.select(*_STEP).distinct().localCheckpoint()
    times = (
        moments(flips, kept),
        first.select(*TASK, "at_us"),
        _last_heard(copies, counted),
        _thaws(steps, flips),
    )
    around = reduce(DataFrame.unionByName, times).distinct().localCheckpoint()
    beside = _neighbours(steps, copies.join(around, list(TASK), "inner"), _STEP)
    asked = _of_unknown_role(steps, kept)
    chosen = reduce(
        DataFrame.unionByName, (_extremes(looks), _settled(looks), first, beside, asked)
    ).distinct()
    chosen = chosen.localCheckpoint()
    kinds = copies.where(F.col("what").isin(*STEPS))
    besides = _neighbours(
        steps.where(F.col("what").isin(*STEPS)), kinds.join(chosen, [*TASK, "pod"], "inner"), _STEP
    )
    return _at(events, chosen.unionByName(besides).distinct().localCheckpoint())


def _of_unknown_role(steps: DataFrame, kept: DataFrame) -> DataFrame:
    """List all looks and steps of a task in the day before a crash whose owner's role the agent could not tell.

    `stale-eos-state` counts them to tell it: what each copy put in, and who wrote checkpoints meanwhile.

    Output columns: `_PLACE`.
    """
    asked = kept.where(
        (F.col("kind") == Kind.FINDING.value)
        & (F.col("status") == Status.OPEN.value)
        & (F.col("severity") == Severity.INFO.value)
        & (F.col("detector") == "skipped-eos-wipe")
    ).select(*TASK, "opened_at_us")
    before = F.col("at_us").between(F.col("opened_at_us") - ROLE_US, F.col("opened_at_us"))
    return steps.join(asked, list(TASK), "inner").where(before).select(*_PLACE)


def moments(flips: DataFrame, kept: DataFrame) -> DataFrame:
    """List the times around which looks and steps are kept: of all copies of the task, whatever pod it is about.

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
    return turned.unionByName(changed).unionByName(opened)


def _last_heard(copies: DataFrame, counted: DataFrame) -> DataFrame:
    """List when each pod that has a copy was last heard: to `split-owner` a pair of holders ends there.

    Output columns: `TASK`, at_us.
    """
    heard = counted.groupBy("namespace", "pod").agg(F.max("last_us").alias("at_us"))
    pods = copies.select(*TASK, "pod").distinct()
    return pods.join(heard, ["namespace", "pod"], "inner").select(*TASK, "at_us")


def _thaws(steps: DataFrame, flips: DataFrame) -> DataFrame:
    """List when two that hold a task to the end moved first, each: to `split-owner` the frozen one thaws there.

    Output columns: `TASK`, at_us.
    """
    newest = F.max_by(
        F.struct("now_held", "observed_at_us"), F.struct("observed_at_us", "boot_id", "sequence")
    )
    ends = flips.groupBy(*TASK, "pod").agg(newest.alias("end"))
    holders = ends.where(F.col("end.now_held")).select(
        *TASK, "pod", F.col("end.observed_at_us").alias("from_us")
    )
    others = holders.select(*TASK, F.col("pod").alias("other_pod"), F.col("from_us").alias("other_from_us"))
    both_us = F.greatest("from_us", "other_from_us") + split_owner.SETTLE_US
    pairs = holders.join(others, list(TASK), "inner").where(F.col("pod") != F.col("other_pod"))
    begun = pairs.select(*TASK, "pod", both_us.alias("at_us")).distinct()
    moves = steps.where(F.col("what").isin(*split_owner.MOVES)).select(*_PLACE)
    return _neighbours(moves, begun, (*TASK, "pod")).select(*TASK, "at_us")


def _extremes(looks: DataFrame) -> DataFrame:
    """Choose the extreme looks of the newest incarnations on each pod, and of all of them together."""
    kept = extremes()
    copies = looks.groupBy(*_COPY).agg(*(look.alias(name) for name, look in kept.items())).localCheckpoint()
    on_pod = W.partitionBy(*TASK, "store", "pod")
    newest = on_pod.orderBy(F.desc("last"), "identity")
    ranked = copies.withColumns(
        {"rank": F.row_number().over(newest)} | {f"any_{name}": F.max(name).over(on_pod) for name in kept}
    )
    of_newest = ranked.where(F.col("rank") <= IDENTITIES).select(*TASK, "pod", F.array(*kept).alias("looks"))
    of_all = ranked.where(F.col("rank") == 1).select(
        *TASK, "pod", F.array(*(f"any_{name}" for name in kept)).alias("looks")
    )
    return (
        of_newest.unionByName(of_all)
        .select(*TASK, "pod", F.explode("looks.at_us").alias("at_us"))
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
    """List looks and steps.

    Output columns: `TASK`, pod, at_us, what.
    """
    return _looks_and_steps(events).select(*TASK, "pod", "at_us", F.coalesce("change", "kind").alias("what"))


def _looks_and_steps(events: DataFrame) -> DataFrame:
    step = told() & F.col("change").isin(*STEPS)
    return events.where((summary() | step) & F.col("task_id").isNotNull()).withColumn("at_us", _at_us())


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
    """Take the looks and steps of some times."""
    wanted = F.broadcast(times) if times.count() <= BROADCAST_ROWS else times
    return _looks_and_steps(events).join(wanted, list(_PLACE), "left_semi").drop("at_us")
