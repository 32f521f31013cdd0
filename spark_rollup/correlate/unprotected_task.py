"""Standbys are configured, and yet a task has no healthy second copy anywhere.

Signal: who holds each task at the end of the input, how far each copy is, and which copies carry damage.
Fires when: with standbys configured and at least two live pods, fewer than two healthy copies of a task are held; a
    copy is not healthy if an agent reports open damage on it, if `verify` proved that it does not hold what its
    changelog does (`--verified`), or if it lags far behind. Without standbys, or with one
    pod, once per application as information.
Clears when: a second healthy copy is held.
Stays quiet when: a process started or a copy was let go within session timeout plus probing interval, and ten seconds
    more: clocks of two pods may differ by that. Counted from when every pod had spoken: one that is heard every thirty
    seconds may have taken the copy since.
Blind spots: copies of in-memory stores; copies on pods that have no agent, as while it is being rolled out; a copy
    whose offset no agent can see counts as recent; what `verify` proved counts until it is asked again, also after a
    repair, and what only two copies show that differ from each other counts for neither.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from agent.contract.events import Affected, Confidence, Level, Severity, Status
from agent.contract.mechanisms import Mechanism
from agent.contract.units import Twin
from spark_rollup.columns import TASK, chain, clock, entry, numbered
from spark_rollup.judging.base import Facts, Rule, RuleMeta, finding
from spark_rollup.judging.copies import copies, horizons
from spark_rollup.judging.fleet import with_unwatched
from spark_rollup.judging.past import Past, last

META = RuleMeta(
    id="unprotected-task",
    title="A task has no healthy second copy",
    level=Level.EXPOSURE,
    severity=Severity.WARNING,
    mechanism=Mechanism.TOO_FEW_COPIES,
    joined_by=(("application_id",), ("application_id", "task_id")),
    needs=("num_standby_replicas", "session_timeout_ms", "probing_rebalance_interval_ms"),
    twin=Twin("N6, a rolling restart with standbys", "benign-rolling-standby-3.9.2"),
)


def find(facts: Facts) -> DataFrame:
    """Count healthy copies where several are promised; name applications that promise none.

    Output columns: `FINDING`.
    """
    applications = horizons(facts)
    return _tasks(applications, facts).unionByName(_applications(applications))


def _tasks(applications: DataFrame, facts: Facts) -> DataFrame:
    promising = applications.where(
        (F.col("num_standby_replicas") >= 1) & (F.col("alive") >= 2) & ~F.col("restless")
    ).select(
        "namespace", "application_id", "num_standby_replicas", "alive", "patience_us", "spoken_us", "leaving"
    )
    counted = (
        copies(facts, until="spoken_us")
        .groupBy(*TASK)
        .agg(
            F.count_if("healthy").alias("healthy"),
            F.min("first_us").alias("first_us"),
            F.max("horizon_us").alias("horizon_us"),
            F.array_sort(
                F.collect_list(F.struct("pod", "healthy", "ill", "offset", "damage", "watched"))
            ).alias("copies"),
        )
        .join(promising, ["namespace", "application_id"], "inner")
        .withColumn("settled_us", F.col("spoken_us") - F.col("patience_us"))
        .where((F.col("healthy") < 2) & (F.col("first_us") < F.col("settled_us")))
        .withColumn("row_key", F.concat_ws("/", *TASK))
        .withColumn("pod", F.lit(None).cast("string"))
    )
    return _findings(with_unwatched(counted, facts, "settled_us", "horizon_us"))


def _findings(tasks: DataFrame) -> DataFrame:
    # a pod that fell silent after the application's last sign has its copy, as far as is known
    silent = F.transform(F.filter("copies", lambda copy: ~copy["watched"]), lambda copy: copy["pod"])
    unwatched_pods = F.array_sort(F.array_union("unwatched_pods", silent))
    doubtful = F.size(unwatched_pods) > 0
    names = F.transform("copies", lambda copy: copy["pod"])
    damage = F.array_sort(F.array_distinct(F.flatten(F.transform("copies", lambda copy: copy["damage"]))))
    listed = F.array_join(
        F.transform("copies", lambda copy: F.concat_ws(" ", copy["pod"], copy["ill"])), ", "
    )
    shown = F.concat(
        F.lit("copies held at "), clock("horizon_us"), F.lit(": "),
        F.when(F.size("copies") > 0, listed).otherwise(F.lit("none")),
    )  # fmt: skip
    unwatched = F.concat(F.lit("not watched all the time: "), F.array_join(unwatched_pods, ", "))
    place = F.concat_ws("/", "application_id", "task_id")
    return finding(
        tasks,
        META,
        {
            # the first hold is the same in every later run: the finding keeps its id while it lasts
            "opened_at_us": F.col("first_us"),
            "severity": F.when(doubtful | F.col("leaving"), F.lit(Severity.INFO.value)).otherwise(
                F.lit(Severity.WARNING.value)
            ),
            "confidence": F.when(doubtful, F.lit(Confidence.UNKNOWN.value))
            .when(F.col("leaving"), F.lit(Confidence.SUSPECTED.value))
            .otherwise(F.lit(Confidence.CONFIRMED.value)),
            "status": F.lit(Status.OPEN.value),
            "affected": F.lit(Affected.NO.value),
            "summary": numbered(
                "healthy copies of %s: %d, with %d live pods and num.standby.replicas = %d",
                "task_id", "healthy", "alive", "num_standby_replicas",
            ),
            "evidence": chain(
                F.array(
                    entry(F.col("horizon_us"), shown, place),
                    entry(F.when(doubtful, F.col("settled_us")), unwatched, F.lit("rollup")),
                )
            ),
            "next_action": _next_action(),
            "pods": names,
            "explains": damage,
        },
    )  # fmt: skip


def _next_action() -> Column:
    good = F.filter("copies", lambda copy: copy["healthy"])
    keep = numbered(
        "Do not restart %s before another pod has caught up with %s: find out why its standby is missing, damaged "
        "or behind.",
        F.try_element_at(good, F.lit(1))["pod"], "task_id",
    )  # fmt: skip
    none = numbered(
        "No copy of %s can be trusted: keep the directories, stop the application if wrong output does harm, and "
        "rebuild one copy from the changelog.",
        "task_id",
    )  # fmt: skip
    return F.coalesce(keep, none)


def _applications(applications: DataFrame) -> DataFrame:
    """Say once per application that tasks have one copy by configuration, or because one pod runs."""
    none = F.col("num_standby_replicas") == 0
    alone = (F.col("num_standby_replicas") >= 1) & (F.col("alive") == 1)
    why = F.when(none, F.lit("num.standby.replicas is 0")).otherwise(
        F.lit("standbys are configured, but one pod runs alone")
    )
    rows = applications.where(none | alone).withColumn("pod", F.lit(None).cast("string"))
    return finding(
        rows,
        META,
        {
            "opened_at_us": F.col("since_us"),
            "severity": F.lit(Severity.INFO.value),
            "confidence": F.lit(Confidence.CONFIRMED.value),
            "affected": F.lit(Affected.NO.value),
            "summary": F.concat(
                F.lit("tasks of "), F.col("application_id"), F.lit(" have one copy each: "), why,
                F.lit("; a lost pod is restored from the changelog"),
            ),
            "evidence": F.array(entry(F.col("since_us"), why, F.lit("configuration"))),
            "next_action": F.lit("Nothing, if restoring on failover is quick enough; else configure a standby."),
            "pods": F.col("pods_seen"),
        },
    )  # fmt: skip


RULE = Rule(META, find, remembers=Past(extremes=(last("offset"),)))
