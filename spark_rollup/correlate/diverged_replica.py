"""Two copies of a store at the same changelog offset cannot both be right: their numbers of live entries differ.

Signal: each copy's lower and upper bound of live entries at an offset at which it is known to be.
Fires when: two pods' copies at the same offset have bounds that do not overlap. Confirmed if a confirmed finding of an
    agent about one of them bears it out; suspected if both were let go in order ever since they were made.
Clears when: one of the two copies is recreated.
Stays quiet when: offset and files are not known to be of the same moment (a flush after the checkpoint, a store of 4.3
    or later that was not seen closing, a task of several stores that runs, up to 4.2), or the store follows
    something else than its own changelog (windowed, versioned, global, a table on its source topic).
Blind spots: copies that lost as many entries as they gained, or so few that the bounds overlap; stores made before an
    agent watched them, or once killed and not wiped.
Source: entries and deletions in the table properties of RocksDB's files; the offset from `.checkpoint` or, since 4.3
    (KIP-1035), from the store.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import Window as W
from pyspark.sql import functions as F

from agent.contract.events import Affected, Change, Confidence, Level, Severity, Status
from agent.contract.mechanisms import Mechanism
from agent.contract.units import Twin
from spark_rollup.columns import TASK, chain, entry, numbered, of_store
from spark_rollup.facts.sizes import settled_copies
from spark_rollup.judging.alone import rank
from spark_rollup.judging.base import Facts, Rule, RuleMeta, finding, lowered
from spark_rollup.judging.fleet import attach, prefixed, same_store, same_task, with_gap_flag
from spark_rollup.judging.past import Past, Seen
from spark_rollup.spark.materialize import materialize

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

_ANCHORS = (Change.CHECKPOINT_WRITTEN.value, Change.STORE_CLOSED.value)
"""What fixes a copy's offset and content."""

_COPY = (
    "pod", "identity", "entries_low", "entries_high", "first_us", "last_us", "anchor_us", "comparable",
    "seen_from_us", "seen_to_us",
)  # fmt: skip
"""What is known of each copy of a pair."""


def find(facts: Facts) -> DataFrame:
    """Compare copies that are at the same offset.

    Output columns: `FINDING`.
    """
    story = pairs(facts.settled)
    for pod, flag in (("less_pod", "less_unwatched"), ("more_pod", "more_unwatched")):
        aside = story.withColumn("pod", F.col(pod))
        story = with_gap_flag(aside, facts.unwatched, "from_us", "to_us", flag)
    borne_out = _with_local(story.withColumn("pod", F.col("less_pod")), facts)
    return _findings(borne_out.where(F.col("comparable") | F.col("is_sure")))


def pairs(copies: DataFrame) -> DataFrame:
    """Find copies whose bounds exclude each other; the furthest offset of each pair of pods counts.

    Where both copies of a pair are comparable at some offset, the furthest of these counts.

    Output columns: `TASK`, store, offset, comparable, less_* and more_* (`_COPY`), from_us, to_us, row_key.
    Grain: one row per task, store, poorer and richer pod.
    """
    place = (*TASK, "store", "offset")
    copy = F.struct(*_COPY)
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
    flat = rows.select(
        *place,
        *(
            F.col(f"both.{side}.{name}").alias(f"{side}_{name}")
            for side in ("less", "more")
            for name in _COPY
        ),
    ).withColumn("comparable", F.col("less_comparable") & F.col("more_comparable"))
    rest = [name for name in flat.columns if name not in (*TASK, "store", "less_pod", "more_pod")]
    first = ("comparable", "offset")
    furthest = F.max(F.struct(*first, *(name for name in rest if name not in first)))
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
    said = facts.said.where(F.col("detector").isin(*_EXPLAINS) & (F.col("severity") != Severity.INFO.value))
    local = prefixed(said.where(F.col("status") == Status.OPEN.value), "local_")
    of_copy = F.when(F.col("local_pod") == F.col("less_pod"), F.col("less_identity")).when(
        F.col("local_pod") == F.col("more_pod"), F.col("more_identity")
    )
    same = (
        same_task("local_")
        & F.col("local_pod").isin(F.col("less_pod"), F.col("more_pod"))
        & same_store("local_")
        & F.coalesce(F.col("local_identity") == of_copy, F.lit(True))
    )
    found = {
        "confirms": F.array_sort(F.collect_set("local_finding_id")),
        "is_sure": F.coalesce(F.max(F.col("local_confidence") == Confidence.CONFIRMED.value), F.lit(False)),
        "suspects": F.array_sort(F.collect_set("local_pod")),
        "asked": F.min_by("local_next_action", F.struct(-rank(F.col("local_severity")), "local_finding_id")),
    }
    return attach(story, local, same, found)


def _findings(story: DataFrame) -> DataFrame:
    sure = Confidence.CONFIRMED.value
    # Alone it is a suspicion: a task whose sends failed may close as if in order, and a topic may be cut by time.
    is_doubtful = F.col("less_unwatched") | F.col("more_unwatched") | ~_coexist() | ~F.col("is_sure")
    confidence = lowered(F.lit(sure), is_doubtful)
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
            "evidence": chain(F.array(_entry("less"), _entry("more"), _reason(), _apart())),
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


def _coexist() -> Column:
    """Return whether the two copies were there at one time; without, one may be of a changelog that is no more."""
    overlap = (F.col("less_seen_from_us") <= F.col("more_seen_to_us")) & (
        F.col("more_seen_from_us") <= F.col("less_seen_to_us")
    )
    return F.coalesce(overlap, F.lit(False))


def _reason() -> Column:
    clean = (
        "both stores were let go as in order ever since they were made: the poorer copy missed records, or the "
        "changelog lost them and only the fuller copy still has them, or it was cut, or a close came while sends failed"
    )
    other = (
        "it is not known that both stores were let go in order ever since they were made: one may hold what a killed "
        "process had flushed"
    )
    what = F.when(F.col("comparable"), F.lit(clean)).otherwise(F.lit(other))
    return entry(F.col("to_us"), what, F.lit("rollup"))


def _apart() -> Column:
    what = F.when(
        ~_coexist(),
        F.lit(
            "the two copies were never seen at one time: after a reset of the application both may be right"
        ),
    )
    return entry(F.col("to_us"), what, F.lit("rollup"))


def _next_action() -> Column:
    """Copies first: where the changelog lost records, the fuller copy is the last to have them, whichever was named."""
    keep = numbered(
        "Keep copies of the directory of %s from both %s and %s before anything else, and remove nothing yet: if the "
        "changelog lost records, only the fuller copy still has them. ",
        "task_id", "less_pod", "more_pod",
    )  # fmt: skip
    known = numbered(
        "The agent on %s reports its own copy as the wrong one: do not fail over to it. After the copies: %s",
        F.try_element_at("suspects", F.lit(1)), F.coalesce("asked", F.lit("")),
    )  # fmt: skip
    unknown = F.lit(
        "Do not fail over between them. Compare each copy with the changelog (statewarden verify --explain), and "
        "remove only one that the changelog contradicts for another reason than an aborted transaction."
    )
    return F.concat(keep, F.when(F.size("suspects") == 1, known).otherwise(unknown))


def _compared(seen: Seen) -> DataFrame:
    """Choose the readings that may be compared: each copy's furthest settled one, and those that differ already.

    Output columns: `PLACE`.
    """
    copies = seen.readings.select(*TASK, "store", "pod").distinct()
    several = copies.groupBy(*TASK, "store").agg(F.count("*").alias("pods")).where(F.col("pods") > 1)
    readings = seen.readings.join(several, [*TASK, "store"], "left_semi")
    settled = materialize(settled_copies(readings))
    furthest = W.partitionBy(*TASK, "store", "pod", "identity", "comparable").orderBy(
        F.desc("offset"), F.desc("last_us")
    )
    last = _times(settled.withColumn("rank", F.row_number().over(furthest)).where(F.col("rank") == 1), "")
    of_pairs = (pairs(settled), pairs(settled.where("comparable")))
    sides = [
        _times(differing.withColumn("pod", F.col(f"{side}_pod")), f"{side}_")
        for differing in of_pairs
        for side in ("less", "more")
    ]
    return reduce(DataFrame.unionByName, (last, *sides)).distinct()


def _times(copies: DataFrame, prefix: str) -> DataFrame:
    """List the readings that show a copy: when it was at the offset, what fixes that, and how long it was there.

    Output columns: `PLACE`.
    """
    names = ("first_us", "last_us", "anchor_us", "seen_from_us", "seen_to_us")
    times = F.array(*(F.col(prefix + name) for name in names))
    return copies.select(*TASK, "pod", F.explode(times).alias("at_us")).where(F.col("at_us").isNotNull())


RULE = Rule(META, find, remembers=Past(places=_compared, steps=_ANCHORS))
