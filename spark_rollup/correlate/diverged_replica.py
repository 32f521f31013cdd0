"""Two copies of a store at the same changelog offset cannot both be right: their numbers of live entries differ.

Signal: each copy's lower and upper bound of live entries at an offset at which it is known to be.
Fires when: two pods' copies at the same offset have bounds that do not overlap.
Clears when: one of the two copies is recreated.
Stays quiet when: offset and files are not known to be of the same moment (a flush after the checkpoint, an open store
    of 4.3 or later, a task of several stores up to 4.2), or the store is windowed (segments expire one by one).
Blind spots: copies that lost as many entries as they gained; stores that are not closed or checkpointed.
Source: entries and deletions in the table properties of RocksDB's files; the offset from `.checkpoint` or, since 4.3
    (KIP-1035), from the store.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import Window as W
from pyspark.sql import functions as F

from agent.contract.events import Affected, Confidence, Level, Severity
from agent.contract.mechanisms import Mechanism
from agent.contract.units import Twin
from spark_rollup.columns import TASK, chain, entry, numbered, of_store
from spark_rollup.facts.sizes import settled_copies
from spark_rollup.judging.alone import rank
from spark_rollup.judging.base import Facts, Rule, RuleMeta, finding, lowered
from spark_rollup.judging.fleet import attach, prefixed, same_store, same_task, with_gap_flag
from spark_rollup.judging.past import Past, Seen

META = RuleMeta(
    id="diverged-replica",
    title="Two copies at the same offset have different contents",
    level=Level.DAMAGE,
    severity=Severity.CRITICAL,
    mechanism=Mechanism.UNEQUAL_COPIES,
    twin=Twin("N20, a standby that is behind catches up", "benign-rolling-standby-3.9.2"),
)

_EXPLAINS = (
    "resurrected-checkpoint", "carried-checkpoint", "skipped-eos-wipe", "interrupted-wipe", "unrestored-store",
    "false-clean-store", "overlaid-store", "skipped-record", "zombie-state",
)  # fmt: skip
"""Agents' findings that such a difference bears out."""


def find(facts: Facts) -> DataFrame:
    """Compare copies that are at the same offset.

    Output columns: `FINDING`.
    """
    story = pairs(facts.settled)
    for pod, flag in (("less_pod", "less_unwatched"), ("more_pod", "more_unwatched")):
        aside = story.withColumn("pod", F.col(pod))
        story = with_gap_flag(aside, facts.unwatched, "from_us", "to_us", flag)
    return _findings(_with_local(story.withColumn("pod", F.col("less_pod")), facts))


def pairs(copies: DataFrame) -> DataFrame:
    """Find copies whose bounds exclude each other; the furthest offset of each pair of pods counts.

    Output columns: `TASK`, store, offset, less_*, more_* (pod, identity, low, high, first_us), from_us, to_us, row_key.
    Grain: one row per task, store, poorer and richer pod.
    """
    place = (*TASK, "store", "offset")
    copy = F.struct("pod", "identity", "entries_low", "entries_high", "first_us", "last_us")
    together = copies.groupBy(*place).agg(
        F.array_sort(F.collect_list(copy)).alias("copies"), F.count_distinct("pod").alias("pods")
    )

    def poorer_than(more: Column) -> Callable[[Column], Column]:
        return lambda less: (less["entries_high"] < more["entries_low"]) & (less["pod"] != more["pod"])

    both = F.flatten(
        F.transform(
            "copies",
            lambda more: F.transform(
                F.filter("copies", poorer_than(more)),
                lambda less: F.struct(less.alias("less"), more.alias("more")),
            ),
        )
    )
    rows = together.where(F.col("pods") > 1).select(*place, F.explode(both).alias("both"))
    names = ("pod", "identity", "entries_low", "entries_high", "first_us", "last_us")
    flat = rows.select(
        *place,
        *(
            F.col(f"both.{side}.{name}").alias(f"{side}_{name}")
            for side in ("less", "more")
            for name in names
        ),
    )
    rest = [name for name in flat.columns if name not in (*TASK, "store", "less_pod", "more_pod")]
    furthest = F.max(F.struct("offset", *(name for name in rest if name != "offset")))
    return (
        flat.groupBy(*TASK, "store", "less_pod", "more_pod")
        .agg(furthest.alias("last"))
        .select(*TASK, "store", "less_pod", "more_pod", "last.*")
        .withColumn("from_us", F.least("less_first_us", "more_first_us"))
        .withColumn("to_us", F.greatest("less_first_us", "more_first_us"))
        .withColumn("row_key", F.concat_ws("/", *TASK, "store", "less_pod", "more_pod"))
    )


def _with_local(story: DataFrame, facts: Facts) -> DataFrame:
    """Add the agents' findings about either copy that the difference bears out."""
    local = prefixed(facts.said.where(F.col("detector").isin(*_EXPLAINS)), "local_")
    same = (
        same_task("local_")
        & F.col("local_pod").isin(F.col("less_pod"), F.col("more_pod"))
        & same_store("local_")
    )
    found = {
        "confirms": F.array_sort(F.collect_set("local_finding_id")),
        "suspects": F.array_sort(F.collect_set("local_pod")),
        "asked": F.min_by("local_next_action", F.struct(-rank(F.col("local_severity")), "local_finding_id")),
    }
    return attach(story, local, same, found)


def _findings(story: DataFrame) -> DataFrame:
    sure = Confidence.CONFIRMED.value
    confidence = lowered(F.lit(sure), F.col("less_unwatched") | F.col("more_unwatched"))
    severity = F.when(confidence == sure, F.lit(Severity.CRITICAL.value)).otherwise(
        F.lit(Severity.WARNING.value)
    )
    return finding(
        story.withColumn("identity", F.concat_ws("/", "less_identity", "more_identity")),
        META,
        {
            "opened_at_us": F.col("to_us"),
            "severity": severity,
            "confidence": confidence,
            "affected": F.lit(Affected.POSSIBLY.value),
            "summary": F.concat(
                F.col("task_id"), of_store(),
                numbered(
                    ": at offset %d %s holds at most %d live entries, %s at least %d",
                    "offset", "less_pod", "less_entries_high", "more_pod", "more_entries_low",
                ),
            ),
            "evidence": chain(F.array(_entry("less"), _entry("more"))),
            "next_action": _next_action(),
            "pods": F.array("less_pod", "more_pod"),
            "confirms": F.col("confirms"),
        },
    )  # fmt: skip


def _entry(side: str) -> Column:
    return entry(
        F.col(f"{side}_first_us"),
        numbered(
            "%s is at offset %d with %d to %d live entries (identity %s)",
            f"{side}_pod", "offset", f"{side}_entries_low", f"{side}_entries_high",
            F.coalesce(f"{side}_identity", F.lit("unknown")),
        ),
        F.concat_ws("/", "application_id", "task_id", "store"),
    )  # fmt: skip


def _next_action() -> Column:
    known = numbered(
        "The copy of %s on %s is the wrong one, as its own agent reports: do not fail over to it. %s",
        "task_id", F.try_element_at("suspects", F.lit(1)), F.coalesce("asked", F.lit("")),
    )  # fmt: skip
    unknown = numbered(
        "Do not fail over between %s and %s until it is known which one is right: keep copies of both directories of "
        "%s, count the changelog's live keys up to offset %d, remove only the wrong copy while its instance is "
        "stopped, and let it restore.",
        "less_pod", "more_pod", "task_id", "offset",
    )  # fmt: skip
    return F.when(F.size("suspects") == 1, known).otherwise(unknown)


def _compared(seen: Seen) -> DataFrame:
    """Choose the readings that may be compared: each copy's furthest settled one, and those that differ already.

    Output columns: `PLACE`.
    """
    copies = seen.readings.select(*TASK, "store", "pod").distinct()
    several = copies.groupBy(*TASK, "store").agg(F.count("*").alias("pods")).where(F.col("pods") > 1)
    readings = seen.readings.join(several, [*TASK, "store"], "left_semi")
    settled = settled_copies(readings).localCheckpoint()
    furthest = W.partitionBy(*TASK, "store", "pod", "identity").orderBy(F.desc("offset"), F.desc("last_us"))
    last = (
        settled.withColumn("rank", F.row_number().over(furthest))
        .where(F.col("rank") == 1)
        .select(*TASK, "pod", F.explode(F.array("first_us", "last_us")).alias("at_us"))
    )
    differing = pairs(settled)
    sides = [
        differing.select(*TASK, F.col(f"{side}_pod").alias("pod"), F.col(f"{side}_first_us").alias("at_us"))
        for side in ("less", "more")
    ]
    return reduce(DataFrame.unionByName, (last, *sides)).distinct()


RULE = Rule(META, find, remembers=Past(places=_compared))
