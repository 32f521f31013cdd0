"""Things that exist once and that two pods show at the same time: process ids, and IDENTITYs of stores."""

from __future__ import annotations

from collections.abc import Callable

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from agent.contract.mechanisms import Mechanism
from spark_rollup.columns import MICROS
from spark_rollup.judging.base import Facts
from spark_rollup.judging.fleet import SKEW_US, attach, prefixed

PROCESS, STORE = "process", "store"
"""What is shared."""

PAIR = ("namespace", "application_id", "pod", "other_pod")

GONE_US = 3 * 60 * MICROS
"""Three rounds of summaries that no longer show a thing: it is over."""


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


def alive_together(facts: Facts) -> DataFrame:
    """List the times in which processes with one id lived on two pods, for longer than clocks can differ.

    Output columns: `PAIR`, key, from_us, to_us.
    Grain: one row per process id, pair of sightings and pair of lives.
    """
    app = ("namespace", "application_id")
    ids = shared(facts.sightings).where(F.col("what") == PROCESS).select(*PAIR, "key", "from_us", "to_us")
    lives = facts.lives.select(
        *app, "pod", F.col("from_us").alias("life_from_us"), F.col("to_us").alias("life_to_us")
    )
    others = lives.select(
        *app, F.col("pod").alias("other_pod"),
        F.col("life_from_us").alias("other_from_us"), F.col("life_to_us").alias("other_to_us"),
    )  # fmt: skip
    both = ids.join(lives, [*app, "pod"], "inner").join(others, [*app, "other_pod"], "inner")
    return both.select(
        *PAIR, "key",
        F.greatest("from_us", "life_from_us", "other_from_us").alias("from_us"),
        F.least("to_us", "life_to_us", "other_to_us").alias("to_us"),
    ).where(F.col("to_us") - F.col("from_us") > SKEW_US)  # fmt: skip


def with_holders(pairs: DataFrame, facts: Facts) -> DataFrame:
    """Add `working`: on how many of the two pods a process held any task of the application meanwhile."""
    held = prefixed(facts.held.where(~F.col("cleaner")), "held_")
    same = (
        (F.col("held_namespace") == F.col("namespace"))
        & (F.col("held_application_id") == F.col("application_id"))
        & F.col("held_pod").isin(F.col("pod"), F.col("other_pod"))
        & (F.col("held_from_us") <= F.col("to_us"))
        & (F.col("held_to_us") >= F.col("from_us"))
    )
    return attach(pairs, held, same, {"working": F.count_distinct("held_pod")})


def with_local(pairs: DataFrame, facts: Facts) -> DataFrame:
    """Add the agents' findings of two processes on one directory, on the two pods: `confirms`."""
    is_shared = (F.col("detector") == "setup") & (F.col("mechanism") == Mechanism.SHARED_STATE.slug)
    of_older = F.col("detector") == "shared-state-dir"
    local = prefixed(facts.said.where(is_shared | of_older), "local_")
    same = (
        (F.col("local_namespace") == F.col("namespace"))
        & (F.col("local_application_id") == F.col("application_id"))
        & F.col("local_pod").isin(F.col("pod"), F.col("other_pod"))
    )
    return attach(pairs, local, same, {"confirms": F.array_sort(F.collect_set("local_finding_id"))})
