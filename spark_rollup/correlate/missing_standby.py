"""Fewer holders than the standby count promises, for longer than any rebalance explains.

Signal: holder intervals of all pods of the application, and its number of standbys.
Fires when: a task has fewer holders than 1 + min(standbys, pods - 1) for longer than session timeout plus probing
    rebalance interval, on pods that all lived through that time, and either sibling tasks of the subtopology are
    complete or a living pod has the task's directory and does not hold it.
Clears when: the task has all its holders again.
Stays quiet when: pods come or go (they are not counted while they do), or no agent can see the task's locks.
Blind spots: up to 2.5 a stopped process cannot be distinguished from an idle one unless the agent sees processes; then
    only a later sign of life (a cleaner's deletion, other tasks held throughout) makes it a warning or more. Holders
    on pods that have no agent, as while it is being rolled out.
Source: KAFKA-8187 stage 1 (up to 2.2.1).
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from agent.contract.events import Affected, Confidence, Level, Severity, Status
from agent.contract.mechanisms import Mechanism
from agent.contract.units import Twin
from spark_rollup.columns import chain, clock, entry, no_texts, numbered, release, seconds
from spark_rollup.judging.base import Facts, Rule, RuleMeta, finding
from spark_rollup.judging.fleet import SKEW_US, attach, prefixed, same_task, suspects_of
from spark_rollup.judging.shortages import (
    APPLICATION,
    Parts,
    find_shortages,
    settled,
    with_doubt,
    with_siblings,
    with_unowned,
)
from spark_rollup.spark.materialize import materialize
from spark_rollup.spark.single_partition import single_partition

META = RuleMeta(
    id="missing-standby",
    title="A task has fewer copies than its standby count promises",
    level=Level.EXPOSURE,
    severity=Severity.CRITICAL,
    mechanism=Mechanism.TOO_FEW_COPIES,
    joined_by=(("application_id", "pod"), ("application_id", "task_id")),
    upstream=("KAFKA-8187",),
    needs=(
        "num_standby_replicas",
        "kafka_streams_version",
        "session_timeout_ms",
        "probing_rebalance_interval_ms",
    ),
    consequence=("If the last copy goes, the task restores from its changelog; up to 2.2.1 it loses data."),
    twin=Twin("N6, a rolling restart with standbys", "benign-rolling-standby-3.9.2"),
)

_LAST_AFFECTED = (2, 2, 1)


def find(facts: Facts) -> DataFrame:
    """Count holders over time and judge every shortage; name the missing setting where it cannot be judged.

    Output columns: `FINDING`.
    """
    pods = facts.lives.groupBy(*APPLICATION).agg(F.count_distinct("pod").alias("pods"))
    applications = single_partition(facts.settings.join(pods, list(APPLICATION), "inner")).select(
        *APPLICATION, "pods", "num_standby_replicas", "release_low", "release_high",
        ((F.col("session_ms") + F.col("probing_ms")) * 1_000).alias("patience_us"),
    )  # fmt: skip
    parts = Parts(facts.held.where(~F.col("cleaner")), facts.lives, applications)
    shortages = materialize(single_partition(find_shortages(parts, facts.as_of_us)))  # small, and read twice
    judged = with_siblings(with_unowned(settled(shortages, parts), parts, facts), shortages, parts)
    recent = judged.where(F.col("to_us") >= facts.since_us)
    watched = with_doubt(recent.where(_worth_saying()), facts)
    return (
        _findings(_with_confirmed(watched, facts), facts.as_of_us)
        .unionByName(_refuted(applications, facts))
        .unionByName(_undecidable(applications, facts))
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


def _with_confirmed(shortages: DataFrame, facts: Facts) -> DataFrame:
    """Add the ids of agents' `unowned-task` suspicions about the same task and pod."""
    suspicions = prefixed(facts.said.where(F.col("detector") == "unowned-task"), "local_")
    same = same_task("local_") & (F.col("local_pod") == F.col("unowned_pod"))
    return attach(shortages, suspicions, same, {"confirms": F.array_sort(F.collect_set("local_finding_id"))})


def _findings(story: DataFrame, as_of_us: int) -> DataFrame:
    over = F.col("to_us") < as_of_us
    judged = _judged(story).withColumn("over", over)
    unknown_release = F.col("release_high").isNull()
    return finding(
        judged.withColumn("pod", F.when(F.col("is_signature"), F.col("unowned_pod"))),
        META,
        {
            "opened_at_us": F.col("since_us"),
            "severity": F.col("severity"),
            "confidence": F.col("confidence"),
            "status": F.when(over, F.lit(Status.RESOLVED.value)).otherwise(F.lit(Status.OPEN.value)),
            "ended_us": F.col("to_us"),
            "affected": _affected(),
            "missing_facts": F.when(unknown_release, F.array(F.lit("kafka_streams_version"))).otherwise(
                no_texts()
            ),
            "summary": _summary(),
            "evidence": _evidence(),
            "next_action": _next_action(),
            "pods": F.filter(F.array("pod"), lambda name: name.isNotNull()),
            "confirms": F.col("confirms"),
        },
    )


def _judged(story: DataFrame) -> DataFrame:
    """Add `is_signature` (the bug's own signature), severity and confidence."""
    signature = F.col("unowned_pod").isNotNull() & (_affected() != Affected.NO.value)
    doubtful = F.size("unwatched_pods") > 0
    # begin and end are reported by two pods: their clocks may make this much of it
    brief = F.col("to_us") - F.col("settled_us") <= SKEW_US
    certain = signature & (_affected() == Affected.YES.value) & ~doubtful & ~brief
    confidence = (
        F.when(doubtful, F.lit(Confidence.UNKNOWN.value))
        .when(brief | (signature & ~certain), F.lit(Confidence.SUSPECTED.value))
        .otherwise(F.lit(Confidence.CONFIRMED.value))
    )
    severity = (
        F.when(certain, F.lit(Severity.CRITICAL.value))
        .when(signature, F.lit(Severity.WARNING.value))
        .otherwise(F.lit(Severity.INFO.value))
    )
    return story.withColumns({"is_signature": signature, "severity": severity, "confidence": confidence})


def _summary() -> Column:
    idle = F.when(F.col("unowned_gone_us").isNull(), F.lit(" is there and no process holds it")).otherwise(
        F.lit(" was unowned until its cleaner deleted it")
    )
    where = F.when(F.col("is_signature"), F.concat(F.lit("; the directory on "), F.col("unowned_pod"), idle))
    lasted_s = seconds(F.col("since_us"), F.col("until_us"))
    return F.concat(
        numbered("%s had %d of %d expected copies for %.0f s", "task_id", "most", "expected", lasted_s),
        F.coalesce(where, F.lit("")),
    )


def _evidence() -> Column:
    place = F.concat_ws("/", "application_id", "task_id")
    shortage = numbered(
        "%s has %d of %d expected holders from %s to %s; %d processes lived through it",
        "task_id", "most", "expected", clock("since_us"), clock("until_us"), "alive",
    )  # fmt: skip
    left = numbered("%s let go of the task, its directory stayed, and no other pod took it", "unowned_pod")
    gone = numbered("the cleaner of %s deleted the unowned directory: its process was alive", "unowned_pod")
    unwatched = F.concat(F.lit("not watched all the time: "), F.array_join("unwatched_pods", ", "))
    return chain(
        F.array(
            entry(F.col("since_us"), shortage, place),
            entry(F.when(F.col("is_signature"), F.col("unowned_since_us")), left, place),
            entry(F.when(F.col("is_signature"), F.col("unowned_gone_us")), gone, place),
            entry(F.when(F.size("unwatched_pods") > 0, F.col("since_us")), unwatched, F.lit("rollup")),
        )
    )


def _next_action() -> Column:
    idle = "Restart the instance on %s: its standby of %s is assigned but was never started. "
    there = numbered(
        idle + "Do it before the cleaner deletes its directory or a failover needs it.",
        "unowned_pod",
        "task_id",
    )
    gone = numbered(idle + "Until then the task has no second copy.", "unowned_pod", "task_id")
    restart = F.concat(
        F.when(F.col("unowned_gone_us").isNull(), there).otherwise(gone), F.lit(" Upgrade to 2.2.2 or later.")
    )
    find_out = numbered(
        "The shortage is over. Find out how %s got its copy of %s back before you trust it: a copy that was deleted "
        "and recreated under the old offset seems complete.",
        "unowned_pod", "task_id",
    )  # fmt: skip
    wait = F.lit("Nothing urgent: check whether a warm-up or a long restoration explains it.")
    return (
        F.when(F.col("is_signature") & F.col("over"), find_out)
        .when(F.col("is_signature"), restart)
        .otherwise(wait)
    )


def _refuted(applications: DataFrame, facts: Facts) -> DataFrame:
    """Close agents' `unowned-task` suspicions where another pod took the task: that was an ordinary move."""
    suspects = suspects_of(facts.local, "unowned-task").join(
        applications.select(*APPLICATION, "patience_us"), list(APPLICATION), "inner"
    )
    taker = prefixed(facts.held.where(~F.col("cleaner")), "taker_")
    # it took the task about when the suspect let go; who held it long before is no taker
    meanwhile = F.col("taker_from_us").between(
        F.col("opened_at_us") - F.col("patience_us"), F.col("opened_at_us") + F.col("patience_us")
    )
    same = same_task("taker_") & (F.col("taker_pod") != F.col("pod")) & meanwhile
    first = F.min(F.struct(F.col("taker_from_us").alias("taken_us"), F.col("taker_pod").alias("taker")))
    taken = attach(suspects, taker, same, {"taken": first}).where(F.col("taken.taken_us").isNotNull())
    moved = numbered("%s took %s at %s", "taken.taker", "task_id", clock("taken.taken_us"))
    return finding(
        taken,
        META,
        {
            "opened_at_us": F.col("opened_at_us"),
            "severity": F.lit(Severity.INFO.value),
            "confidence": F.lit(Confidence.CONFIRMED.value),
            "status": F.lit(Status.RESOLVED.value),
            "ended_us": F.col("taken.taken_us"),
            "affected": F.lit(Affected.NO.value),
            "summary": F.concat(
                F.lit("not missing: "), moved, F.lit(", so "), F.col("pod"), F.lit(" merely lost it")
            ),
            "evidence": chain(
                F.array(entry(F.col("taken.taken_us"), moved, F.concat_ws("/", "application_id", "task_id"))),
                F.coalesce("evidence", F.array()),
            ),
            "next_action": F.lit("Nothing: an ordinary move."),
            "pods": F.array("pod", "taken.taker"),
            "refutes": F.array("finding_id"),
        },
    )


def _undecidable(applications: DataFrame, facts: Facts) -> DataFrame:
    """Say once per application of several pods that the number of standbys is not known."""
    since = facts.lives.groupBy(*APPLICATION).agg(
        F.min("from_us").alias("since_us"), F.array_sort(F.collect_set("pod")).alias("pods_seen")
    )
    rows = applications.where(F.col("num_standby_replicas").isNull() & (F.col("pods") > 1)).join(
        since, list(APPLICATION), "inner"
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
                F.lit(" should have is not known, so missing ones cannot be found"),
            ),
            "evidence": F.array(
                entry(F.col("since_us"), F.lit("no agent reported num_standby_replicas"), F.lit("configuration"))
            ),
            "next_action": F.lit("Set num_standby_replicas for the agents, or for this command with --set."),
            "pods": F.col("pods_seen"),
        },
    )  # fmt: skip


RULE = Rule(META, find)
