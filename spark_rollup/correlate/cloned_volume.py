"""One process id or one store IDENTITY before the eyes of two pods at once: a cloned or shared volume.

Signal: process ids and store identities that agents see, per boot of each agent.
Fires when: the same process id, or the same store's IDENTITY, is seen on two pods of one application and namespace at
    times that overlap by more than clocks can differ.
Clears when: one of the two no longer shows it.
Stays quiet when: a volume moves (the agent that had it before is gone by then), a copy is in another namespace, or
    processes with one id live on both (`cloned-process` reports that).
Blind spots: process ids exist since 2.6.2; a clone whose stores have been recreated and whose process file is gone.
Source: KAFKA-6647 and the process file `kafka-streams-process-metadata` (2.6.2, 2.7.1, 2.8 and later).
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from agent.contract.events import Affected, Confidence, Level, Severity, Status
from agent.contract.mechanisms import Mechanism
from agent.contract.units import Twin
from spark_rollup.columns import chain, clock, entry, numbered
from spark_rollup.judging.base import Facts, Rule, RuleMeta, finding
from spark_rollup.judging.clones import (
    GONE_US,
    PAIR,
    PROCESS,
    alive_together,
    shared,
    with_holders,
    with_local,
)
from spark_rollup.judging.past import Past

META = RuleMeta(
    id="cloned-volume",
    title="Two pods have the same volume, or copies of it, at once",
    level=Level.EXPOSURE,
    severity=Severity.CRITICAL,
    mechanism=Mechanism.SHARED_STATE,
    joined_by=(("application_id", "pods"),),
    upstream=("KAFKA-6647",),
    twin=Twin("N7, a task moved, its identities did not", "benign-move-3.9.2"),
)

MAX_THINGS = 10
"""How many process ids and stores the evidence names; the summary counts them all."""


def find(facts: Facts) -> DataFrame:
    """Pair pods that show the same thing at once.

    Output columns: `FINDING`.
    """
    recent = pairs(facts.sightings).where(F.col("to_us") >= facts.since_us)
    lasting = alive_together(facts).where(F.lit(facts.as_of_us) - F.col("to_us") <= GONE_US)
    shown = lasting.select(*PAIR).distinct()  # by `cloned-process`, and once is enough
    rest = recent.join(shown, list(PAIR), "left_anti")
    return _findings(with_local(with_holders(rest, facts), facts), facts.as_of_us)


def pairs(sightings: DataFrame) -> DataFrame:
    """Find pods with something in common at the same time.

    Output columns: `PAIR`, from_us, to_us (of the overlap), processes, stores (numbers), entries (evidence), row_key.
    Grain: one row per pair of pods, the smaller name first.
    """
    where = F.concat_ws("/", "application_id", "task_id", "store")
    shown = entry(
        F.col("from_us"),
        numbered("%s %s is on %s and on %s at once", _noun(), "key", "pod", "other_pod"),
        where,
    )
    return (
        shared(sightings)
        .groupBy(*PAIR)
        .agg(
            F.min("from_us").alias("from_us"),
            F.max("to_us").alias("to_us"),
            F.count_distinct(F.when(F.col("what") == PROCESS, F.col("key"))).alias("processes"),
            F.count_distinct(F.when(F.col("what") == "store", F.col("key"))).alias("stores"),
            F.slice(F.array_sort(F.collect_list(shown)), 1, MAX_THINGS).alias("entries"),
        )
        .withColumn("row_key", F.concat_ws("/", *PAIR))
    )


def _noun() -> Column:
    return F.when(F.col("what") == PROCESS, F.lit("process id")).otherwise(F.lit("store identity"))


def _findings(pairs: DataFrame, as_of_us: int) -> DataFrame:
    working = F.col("working") == 2
    over = F.lit(as_of_us) - F.col("to_us") > GONE_US
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
            "ended_us": F.col("to_us"),
            "affected": F.lit(Affected.YES.value),
            "summary": F.concat(
                "pod", F.lit(" and "), "other_pod", F.lit(" have "), what, F.lit(" at once"), busy
            ),
            "evidence": chain(
                F.array(entry(F.col("from_us"), times, F.col("application_id"))), F.col("entries")
            ),
            "next_action": _next_action(),
            "pods": F.array("pod", "other_pod"),
            "confirms": F.col("confirms"),
        },
    )


def _next_action() -> Column:
    return numbered(
        "Stop the instance on %s cleanly and give it its own empty volume; check whether the claim is "
        "shared (ReadWriteMany) or was cloned. Keep the volume of %s as it is until then.",
        "other_pod", "pod",
    )  # fmt: skip


RULE = Rule(META, find, remembers=Past(sightings=shared))
