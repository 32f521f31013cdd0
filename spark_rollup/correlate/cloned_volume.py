"""One process id or one store IDENTITY before the eyes of two pods at once: a cloned or shared volume.

Signal: process ids and store identities that agents see, per boot of each agent.
Fires when: the same process id, or the same store's IDENTITY, is seen on two pods of one application and namespace at
    times that overlap by more than clocks can differ.
Clears when: one of the two no longer shows it.
Stays quiet when: a volume moves (the agent that had it before is gone by then), or a copy stands in another namespace.
Blind spots: process ids exist since 2.6.2; a clone whose stores have been made anew and whose process file is gone.
Source: KAFKA-6647 and the process file `kafka-streams-process-metadata` (2.6.2, 2.7.1, 2.8 and later).
"""

from __future__ import annotations

from collections.abc import Callable

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from agent.contract.events import Affected, Confidence, Level, Severity, Status
from spark_rollup.columns import MICROS, chain, clock, entry, numbered
from spark_rollup.correlate.base import Facts, Rule, RuleMeta, finding
from spark_rollup.correlate.fleet import SKEW_US, attach, prefixed

META = RuleMeta(
    id="cloned-volume",
    title="Two pods have the same volume, or copies of it, at once",
    level=Level.EXPOSURE,
    severity=Severity.CRITICAL,
    upstream=("KAFKA-6647",),
    docs="rules/cloned-volume.md",
)

MAX_THINGS = 10
"""How many process ids and stores the evidence names; the summary counts them all."""

_PAIR = ("namespace", "application_id", "pod", "other_pod")


def find(facts: Facts) -> DataFrame:
    """Pair pods that show the same thing at once.

    Output columns: `FINDING`.
    """
    recent = pairs(facts.sightings).where(F.col("to_us") >= facts.since_us)
    return _findings(_with_local(_with_holders(recent, facts), facts), facts.as_of_us)


def pairs(sightings: DataFrame) -> DataFrame:
    """Find pods with something in common at the same time.

    Output columns: `_PAIR`, from_us, to_us (of the overlap), processes, stores (numbers), told (evidence), row_key.
    Grain: one row per pair of pods, the smaller name first.
    """
    where = F.concat_ws("/", "application_id", "task_id", "store")
    told = entry(
        F.col("from_us"),
        numbered("%s %s is on %s and on %s at once", _noun(), "key", "pod", "other_pod"),
        where,
    )
    return (
        shared(sightings)
        .groupBy(*_PAIR)
        .agg(
            F.min("from_us").alias("from_us"),
            F.max("to_us").alias("to_us"),
            F.count_distinct(F.when(F.col("what") == "process", F.col("key"))).alias("processes"),
            F.count_distinct(F.when(F.col("what") == "store", F.col("key"))).alias("stores"),
            F.slice(F.array_sort(F.collect_list(told)), 1, MAX_THINGS).alias("told"),
        )
        .withColumn("row_key", F.concat_ws("/", *_PAIR))
    )


def shared(sightings: DataFrame) -> DataFrame:
    """List what two pods showed at the same time.

    Output columns: namespace, application_id, what, key, task_id, store, pod, other_pod, from_us, to_us (overlap).
    Grain: one row per thing and pair of sightings.
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


def _noun() -> Column:
    return F.when(F.col("what") == "process", F.lit("process id")).otherwise(F.lit("store identity"))


def _with_holders(pairs: DataFrame, facts: Facts) -> DataFrame:
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


def _with_local(pairs: DataFrame, facts: Facts) -> DataFrame:
    """Add the agents' `shared-state-dir` findings on the two pods."""
    local = prefixed(facts.said.where(F.col("detector") == "shared-state-dir"), "local_")
    same = (
        (F.col("local_namespace") == F.col("namespace"))
        & (F.col("local_application_id") == F.col("application_id"))
        & F.col("local_pod").isin(F.col("pod"), F.col("other_pod"))
    )
    return attach(pairs, local, same, {"confirms": F.array_sort(F.collect_set("local_finding_id"))})


def _findings(pairs: DataFrame, as_of_us: int) -> DataFrame:
    working = F.col("working") == 2
    over = F.lit(as_of_us) - F.col("to_us") > 3 * 60 * MICROS  # three rounds of summaries no longer show it
    what = F.concat_ws(
        " and ",
        F.when(F.col("processes") > 0, F.lit("the same process id")),
        numbered("the same identity of %d stores", F.when(F.col("stores") > 1, F.col("stores"))),
        F.when(F.col("stores") == 1, F.lit("the same identity of a store")),
    )
    busy = F.when(working, F.lit("; both work on it")).otherwise(F.lit("; not both work on it"))
    times = numbered("%s and %s show it from %s to %s", "pod", "other_pod", clock("from_us"), clock("to_us"))
    return finding(
        pairs.withColumn("identity", F.col("other_pod")),
        META,
        {
            "opened_at_us": F.col("from_us"),
            "severity": F.when(working, F.lit(Severity.CRITICAL.value)).otherwise(
                F.lit(Severity.WARNING.value)
            ),
            "confidence": F.lit(Confidence.CONFIRMED.value),
            "status": F.when(over, F.lit(Status.RESOLVED.value)).otherwise(F.lit(Status.OPEN.value)),
            "affected": F.lit(Affected.YES.value),
            "summary": F.concat(
                "pod", F.lit(" and "), "other_pod", F.lit(" have "), what, F.lit(" at once"), busy
            ),
            "evidence": chain(
                F.array(entry(F.col("from_us"), times, F.col("application_id"))), F.col("told")
            ),
            "next_action": _next_action(),
            "pods": F.array("pod", "other_pod"),
            "confirms": F.col("confirms"),
        },
    )


def _next_action() -> Column:
    return numbered(
        "Stop the instance on %s in an orderly way and give it an empty volume of its own; look whether the claim is "
        "shared (ReadWriteMany) or was cloned. Keep the volume of %s as it is until then.",
        "other_pod", "pod",
    )  # fmt: skip


RULE = Rule(META, find)
