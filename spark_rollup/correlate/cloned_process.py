"""One process id alive on two pods at the same time: a volume that was cloned, or is shared.

Signal: the process id that agents read in `kafka-streams-process-metadata`, and when each pod's process lived.
Fires when: the same id is seen on two pods of one application and namespace while a process lives on each, for longer
    than clocks can differ; critical if both hold tasks meanwhile: only a process with stores on disk uses that id.
Clears when: one of the two processes ends, or shows another id.
Stays quiet when: a volume moves (the process that had it before is gone by then), or the copy is idle, of which
    `cloned-volume` reports it.
Blind spots: process ids exist since 2.6.2; a process that holds no task is seen only where the agent sees processes.
Source: StateDirectory.initializeProcessId; StreamsProducer at exactly_once_v2 makes its transactional.id of the process
    id, so two of them fence each other without end: every task is wiped every few seconds, and no work is done
    (seen live on 4.3.1).
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from agent.contract.events import Affected, Confidence, Level, Severity, Status
from agent.contract.mechanisms import Mechanism
from agent.contract.units import Twin
from spark_rollup.columns import chain, clock, entry, numbered
from spark_rollup.judging.base import Facts, Rule, RuleMeta, finding
from spark_rollup.judging.clones import GONE_US, PAIR, alive_together, shared, with_holders, with_local
from spark_rollup.judging.past import Past

META = RuleMeta(
    id="cloned-process",
    title="One process id is alive on two pods",
    level=Level.EXPOSURE,
    severity=Severity.CRITICAL,
    mechanism=Mechanism.SHARED_STATE,
    joined_by=(("application_id", "pods"),),
    consequence=(
        "Under exactly_once_v2 both fence each other without end: every task is wiped again and "
        "again, and no work is done."
    ),
    twin=Twin("a task moved, each pod kept its process id", "benign-move-3.9.2"),
)


def find(facts: Facts) -> DataFrame:
    """Pair pods whose processes live under one id at once.

    Output columns: `FINDING`.
    """
    shown = entry(
        F.col("from_us"),
        numbered("process id %s is alive on %s and on %s", "key", "pod", "other_pod"),
        F.concat(F.col("application_id"), F.lit("/kafka-streams-process-metadata")),
    )
    pairs = (
        alive_together(facts)
        .groupBy(*PAIR)
        .agg(
            F.min("from_us").alias("from_us"),
            F.max("to_us").alias("to_us"),
            F.array_sort(F.collect_set(shown)).alias("entries"),
        )
        .where(F.col("to_us") >= facts.since_us)
        .withColumn("row_key", F.concat_ws("/", *PAIR))
    )
    return _findings(with_local(with_holders(pairs, facts), facts), facts.as_of_us)


def _findings(pairs: DataFrame, as_of_us: int) -> DataFrame:
    over = F.lit(as_of_us) - F.col("to_us") > GONE_US
    working = F.col("working") > 1
    times = numbered("both live from %s to %s", clock("from_us"), clock("to_us"))
    return finding(
        pairs.withColumn("identity", F.col("other_pod")),
        META,
        {
            "opened_at_us": F.col("from_us"),
            "severity": F.when(working, F.lit(Severity.CRITICAL.value)).otherwise(F.lit(Severity.WARNING.value)),
            "confidence": F.when(working, F.lit(Confidence.CONFIRMED.value)).otherwise(
                F.lit(Confidence.SUSPECTED.value)
            ),
            "status": F.when(over, F.lit(Status.RESOLVED.value)).otherwise(F.lit(Status.OPEN.value)),
            "ended_us": F.col("to_us"),
            "affected": F.lit(Affected.YES.value),
            "summary": numbered(
                "%s and %s run %s under one process id: a cloned or shared volume; under exactly_once_v2 they fence "
                "each other without end",
                "pod", "other_pod", "application_id",
            ),
            "evidence": chain(F.array(entry(F.col("to_us"), times, F.col("application_id"))), F.col("entries")),
            "next_action": _next_action(),
            "pods": F.array("pod", "other_pod"),
            "confirms": F.col("confirms"),
        },
    )  # fmt: skip


def _next_action() -> Column:
    return numbered(
        "Stop one of %s and %s, if possible the one that got the copy, and check its volume claim. If its volume is a "
        "copy, delete kafka-streams-process-metadata there, or the whole state directory, before you start it again. "
        "If both use one claim, delete nothing and give it its own volume.",
        "pod", "other_pod",
    )  # fmt: skip


RULE = Rule(META, find, remembers=Past(sightings=shared))
