"""Two pods hold one task, and the files of one are stalled while the other works: a zombie that was expelled.

Signal: holder intervals of a task on two pods that overlap, what moved in their files, and how far each had come.
Fires when: more pods than owner and standbys hold a task for longer than the session timeout, the files of one were
    stalled all that time, and the other wrote beyond what the first one has.
Clears when: one of the two lets go; then it is left out as soon as that was before the look-back.
Stays quiet when: the other one is a warm-up or a standby (it never gets beyond the first, or not beyond the records
    that an active may leave out of its checkpoint), or both move.
Blind spots: from 2.6 on, a zombie is not distinguished from an idle active with a warm-up before the new owner is
    10,000 records ahead; an active of exactly-once has no offset while it runs, so puts are compared instead.
Source: consumer group membership (session.timeout.ms), warm-ups since 2.6 (KIP-441).
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from agent.contract.events import Affected, Change, Confidence, Level, Severity, Status
from agent.contract.units import Twin
from spark_rollup.columns import MICROS, TASK, chain, clock, entry, no_texts, numbered, release, seconds
from spark_rollup.judging.base import Facts, Rule, RuleMeta, finding
from spark_rollup.judging.fleet import SKEW_US, attach, prefixed, same_task, with_gap_flag
from spark_rollup.judging.growth import course, growth
from spark_rollup.judging.past import PLACE, Past, Seen, most, neighbours

META = RuleMeta(
    id="split-owner",
    title="Two pods hold one task, and one of them is stalled",
    level=Level.EXPOSURE,
    severity=Severity.WARNING,
    joined_by=(("application_id", "pod"),),
    needs=("num_standby_replicas", "session_timeout_ms", "processing_guarantee"),
    twin=Twin("N14, a frozen member comes back and finds itself fenced", "benign-eos-fencing-4.1.2"),
)

SETTLE_US = 2 * MICROS
"""What moves this shortly after the overlap began belongs to the take-over (microseconds)."""

UNSAVED_RECORDS = 10_000
"""An active may be this many records past its checkpoint (OFFSET_DELTA_THRESHOLD_FOR_CHECKPOINT, since 2.6)."""

FIRST_WITH_WARM_UPS = (2, 6)

FIRST_TO_COMMIT_BEFORE_IT_CLAIMS = (2, 6)
"""Before it, an owner that lost its task writes a checkpoint behind the next one's records, then its commit fails."""

MOVES = (
    Change.STORE_FLUSHED.value,
    Change.CHECKPOINT_WRITTEN.value,
    Change.STORE_OPENED.value,
    Change.STORE_CREATED.value,
    Change.STORE_DELETED.value,
)
"""Changes of a copy's files: a frozen holder makes none."""


def find(facts: Facts) -> DataFrame:
    """Find pairs of holders of which one is stalled.

    Output columns: `FINDING`.
    """
    story = _ahead(_still(overlaps(facts.held, facts.settings), facts), facts)
    flagged = with_gap_flag(story, facts.unwatched, "from_us", "still_to_us", "frozen_unwatched")
    aside = flagged.withColumns({"frozen": F.col("pod"), "pod": F.col("other_pod")})
    both = with_gap_flag(aside, facts.unwatched, "from_us", "still_to_us", "other_unwatched")
    return _findings(both.withColumn("pod", F.col("frozen")))


def overlaps(held: DataFrame, all_settings: DataFrame) -> DataFrame:
    """Pair holders of one task, the one that may be frozen first; standbys that are promised do not count.

    Output columns: `TASK`, pod, other_pod, from_us, to_us, lasting, through, session_us, and settings; row_key.
    """
    owners = held.where(~F.col("cleaner"))
    other = owners.select(
        *TASK, *(F.col(name).alias(f"other_{name}") for name in ("pod", "from_us", "to_us", "lasting"))
    )
    settings = all_settings.select(
        "namespace", "application_id", "num_standby_replicas", "processing_guarantee", "release_low", "release_high",
        (F.col("session_ms") * 1_000).alias("session_us"),
    )  # fmt: skip
    pairs = (
        owners.join(other, list(TASK), "inner")
        .where(F.col("pod") != F.col("other_pod"))
        .select(
            *TASK, "pod", "other_pod",
            F.greatest("from_us", "other_from_us").alias("from_us"),
            F.least("to_us", "other_to_us").alias("to_us"),
            (F.col("lasting") & F.col("other_lasting")).alias("lasting"),
        )
        .join(settings, ["namespace", "application_id"], "inner")
        .where(F.col("to_us") - F.col("from_us") > F.col("session_us"))
        .withColumn("row_key", F.concat_ws("/", *TASK, "pod", "other_pod", F.col("from_us").cast("string")))
    )  # fmt: skip
    beside = (
        same_task("held_")
        & (F.col("held_from_us") <= F.col("from_us"))
        & (F.col("held_to_us") >= F.col("to_us"))
    )
    counted = attach(pairs, prefixed(owners, "held_"), beside, {"through": F.count_distinct("held_pod")})
    return counted.where(F.col("through") > 1 + F.coalesce("num_standby_replicas", F.lit(0)))


def _still(pairs: DataFrame, facts: Facts) -> DataFrame:
    """Keep pairs whose first pod moved nothing for longer than the session timeout; adds still_to_us."""
    moves = prefixed(facts.marks.where(F.col("change").isin(*MOVES)).select(*TASK, "pod", "at_us"), "move_")
    after = (
        same_task("move_")
        & (F.col("move_pod") == F.col("pod"))
        & (F.col("move_at_us") > F.col("from_us") + SETTLE_US)
        & (F.col("move_at_us") < F.col("to_us"))
    )
    return (
        attach(pairs, moves, after, {"moved_us": F.min("move_at_us")})
        .withColumn("still_to_us", F.coalesce("moved_us", "to_us"))
        .where(F.col("still_to_us") - F.col("from_us") > F.col("session_us"))
        .where(F.col("lasting") | (F.col("still_to_us") >= facts.since_us))
    )


def _readings(facts: Facts) -> DataFrame:
    """Put all that shows how far a store of a copy is into one table: readings, checkpoints and flushes.

    The flush of a segment says nothing of its store as a whole.
    """
    flushed = facts.marks.where(
        (F.col("change") == Change.STORE_FLUSHED.value) & F.col("segment").isNull()
    ).withColumns({name: F.lit(None).cast("bigint") for name in ("offset", "unsaved_puts")})
    names = (*TASK, "pod", "store", "at_us", "offset", "puts", "unsaved_puts")
    return facts.sizes.select(*names).unionByName(flushed.select(*names))


def _ahead(pairs: DataFrame, facts: Facts) -> DataFrame:
    """Keep pairs whose second pod went beyond the first one in a store meanwhile.

    Adds own_offset, other_offset, other_grown, of that store.
    """
    readings = prefixed(_readings(facts).where(F.col("store").isNotNull()), "reading_")
    store = F.col("reading_store").alias("of_store")
    until = F.col("reading_at_us") <= F.col("still_to_us")
    seen = same_task("reading_") & (F.col("reading_pod") == F.col("pod")) & until
    own = (
        pairs.join(readings, seen, "inner")
        .groupBy("row_key", store)
        .agg(F.max("reading_offset").alias("own_offset"), F.max("reading_puts").alias("own_puts"))
    )
    meanwhile = (
        same_task("reading_")
        & (F.col("reading_pod") == F.col("other_pod"))
        & F.col("reading_at_us").between(F.col("from_us"), F.col("still_to_us"))
    )
    warm_ups = F.coalesce(F.col("release_high") >= release(*FIRST_WITH_WARM_UPS), F.lit(True))
    moved = (F.count_distinct("reading_offset") > 1) | (F.count_distinct("reading_puts") > 1)
    other = (
        pairs.withColumn("warm_ups", warm_ups)
        .join(readings, meanwhile, "inner")
        .groupBy("row_key", "warm_ups", store)
        .agg(
            F.max("reading_offset").alias("other_offset"),
            growth(course("reading_at_us", "reading_puts")).alias("other_grown"),
            F.max("reading_unsaved_puts").alias("unsaved_puts"),
            moved.alias("moved"),
        )
    )
    slack = F.when(F.col("warm_ups"), F.lit(UNSAVED_RECORDS)).otherwise(F.lit(0))
    more = F.when(F.col("warm_ups"), F.col("unsaved_puts")).otherwise(F.lit(0))
    by_offset = F.col("other_offset") > F.col("own_offset") + slack
    by_puts = F.col("other_grown") > F.col("own_puts") + more
    beyond = F.coalesce(by_offset, by_puts, F.lit(False)) & F.col("moved")
    found = own.join(other, ["row_key", "of_store"], "inner").where(beyond)
    shown = found.groupBy("row_key").agg(
        F.min_by(F.struct("own_offset", "other_offset", "other_grown"), "of_store").alias("shown")
    )
    return pairs.join(shown, "row_key", "inner").select(*pairs.columns, "shown.*")


def _findings(story: DataFrame) -> DataFrame:
    unwatched = F.col("frozen_unwatched") | F.col("other_unwatched")
    unknown_standbys = F.col("num_standby_replicas").isNull()
    # the overlap's ends are reported by two pods: their clocks may make this much of it
    brief = F.col("still_to_us") - F.col("from_us") <= F.col("session_us") + SKEW_US
    confidence = (
        F.when(unwatched, F.lit(Confidence.UNKNOWN.value))
        .when(unknown_standbys | brief, F.lit(Confidence.SUSPECTED.value))
        .otherwise(F.lit(Confidence.CONFIRMED.value))
    )
    exactly_once = F.coalesce(F.col("processing_guarantee").startswith("exactly_once"), F.lit(False))
    fenced = ~F.col("lasting") & exactly_once
    return finding(
        story,
        META,
        {
            "opened_at_us": F.col("from_us"),
            "severity": F.when(fenced | unwatched, F.lit(Severity.INFO.value)).otherwise(
                F.lit(Severity.WARNING.value)
            ),
            "confidence": confidence,
            "status": F.when(F.col("lasting"), F.lit(Status.OPEN.value)).otherwise(
                F.lit(Status.RESOLVED.value)
            ),
            "ended_us": F.col("still_to_us"),
            "affected": F.lit(Affected.POSSIBLY.value),
            "missing_facts": F.when(unknown_standbys, F.array(F.lit("num_standby_replicas"))).otherwise(
                no_texts()
            ),
            "summary": numbered(
                "%s still holds %s without moving anything for %.0f s, while %s works on it",
                "pod", "task_id", seconds(F.col("from_us"), F.col("still_to_us")), "other_pod",
            ),
            "evidence": _evidence(),
            "next_action": _next_action(),
            "pods": F.array("pod", "other_pod"),
        },
    )  # fmt: skip


def _evidence() -> Column:
    place = F.concat_ws("/", "application_id", "task_id")
    both = numbered(
        "%s and %s both hold the task from %s to %s",
        "pod", "other_pod", clock("from_us"), clock("to_us"),
    )  # fmt: skip
    frozen = F.concat(
        numbered("no file of %s's copy changed until %s", "pod", clock("still_to_us")),
        F.coalesce(numbered("; it is at offset %d", "own_offset"), F.lit("")),
    )
    moving = F.concat(
        F.col("other_pod"),
        F.lit("'s copy moved on"),
        F.coalesce(numbered(" to offset %d", "other_offset"), F.lit("")),
        F.coalesce(numbered(", %d puts more", "other_grown"), F.lit("")),
    )
    unwatched = F.when(
        F.col("frozen_unwatched") | F.col("other_unwatched"),
        F.lit("one of the two was not watched all the time"),
    )
    return chain(
        F.array(
            entry(F.col("from_us"), both, place),
            entry(F.col("still_to_us"), frozen, F.col("pod")),
            entry(F.col("still_to_us"), moving, F.col("other_pod")),
            entry(F.col("from_us"), unwatched, F.lit("rollup")),
        )
    )


def _next_action() -> Column:
    alive = numbered(
        "Check the process on %s: it is paused, stuck in garbage collection or cut off. Restart it before it "
        "wakes up; under at-least-once what it still has in memory may be written twice.",
        "pod",
    )  # fmt: skip
    over = numbered(
        "Find out what stopped %s for so long (throttling, garbage collection, node); under at-least-once compare the "
        "output around %s.",
        "pod", clock("still_to_us"),
    )  # fmt: skip
    claims = numbered(
        " Up to 2.5 its checkpoint may also cover what %s wrote: stop the instance on %s, keep a copy of its directory "
        "of %s, remove that directory only, start it: it then restores in full.",
        "other_pod", "pod", "task_id",
    )  # fmt: skip
    fixed = F.coalesce(F.col("release_low") >= release(*FIRST_TO_COMMIT_BEFORE_IT_CLAIMS), F.lit(False))
    no_claim = fixed | F.coalesce(F.col("processing_guarantee").startswith("exactly_once"), F.lit(False))
    return F.when(F.col("lasting"), alive).otherwise(F.concat(over, F.when(no_claim, "").otherwise(claims)))


def _ends_and_thaws(seen: Seen) -> DataFrame:
    """List when each pod that has a copy was last heard: a pair of holders ends there; and when a frozen one thaws.

    Output columns: `TASK`, at_us.
    """
    heard = seen.counted.groupBy("namespace", "pod").agg(F.max("last_us").alias("at_us"))
    pods = seen.copies.select(*TASK, "pod").distinct()
    ends = pods.join(heard, ["namespace", "pod"], "inner").select(*TASK, "at_us")
    return ends.unionByName(_thaws(seen))


def _thaws(seen: Seen) -> DataFrame:
    """List when two that hold a task to the end moved first, each: the frozen one thaws there."""
    newest = F.max_by(
        F.struct("now_held", "observed_at_us"), F.struct("observed_at_us", "boot_id", "sequence")
    )
    ends = seen.flips.groupBy(*TASK, "pod").agg(newest.alias("end"))
    holders = ends.where(F.col("end.now_held")).select(
        *TASK, "pod", F.col("end.observed_at_us").alias("from_us")
    )
    others = holders.select(*TASK, F.col("pod").alias("other_pod"), F.col("from_us").alias("other_from_us"))
    both_us = F.greatest("from_us", "other_from_us") + SETTLE_US
    pairs = holders.join(others, list(TASK), "inner").where(F.col("pod") != F.col("other_pod"))
    starts = pairs.select(*TASK, "pod", both_us.alias("at_us")).distinct()
    moves = seen.steps.where(F.col("what").isin(*MOVES)).select(*PLACE)
    return neighbours(moves, starts, (*TASK, "pod")).select(*TASK, "at_us")


def _crowded(held: DataFrame, _marks: DataFrame, settings: DataFrame) -> DataFrame:
    return overlaps(held, settings)


RULE = Rule(
    META,
    find,
    remembers=Past(
        extremes=(most("offset"), most("puts")), steps=MOVES, settled_us=SETTLE_US, moments=_ends_and_thaws
    ),
    questions=_crowded,
)
