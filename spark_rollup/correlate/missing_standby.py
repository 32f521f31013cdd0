"""Fewer holders than the standby count promises, for longer than any rebalance explains.

Signal: holder intervals of all pods of the application, and its number of standbys.
Fires when: a task has fewer holders than 1 + min(standbys, pods - 1) for longer than session timeout plus probing
    rebalance interval, on pods that all lived through that time, and either sibling tasks of the subtopology are
    complete or a living pod has the task's directory and does not hold it.
Clears when: the task has all its holders again.
Stays quiet when: pods come or go (they are not counted while they do), or nobody can see the task's locks.
Blind spots: up to 2.5 a stopped process cannot be told from an idle one unless the agent sees processes; then only a
    later sign of life (a cleaner's deletion, other tasks held throughout) makes the verdict loud.
Source: KAFKA-8187 stage 1 (up to 2.2.1).
"""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import Column, DataFrame
from pyspark.sql import Window as W
from pyspark.sql import functions as F

from agent.contract.events import Affected, Change, Confidence, Level, Severity, Status
from spark_rollup.columns import MICROS, TASK, chain, clock, entry, numbered, release
from spark_rollup.correlate.base import Facts, Rule, RuleMeta, finding
from spark_rollup.correlate.fleet import attach, concerns_task, prefixed, same_task
from spark_rollup.gaps import touches

META = RuleMeta(
    id="missing-standby",
    title="A task has fewer copies than its standby count promises",
    level=Level.EXPOSURE,
    severity=Severity.CRITICAL,
    upstream=("KAFKA-8187",),
    docs="rules/missing-standby.md",
    needs=(
        "num_standby_replicas",
        "kafka_streams_version",
        "session_timeout_ms",
        "probing_rebalance_interval_ms",
    ),
)

_APP = ("namespace", "application_id")
_LAST_AFFECTED = (2, 2, 1)
_SETTLE_US = 5 * MICROS
"""A deletion this long after the shortage ended still belongs to it: looks are not instants."""


@dataclass(frozen=True, slots=True)
class _Parts:
    owners: DataFrame
    lives: DataFrame
    applications: DataFrame


def find(facts: Facts) -> DataFrame:
    """Count holders over time and judge every shortage; name the missing setting where it cannot be judged.

    Output columns: `FINDING`.
    """
    pods = facts.lives.groupBy(*_APP).agg(F.count_distinct("pod").alias("pods"))
    applications = facts.settings.join(pods, list(_APP), "inner").select(
        *_APP, "pods", "num_standby_replicas", "release_low", "release_high",
        ((F.col("session_ms") + F.col("probing_ms")) * 1_000).alias("patience_us"),
    )  # fmt: skip
    parts = _Parts(facts.held.where(~F.col("cleaner")), facts.lives, applications)
    shortages = _shortages(parts, facts.as_of_us).localCheckpoint()  # small, and read twice
    judged = _with_siblings(_with_unowned(_settled(shortages, parts), parts, facts), shortages, parts)
    watched = _with_doubt(judged.where(_worth_saying()), facts)
    return _findings(_with_confirmed(watched, facts), facts.as_of_us).unionByName(
        _undecidable(applications, facts)
    )


def _shortages(parts: _Parts, as_of_us: int) -> DataFrame:
    """Find maximal intervals in which a task had fewer holders than the application's size promises.

    A copy still held when its pod was last heard counts as held ever since: not knowing is not missing.

    Output columns: `TASK`, from_us, to_us, most (the most holders at any time inside), and the application's columns.
    """
    promised = F.lit(1) + F.least("num_standby_replicas", F.col("pods") - 1)
    expecting = parts.applications.where(F.col("num_standby_replicas") >= 1).withColumn("promised", promised)
    steps = parts.owners.select(*TASK, F.col("from_us").alias("at_us"), F.lit(1).alias("step")).unionByName(
        parts.owners.where(~F.col("lasting")).select(
            *TASK, F.col("to_us").alias("at_us"), F.lit(-1).alias("step")
        )
    )
    order = W.partitionBy(*TASK).orderBy("at_us")
    counted = (
        steps.groupBy(*TASK, "at_us")
        .agg(F.sum("step").alias("step"))
        .withColumn("holders", F.sum("step").over(order.rowsBetween(W.unboundedPreceding, W.currentRow)))
        .withColumn("to_us", F.coalesce(F.lead("at_us").over(order), F.lit(as_of_us)))
        .join(expecting, list(_APP), "inner")
        .withColumn("low", F.col("holders") < F.col("promised"))
    )
    started = F.when(F.col("low") & ~F.coalesce(F.lag("low").over(order), F.lit(False)), F.lit(1)).otherwise(
        F.lit(0)
    )
    islands = counted.withColumn("started", started).withColumn(
        "island", F.sum("started").over(order.rowsBetween(W.unboundedPreceding, W.currentRow))
    )
    return (
        islands.where(F.col("low"))
        .groupBy(
            *TASK, "island", "pods", "num_standby_replicas", "patience_us", "release_low", "release_high"
        )
        .agg(F.min("at_us").alias("from_us"), F.max("to_us").alias("to_us"), F.max("holders").alias("most"))
        .drop("island")
    )


def _settled(shortages: DataFrame, parts: _Parts) -> DataFrame:
    """Keep shortages that outlast a rebalance on pods which all lived through it.

    The clock starts when the last process of the application started. Processes that end meanwhile do not count.

    Output columns: those of `_shortages`, row_key, since_us, settled_us (= since_us + patience), alive, expected.
    """
    keyed = shortages.withColumn("row_key", F.concat_ws("/", *TASK, F.col("from_us").cast("string")))
    earlier = _same_application("life_") & (F.col("life_from_us") < F.col("to_us"))
    lives = F.collect_set(F.struct("life_pod", "life_from_us", "life_to_us"))
    grown = attach(keyed, prefixed(parts.lives, "life_"), earlier, {"lives": lives})
    last_start = F.array_max(F.transform("lives", lambda life: life["life_from_us"]))
    through = F.filter("lives", lambda life: life["life_to_us"] >= F.col("settled_us"))
    alive = F.size(F.array_distinct(F.transform(through, lambda life: life["life_pod"])))
    return (
        grown.withColumn("since_us", F.greatest("from_us", last_start))
        .withColumn("settled_us", F.col("since_us") + F.col("patience_us"))
        .withColumn("alive", alive.cast("bigint"))
        .withColumn("expected", F.lit(1) + F.least("num_standby_replicas", F.col("alive") - 1))
        .where(
            (F.col("settled_us") < F.col("to_us"))
            & (F.col("most") < F.col("expected"))
            & (F.col("expected") >= 2)
        )
        .drop("lives")
    )


def _with_unowned(shortages: DataFrame, parts: _Parts, facts: Facts) -> DataFrame:
    """Add the pod whose directory nobody holds though its process lives (`unowned_*`; null = none)."""
    gone = facts.marks.where(F.col("change") == Change.TASK_DELETED.value).select(
        *TASK, "pod", "at_us", "shape"
    )
    left = parts.owners.where(~F.col("lasting")).withColumn(
        "row_key", F.concat_ws("/", *TASK, "pod", F.col("from_us").cast("string"))
    )
    after = same_task("gone_") & (F.col("gone_pod") == F.col("pod")) & (F.col("gone_at_us") >= F.col("to_us"))
    deletion = F.min(F.struct("gone_at_us", "gone_shape"))
    left = attach(left, prefixed(gone, "gone_"), after, {"deletion": deletion})
    busy = prefixed(parts.owners.select(*_APP, "pod", "from_us", "to_us"), "busy_")
    spans = F.collect_set(F.struct("busy_from_us", "busy_to_us"))
    left = attach(
        left, busy, _same_application("busy_") & (F.col("busy_pod") == F.col("pod")), {"busy": spans}
    )
    released = F.col("left_to_us").between(
        F.col("since_us") - F.col("patience_us"), F.col("since_us") + MICROS
    )
    deleted_us = F.col("left_deletion.gone_at_us")
    stayed = deleted_us.isNull() | (deleted_us >= F.col("settled_us"))
    cleaned = (F.col("left_deletion.gone_shape") == "cleaner-walk") & (
        deleted_us <= F.col("to_us") + _SETTLE_US
    )
    working = F.exists(
        "left_busy",
        lambda span: (
            (span["busy_from_us"] <= F.col("since_us")) & (span["busy_to_us"] >= F.col("settled_us"))
        ),
    )
    same = same_task("left_") & released & stayed & (working | F.coalesce(cleaned, F.lit(False)))
    unowned = F.max(
        F.struct(
            F.col("left_to_us").alias("unowned_since_us"),
            F.col("left_pod").alias("unowned_pod"),
            deleted_us.alias("unowned_gone_us"),
        )
    )
    return attach(shortages, prefixed(left, "left_"), same, {"unowned": unowned}).select(
        *shortages.columns, "unowned.*"
    )


def _with_siblings(shortages: DataFrame, all_shortages: DataFrame, parts: _Parts) -> DataFrame:
    """Add how many sibling tasks of the same subtopology were complete through the waiting time."""
    visible = parts.owners.select(*TASK).distinct().withColumn("subtopology", _subtopology())
    short = all_shortages.select(*TASK, "from_us", "to_us").withColumn("subtopology", _subtopology())
    wide = shortages.withColumn("subtopology", _subtopology())
    sibling = _same_application("all_") & (F.col("all_subtopology") == F.col("subtopology"))
    wide = attach(wide, prefixed(visible, "all_"), sibling, {"siblings": F.count_distinct("all_task_id")})
    overlap = (F.col("short_from_us") <= F.col("settled_us")) & (F.col("short_to_us") >= F.col("since_us"))
    same = _same_application("short_") & (F.col("short_subtopology") == F.col("subtopology")) & overlap
    wide = attach(wide, prefixed(short, "short_"), same, {"incomplete": F.count_distinct("short_task_id")})
    return wide.withColumn("complete", F.col("siblings") - F.col("incomplete"))


def _subtopology() -> Column:
    return F.regexp_replace("task_id", r"_\d+$", "")


def _same_application(prefix: str) -> Column:
    return (F.col(f"{prefix}namespace") == F.col("namespace")) & (
        F.col(f"{prefix}application_id") == F.col("application_id")
    )


def _worth_saying() -> Column:
    old = _affected() != Affected.NO.value
    return (F.col("complete") > 0) | (old & F.col("unowned_pod").isNotNull())


def _affected() -> Column:
    last = release(*_LAST_AFFECTED)
    return (
        F.when(F.col("release_high") <= last, F.lit(Affected.YES.value))
        .when(F.col("release_low") > last, F.lit(Affected.NO.value))
        .otherwise(F.lit(Affected.POSSIBLY.value))
    )


def _with_doubt(shortages: DataFrame, facts: Facts) -> DataFrame:
    """Add `unwatched_pods`: pods of the application that were not watched through all of the waiting time."""
    pods = facts.lives.groupBy(*_APP).agg(F.collect_set("pod").alias("pod_names"))
    known = shortages.join(pods, list(_APP), "inner")
    same = (
        (F.col("gap_namespace") == F.col("namespace"))
        & F.array_contains("pod_names", F.col("gap_pod"))
        & concerns_task()
        & touches(F.col("since_us"), F.col("settled_us"))
    )
    return attach(
        known, prefixed(facts.gaps, "gap_"), same, {"unwatched_pods": F.array_sort(F.collect_set("gap_pod"))}
    )


def _with_confirmed(shortages: DataFrame, facts: Facts) -> DataFrame:
    """Add the ids of agents' `unowned-task` suspicions about the same task and pod."""
    suspicions = prefixed(facts.local.where(F.col("detector") == "unowned-task"), "local_")
    same = same_task("local_") & (F.col("local_pod") == F.col("unowned_pod"))
    return attach(shortages, suspicions, same, {"confirms": F.array_sort(F.collect_set("local_finding_id"))})


def _findings(story: DataFrame, as_of_us: int) -> DataFrame:
    loud = F.col("unowned_pod").isNotNull() & (_affected() != Affected.NO.value)
    doubtful = F.size("unwatched_pods") > 0
    over = F.col("to_us") < as_of_us
    certain = loud & (_affected() == Affected.YES.value) & ~doubtful
    confidence = (
        F.when(doubtful, F.lit(Confidence.UNKNOWN.value))
        .when(loud & ~certain, F.lit(Confidence.SUSPECTED.value))
        .otherwise(F.lit(Confidence.CONFIRMED.value))
    )
    severity = (
        F.when(certain, F.lit(Severity.CRITICAL.value))
        .when(loud, F.lit(Severity.WARNING.value))
        .otherwise(F.lit(Severity.INFO.value))
    )
    pod = F.when(loud, F.col("unowned_pod"))
    place = F.concat_ws("/", "application_id", "task_id")
    evidence = chain(
        F.array(
            entry(
                F.col("since_us"),
                numbered(
                    "%s has %d of %d expected holders from %s to %s; %d processes lived through it",
                    "task_id", "most", "expected", clock("since_us"), clock("to_us"), "alive",
                ),
                place,
            ),
            entry(
                F.when(loud, F.col("unowned_since_us")),
                numbered("%s let go of the task, its directory stayed, and no other pod took it", "unowned_pod"),
                place,
            ),
            entry(
                F.when(loud, F.col("unowned_gone_us")),
                numbered("the cleaner of %s deleted the unowned directory: its process was alive", "unowned_pod"),
                place,
            ),
            entry(
                F.when(doubtful, F.col("since_us")),
                F.concat(F.lit("not watched all the time: "), F.array_join("unwatched_pods", ", ")),
                F.lit("rollup"),
            ),
        )
    )  # fmt: skip
    where = F.when(
        loud,
        F.concat(F.lit("; the directory on "), F.col("unowned_pod"), F.lit(" is there and nobody holds it")),
    ).otherwise(F.lit(""))
    summary = F.concat(
        numbered(
            "%s had %d of %d expected copies for %.0f s", "task_id", "most", "expected",
            (F.col("to_us") - F.col("since_us")) / F.lit(float(MICROS)),
        ),
        where,
    )  # fmt: skip
    loud_action = numbered(
        "Restart the instance on %s before its cleaner or a failover decides: the standby is assigned but never "
        "started. Upgrade to 2.2.2 or later. Do not rely on that pod's copy of %s.", "unowned_pod", "task_id",
    )  # fmt: skip
    over_action = numbered(
        "The shortage is over. Find out how %s got its copy of %s back before you trust it: a copy that was deleted "
        "and made anew under the old offset looks complete.", "unowned_pod", "task_id",
    )  # fmt: skip
    quiet_action = F.lit("Nothing urgent: look whether a warm-up or a long restoration explains it.")
    unknown_release = F.col("release_high").isNull()
    return finding(
        story.withColumn("pod", pod),
        META,
        {
            "opened_at_us": F.col("since_us"),
            "severity": severity,
            "confidence": confidence,
            "status": F.when(over, F.lit(Status.RESOLVED.value)).otherwise(F.lit(Status.OPEN.value)),
            "affected": _affected(),
            "missing_facts": F.when(unknown_release, F.array(F.lit("kafka_streams_version"))).otherwise(
                F.array().cast("array<string>")
            ),
            "summary": summary,
            "evidence": evidence,
            "next_action": F.when(loud & over, over_action).when(loud, loud_action).otherwise(quiet_action),
            "pods": F.filter(F.array(pod), lambda name: name.isNotNull()),
            "confirms": F.col("confirms"),
        },
    )


def _undecidable(applications: DataFrame, facts: Facts) -> DataFrame:
    """Say once per application of several pods that the number of standbys is not known."""
    since = facts.lives.groupBy(*_APP).agg(
        F.min("from_us").alias("since_us"), F.array_sort(F.collect_set("pod")).alias("pods_seen")
    )
    rows = applications.where(F.col("num_standby_replicas").isNull() & (F.col("pods") > 1)).join(
        since, list(_APP), "inner"
    )
    return finding(
        rows.withColumn("pod", F.lit(None).cast("string")),
        META,
        {
            "opened_at_us": F.col("since_us"),
            "severity": F.lit(Severity.INFO.value),
            "confidence": F.lit(Confidence.UNKNOWN.value),
            "missing_facts": F.array(F.lit("num_standby_replicas")),
            "summary": F.concat(
                F.lit("how many copies each task of "), F.col("application_id"),
                F.lit(" should have is not known, so missing ones cannot be told"),
            ),
            "evidence": F.array(
                entry(F.col("since_us"), F.lit("no agent reported num_standby_replicas"), F.lit("configuration"))
            ),
            "next_action": F.lit("Give the agents, or this command with --set, num_standby_replicas."),
            "pods": F.col("pods_seen"),
        },
    )  # fmt: skip


RULE = Rule(META, find)
