"""A task that moves, is wiped or restored again and again, and what that costs.

Signal: pods that take the task after another one had it, deletions of stores by their owner, stores recreated.
Fires when: within one hour a task moved, or was restored, at least six times, or was wiped at least three times; a
    warning from twice as many on.
Clears when: that hour is before the look-back.
Stays quiet when: pods roll once, a task moves and comes back, or is closed and opened where it is.
Blind spots: what happens unwatched is not counted, so numbers are lower bounds.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import Window as W
from pyspark.sql import functions as F

from agent.contract.events import Affected, Change, Confidence, Level, Severity, Status
from agent.contract.units import Twin
from spark_rollup.columns import MICROS, TASK, chain, clock, entry, numbered
from spark_rollup.judging.base import Facts, Rule, RuleMeta, finding
from spark_rollup.judging.fleet import SKEW_US, with_unwatched
from spark_rollup.judging.past import Past, most
from spark_rollup.schemas import CHURN

META = RuleMeta(
    id="task-churn",
    title="A task is moved, wiped or restored again and again",
    level=Level.EVENT,
    severity=Severity.WARNING,
    joined_by=(("application_id",),),
    twin=Twin("N6, a rolling restart moves each task once or twice", "benign-rolling-standby-3.9.2"),
)

HOUR_US = 3600 * MICROS

LIMITS = {"move": 6, "wipe": 3, "restore": 6}
"""How often an hour may bring it before it is worth a note."""

BURST_US = 10 * MICROS
"""Deletions and creations of one task's stores within this time are one step."""

AWAY_US = 10 * MICROS
"""A pod that lets go and takes again within this time (microseconds of its own clock) never lost the task. In which
order two pods took a task is not counted by: within seconds that is decided by their clocks."""

MAX_STEPS = 20


def find(facts: Facts) -> DataFrame:
    """Find each task's busiest hour.

    Output columns: `FINDING`.
    """
    hour = W.partitionBy(*TASK).orderBy("at_us").rangeBetween(-HOUR_US, 0)
    counted = steps(facts).withColumns(
        {
            **{f"{kind}s": F.count_if(F.col("step") == kind).over(hour) for kind in LIMITS},
            "cost_bytes": F.sum("bytes").over(hour),
            "from_us": F.min("at_us").over(hour),
            "entries": F.collect_list(_entry()).over(hour),
            "pods": F.collect_set("pod").over(hour),
        }
    )
    worst = F.greatest(*(F.col(f"{kind}s") / F.lit(float(limit)) for kind, limit in LIMITS.items()))
    rank = W.partitionBy(*TASK).orderBy(F.desc("worst"), F.desc("at_us"), "step", "pod")
    busiest = (
        counted.withColumn("worst", worst)
        .where((F.col("worst") >= 1) & (F.col("at_us") >= facts.since_us))
        .withColumn("rank", F.row_number().over(rank))
        .where(F.col("rank") == 1)
    )
    keyed = busiest.withColumn("row_key", F.concat_ws("/", *TASK))
    return _findings(with_unwatched(keyed, facts, "from_us", "at_us"))


def steps(facts: Facts) -> DataFrame:
    """List every move, wipe and restore.

    Output columns: `TASK`, pod, at_us, step (`move`, `wipe`, `restore`), bytes (of a restore; null = unknown).
    Grain: one row per step.
    """
    moves = _moves(facts.held).select(
        *TASK, "pod", F.col("from_us").alias("at_us"), F.lit("move").alias("step"), _no_bytes()
    )
    wiped = (F.col("change") == Change.STORE_DELETED.value) & (F.col("shape") == "owner-walk")
    wipes = _bursts(facts.marks.where(wiped), "wipe").select(*TASK, "pod", "at_us", "step", _no_bytes())
    made = _bursts(facts.marks.where(F.col("change") == Change.STORE_CREATED.value), "restore")
    # a task's very first store in the whole fleet is new, not restored
    first = W.partitionBy(*TASK).orderBy("at_us", "pod")
    restores = made.withColumn("number", F.row_number().over(first)).where(F.col("number") > 1)
    return reduce(DataFrame.unionByName, (moves, wipes, _with_bytes(restores.drop("number"), facts)))


def _moves(held: DataFrame) -> DataFrame:
    """Keep the holds with which a pod took a task over: its first, or one after an absence in which another had it.

    The first holder in the whole fleet took it from no other pod.

    Output columns: `TASK`, pod, from_us.
    Grain: one row per move.
    """
    left_us = F.lag("to_us").over(W.partitionBy(*TASK, "pod").orderBy("from_us"))
    hold = F.struct("from_us", "pod", "to_us", left_us.alias("left_us"))
    holds = F.array_sort(F.collect_list("hold")).alias("holds")
    tasks = held.where(~F.col("cleaner")).select(*TASK, hold.alias("hold")).groupBy(*TASK).agg(holds)
    later = F.slice("holds", 2, F.size("holds"))
    taken = F.filter(
        later, lambda one: one["left_us"].isNull() | (_away(one) & F.exists("holds", _meanwhile(one)))
    )
    return tasks.select(*TASK, F.inline(taken)).select(*TASK, "pod", "from_us")


def _away(one: Column) -> Column:
    return one["from_us"] - one["left_us"] > AWAY_US


def _meanwhile(one: Column) -> Callable[[Column], Column]:
    """Return whether another pod's hold touches the absence before `one`, whatever the two clocks say."""

    def judge(other: Column) -> Column:
        started = other["from_us"] <= one["from_us"] + SKEW_US
        return (other["pod"] != one["pod"]) & started & (other["to_us"] >= one["left_us"] - SKEW_US)

    return judge


def _no_bytes() -> Column:
    return F.lit(None).cast("bigint").alias("bytes")


def _bursts(marks: DataFrame, step: str) -> DataFrame:
    order = W.partitionBy(*TASK, "pod").orderBy("at_us")
    return (
        marks.select(*TASK, "pod", "at_us")
        .withColumn("before_us", F.lag("at_us").over(order))
        .where(F.col("before_us").isNull() | (F.col("at_us") - F.col("before_us") > BURST_US))
        .select(*TASK, "pod", "at_us", F.lit(step).alias("step"))
    )


def _with_bytes(restores: DataFrame, facts: Facts) -> DataFrame:
    """Add what a restore cost: the most bytes that the pod's copy was seen to have."""
    size = facts.latest.groupBy(*TASK, "pod").agg(F.sum("most_bytes").alias("bytes"))
    return restores.join(size, [*TASK, "pod"], "left")


def per_hour(facts: Facts) -> DataFrame:
    """Add steps up per task and hour.

    Output columns: `CHURN`.
    """
    start = F.col("at_us") - F.pmod(F.col("at_us"), F.lit(HOUR_US))
    recent = steps(facts).where(F.col("at_us") >= facts.since_us)
    hours = recent.groupBy(*TASK, start.alias("hour_us")).agg(
        *(F.count_if(F.col("step") == kind).alias(f"{kind}s") for kind in LIMITS),
        F.coalesce(F.sum("bytes"), F.lit(0)).alias("restored_bytes"),
    )  # fmt: skip
    return hours.select(*CHURN.names)


def _entry() -> Column:
    what = (
        F.when(F.col("step") == "move", F.lit(" took the task"))
        .when(F.col("step") == "wipe", F.lit(" wiped its store"))
        .when(F.col("step") == "restore", F.lit(" recreated its store"))
    )
    return entry(F.col("at_us"), F.concat("pod", what), F.concat_ws("/", "application_id", "task_id"))


def _findings(rows: DataFrame) -> DataFrame:
    is_warning, doubtful = F.col("worst") >= 2, F.size("unwatched_pods") > 0
    cost = F.coalesce(numbered(", %d bytes restored", "cost_bytes"), F.lit(""))
    counts = numbered(
        "%s: %d moves, %d wipes, %d restores between %s and %s",
        "task_id", "moves", "wipes", "restores", clock("from_us"), clock("at_us"),
    )  # fmt: skip
    return finding(
        rows.withColumn("pod", F.lit(None).cast("string")),
        META,
        {
            "opened_at_us": F.col("from_us"),
            "severity": F.when(is_warning, F.lit(Severity.WARNING.value)).otherwise(
                F.lit(Severity.INFO.value)
            ),
            # a hold whose begin was lost begins later: a pause of a second can then look like an absence
            "confidence": F.when(doubtful, F.lit(Confidence.SUSPECTED.value)).otherwise(
                F.lit(Confidence.CONFIRMED.value)
            ),
            "status": F.lit(Status.OPEN.value),
            "affected": F.lit(Affected.NO.value),
            "summary": F.concat(counts, cost),
            "evidence": F.slice(chain(F.col("entries")), 1, MAX_STEPS),
            "next_action": F.lit(
                "Find out why members leave the group: max.poll.interval.ms, liveness probes, restarts; "
                "repeated wipes point at fencing. A task that moves all the time is useless while it is restored."
            ),
            "pods": F.array_sort("pods"),
        },
    )


RULE = Rule(META, find, remembers=Past(extremes=(most("bytes"),)))
