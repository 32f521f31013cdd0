"""Select the readings and steps that later audits need: each copy's extremes, and what is next to moments in question.

A reading is a summary, a step a change of files: the writing of a checkpoint, a flush, a store opened, made or deleted.
They are nearly all of the events. What is kept of them is chosen by time; and with everything that is kept, the step
of each kind before it and the one after it are kept, too: a rule that asks whether anything moved between two readings
never gets "nothing" as its answer because a step was left out.

Every moment is considered again each day: what comes first after it may come days later.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import Window as W
from pyspark.sql import functions as F

from agent.contract.events import Kind, Status
from spark_rollup.columns import TASK, is_notable, summary
from spark_rollup.facts import sizes
from spark_rollup.facts.timeline import marks
from spark_rollup.judging.past import PLACE, Extreme, Past, Seen, Window, last, neighbours
from spark_rollup.spark.materialize import materialize

NEWEST = last("at_us")
"""How far the copy has come; how far it had come at its last report."""

IDENTITIES = 4
"""Incarnations of a store kept per pod: the newest."""

BROADCAST_ROWS = 500_000
"""Up to this many chosen times are sent to where the events are; if there are more, the events are moved instead."""

_COPY = (*TASK, "store", "pod", "identity")
_STEP = (*TASK, "pod", "what")


def nearby(
    events: DataFrame, flips: DataFrame, kept: DataFrame, counted: DataFrame, pasts: Sequence[Past]
) -> DataFrame:
    """Choose and take readings and steps.

    Args:
        events: All events of some days, and those carried from before them.
        flips: Those of `timeline.flips` that are kept.
        kept: Other events that are kept.
        counted: `heartbeats.beats`.
        pasts: What rules need.

    Returns:
        Events.
    """
    asked = sorted({step for past in pasts for step in past.steps})
    readings = sizes.sizes(events, materialize(sizes.single_stores(events)))
    steps = _steps(events, asked)
    copies = materialize(steps.select(*_STEP).distinct())
    seen = Seen(events, readings, steps, copies, flips, counted)
    choices = dict.fromkeys(choose for past in pasts for choose in (past.moments, past.places) if choose)
    chosen = {choose: materialize(choose(seen)) for choose in choices}
    times = (
        moments(flips, kept, pasts),
        *(chosen[past.moments].select(*TASK, "at_us") for past in pasts if past.moments),
    )
    around = materialize(reduce(DataFrame.unionByName, times).distinct())
    beside = neighbours(steps, copies.join(around, list(TASK), "inner"), _STEP)
    places = (
        _extremes(readings, pasts),
        beside,
        *(chosen[past.places].select(*PLACE) for past in pasts if past.places),
        *(_before_findings(steps, kept, past.window) for past in pasts if past.window),
    )
    wanted = materialize(reduce(DataFrame.unionByName, places).distinct())
    kinds = copies.where(F.col("what").isin(*asked))
    besides = neighbours(
        steps.where(F.col("what").isin(*asked)), kinds.join(wanted, [*TASK, "pod"], "inner"), _STEP
    )
    return _at(events, asked, materialize(wanted.unionByName(besides).distinct()))


def _before_findings(steps: DataFrame, kept: DataFrame, window: Window) -> DataFrame:
    """List all readings and steps of a task in the time before open findings.

    Output columns: `PLACE`.
    """
    asked = kept.where(
        (F.col("kind") == Kind.FINDING.value)
        & (F.col("status") == Status.OPEN.value)
        & (F.col("severity") == window.severity.value)
        & (F.col("detector") == window.detector)
    ).select(*TASK, "opened_at_us")
    before = F.col("at_us").between(F.col("opened_at_us") - window.before_us, F.col("opened_at_us"))
    return steps.join(asked, list(TASK), "inner").where(before).select(*PLACE)


def moments(flips: DataFrame, kept: DataFrame, pasts: Sequence[Past]) -> DataFrame:
    """List the times around which readings and steps are kept: of all copies of the task, whichever pod a time is from.

    Changes of holder (and when what they stir up has settled), the turns that rules name, and when open
    findings opened.

    Input columns: those of `timeline.flips`; events that are kept.
    Output columns: `TASK`, at_us.
    """
    at = F.col("observed_at_us")
    settled = sorted({past.settled_us for past in pasts if past.settled_us is not None})
    turned = flips.select(*TASK, F.explode(F.array(at, *(at + us for us in settled))).alias("at_us"))
    turns = sorted({turn for past in pasts for turn in past.turns})
    changed = marks(kept).where(F.col("change").isin(*turns)).select(*TASK, "at_us")
    opened = kept.where(
        (F.col("kind") == Kind.FINDING.value)
        & (F.col("status") == Status.OPEN.value)
        & F.col("task_id").isNotNull()
    ).select(*TASK, F.col("opened_at_us").alias("at_us"))
    return turned.unionByName(changed).unionByName(opened)


def _extreme(extreme: Extreme) -> Column:
    """Return the time of a copy's extreme reading."""
    known = F.struct(F.col(extreme.by).alias("worth"), F.col("at_us"))
    # of equals the last: what is kept must not depend on the order of files
    return F.max(F.when(F.col(extreme.of).isNotNull(), known))


def _extremes(readings: DataFrame, pasts: Sequence[Past]) -> DataFrame:
    """Choose the extreme readings of the newest incarnations on each pod, and of all of them together."""
    asked = dict.fromkeys((NEWEST, *(extreme for past in pasts for extreme in past.extremes)))
    kept = {f"{extreme.by}_of_{extreme.of}": _extreme(extreme) for extreme in asked}
    copies = materialize(
        readings.groupBy(*_COPY).agg(*(extreme.alias(name) for name, extreme in kept.items()))
    )
    on_pod = W.partitionBy(*TASK, "store", "pod")
    newest = on_pod.orderBy(F.desc(f"{NEWEST.by}_of_{NEWEST.of}"), "identity")
    ranked = copies.withColumns(
        {"rank": F.row_number().over(newest)} | {f"any_{name}": F.max(name).over(on_pod) for name in kept}
    )
    of_newest = ranked.where(F.col("rank") <= IDENTITIES).select(
        *TASK, "pod", F.array(*kept).alias("readings")
    )
    of_all = ranked.where(F.col("rank") == 1).select(
        *TASK, "pod", F.array(*(f"any_{name}" for name in kept)).alias("readings")
    )
    return (
        of_newest.unionByName(of_all)
        .select(*TASK, "pod", F.explode("readings.at_us").alias("at_us"))
        .where(F.col("at_us").isNotNull())
        .distinct()
    )


def _at_us() -> Column:
    """Return when something happened, as `timeline.marks` does; a summary happens when it is reported."""
    return F.least("observed_at_us", F.coalesce("occurred_at_us", "observed_at_us"))


def _steps(events: DataFrame, changes: Sequence[str]) -> DataFrame:
    """List readings and steps.

    Output columns: `TASK`, pod, at_us, what.
    """
    return _readings_and_steps(events, changes).select(
        *TASK, "pod", "at_us", F.coalesce("change", "kind").alias("what")
    )


def _readings_and_steps(events: DataFrame, changes: Sequence[str]) -> DataFrame:
    step = is_notable() & F.col("change").isin(*changes)
    return events.where((summary() | step) & F.col("task_id").isNotNull()).withColumn("at_us", _at_us())


def _at(events: DataFrame, changes: Sequence[str], times: DataFrame) -> DataFrame:
    """Take the readings and steps of some times."""
    wanted = F.broadcast(times) if times.count() <= BROADCAST_ROWS else times
    return _readings_and_steps(events, changes).join(wanted, list(PLACE), "left_semi").drop("at_us")
