"""An old changelog offset was carried over onto a fresh store: who deleted, who re-created, and what is missing.

Signal: an agent's `resurrected-checkpoint` finding, or transitions that show the same: a task deleted at offset P,
    its store recreated on that pod, and a first checkpoint at or beyond P.
Fires when: the agent saw it; or the new store holds less than half of what a replica held at about the same offset,
    and no more puts than offsets since P.
Clears when: the agent's finding is resolved.
Stays quiet when: a new store was restored (its puts cover the time before P).
Blind spots: without a finding and without a replica nothing can be compared; after compaction puts are an upper
    bound of what a store holds, so without entry counts the fleet's own evidence stays `suspected`.
Source: KAFKA-8187 (up to 2.2.1); torn deletions (any release up to 4.2).
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import Window as W
from pyspark.sql import functions as F

from agent.contract.events import Affected, Change, Confidence, Level, Severity, Status
from agent.contract.mechanisms import Mechanism
from agent.contract.units import WRITTEN_SINCE, WRONG_RESULTS, Twin
from spark_rollup.columns import TASK, chain, entry, no_texts, numbered, of_store
from spark_rollup.facts import timeline
from spark_rollup.judging.base import Facts, Rule, RuleMeta, finding, lowered, words_of_agent
from spark_rollup.judging.fleet import (
    attach,
    closest_replica,
    elsewhere,
    own_size,
    prefixed,
    same_task,
    suspects_of,
    with_gap_flag,
)
from spark_rollup.judging.past import PLACE, Past, Seen, most
from spark_rollup.spark.materialize import materialize

META = RuleMeta(
    id="resurrected-checkpoint",
    title="An old offset was carried over onto a fresh store",
    level=Level.DAMAGE,
    severity=Severity.CRITICAL,
    mechanism=Mechanism.OFFSET_WITHOUT_DATA,
    joined_by=(("application_id", "task_id", "pod"),),
    upstream=("KAFKA-8187", "KAFKA-5998"),
    asks=("resurrected-checkpoint", "unrestored-store"),
    consequence=WRONG_RESULTS,
    twin=Twin("N8, cleaned and restored in full elsewhere", "control-8187-2.2.2"),
)

_LOOK_BACK_US = 3_600_000_000
"""How long before the damage other holders are listed (microseconds)."""

_AFTER_US = 1_000_000
"""A deletion or creation this long after the finding opened still belongs to it: readings are not instants."""


def find(facts: Facts) -> DataFrame:
    """Join local findings, and what transitions show without one, with the rest of the fleet.

    Output columns: `FINDING`.
    """
    local = _from_agents(facts)
    reported = facts.said.where(F.col("level") == Level.DAMAGE.value).select(*TASK, "pod").distinct()
    shown = carried_over(facts.marks).join(reported, [*TASK, "pod"], "left_anti")
    suspects = local.unionByName(shown, allowMissingColumns=True)
    story = _deletion_and_creation(suspects, facts.marks)
    story = story.withColumn("since_us", F.coalesce("deleted_us", F.col("opened_at_us") - _LOOK_BACK_US))
    story = elsewhere(story, facts.held, "since_us", "opened_at_us")
    story = closest_replica(own_size(story, facts.sizes, "opened_at_us"), facts.sizes)
    story = with_gap_flag(story, facts.unwatched, "since_us", "opened_at_us", "unwatched")
    return _findings(story.where(F.col("finding_id").isNotNull() | _shown_by_fleet()))


def _from_agents(facts: Facts) -> DataFrame:
    """Take the agents' findings; what they say of the same store by another name (`twins`) is explained with them."""
    twins = prefixed(facts.said.where(F.col("detector") == "unrestored-store"), "twin_")
    same = (
        same_task("twin_")
        & (F.col("twin_pod") == F.col("pod"))
        & (F.col("twin_identity") == F.col("identity"))
    )
    suspects = suspects_of(facts.local, META.id).withColumn("old_offset", F.lit(None).cast("bigint"))
    return attach(suspects, twins, same, {"twins": F.array_sort(F.collect_set("twin_finding_id"))})


def carried_over(marks: DataFrame) -> DataFrame:
    """Find first checkpoints at or beyond the offset at which the same pod's copy had been deleted.

    Tasks whose damage the agent itself reports are left to its finding.

    Input columns: those of `timeline.marks`.
    Output columns: `TASK`, pod, store, identity, opened_at_us, old_offset, row_key.
    Grain: one row per deletion.
    """
    order = W.partitionBy(*TASK, "pod").orderBy("observed_at_us", "sequence")
    so_far = order.rowsBetween(W.unboundedPreceding, W.currentRow)
    is_deleted = F.col("change") == Change.TASK_DELETED.value
    is_created = F.col("change") == Change.STORE_CREATED.value
    deletion = F.when(is_deleted, F.struct(F.col("at_us"), F.col("offset_before").alias("offset")))
    creation = F.when(is_created, F.struct("at_us", "identity", "store"))
    written = (
        marks.withColumn("deletion", F.last(deletion, ignorenulls=True).over(so_far))
        .withColumn("creation", F.last(creation, ignorenulls=True).over(so_far))
        .where(
            (F.col("change") == Change.CHECKPOINT_WRITTEN.value)
            & (F.col("deletion.offset") > 0)
            & (F.col("creation.at_us") >= F.col("deletion.at_us"))
            & (F.col("offset_after") >= F.col("deletion.offset"))
        )
    )
    first = W.partitionBy(*TASK, "pod", "deletion.at_us").orderBy("observed_at_us", "sequence")
    return (
        written.withColumn("rank", F.row_number().over(first))
        .where(F.col("rank") == 1)
        .select(
            *TASK, "pod",
            F.coalesce("store", "creation.store").alias("store"),
            F.coalesce("identity", "creation.identity").alias("identity"),
            F.col("observed_at_us").alias("opened_at_us"),
            F.col("deletion.offset").alias("old_offset"),
            F.concat_ws("/", *TASK, "pod", F.col("deletion.at_us").cast("string")).alias("row_key"),
        )
    )  # fmt: skip


def _deletion_and_creation(suspects: DataFrame, marks: DataFrame) -> DataFrame:
    """Add the last deletion and creation before the finding opened (structs; their fields null = none seen)."""
    deleted = F.col("step_change").isin(Change.TASK_DELETED.value, Change.STORE_DELETED.value)
    created = F.col("step_change") == Change.STORE_CREATED.value
    names = ("at_us", "change", "shape", "offset_before", "identity", "store")
    steps = prefixed(marks.select(*TASK, "pod", *names), "step_").where(deleted | created)
    step = F.struct(*(F.col(f"step_{name}").alias(name) for name in names))
    same = (
        same_task("step_")
        & (F.col("step_pod") == F.col("pod"))
        & (F.col("step_at_us") <= F.col("opened_at_us") + _AFTER_US)
    )
    # the whole directory's deletion says more than its stores'; prefer the last of those
    whole = F.col("step_change") == Change.TASK_DELETED.value
    found = {
        "deletion": F.max_by(F.when(deleted, step), F.when(deleted, F.struct(whole, F.col("step_at_us")))),
        "creation": F.max_by(F.when(created, step), F.when(created, F.col("step_at_us"))),
    }
    return attach(suspects, steps, same, found).withColumn("deleted_us", F.col("deletion.at_us"))


def _shown_by_fleet() -> Column:
    """Without a local finding: far less than a replica, and nothing from before the old offset."""
    no_history = F.col("own_puts") <= (F.col("own_offset") - F.col("old_offset")) * 1.1 + 1
    return F.coalesce(F.col("far_less") & (no_history | _proved_by_entries()), F.lit(False))


def _proved_by_entries() -> Column:
    """A replica's live keys alone are far more than this store ever got: no compaction explains that."""
    return F.coalesce(F.col("replica_entries_low") > F.col("own_puts") * 2, F.lit(False))


def _findings(story: DataFrame) -> DataFrame:
    concerned = F.concat(F.array("pod", "replica_pod"), "other_pods")
    return finding(
        _judged(story),
        META,
        words_of_agent()
        | {
            "opened_at_us": F.col("opened_at_us"),
            "status": F.coalesce("status", F.lit(Status.OPEN.value)),
            "upstream": F.coalesce("upstream", F.array(*(F.lit(key) for key in META.upstream))),
            "affected": F.coalesce("affected", F.lit(Affected.POSSIBLY.value)),
            "missing_facts": F.coalesce("missing_facts", no_texts()),
            "summary": _summary(),
            "evidence": _evidence(),
            "next_action": _next_action(),
            "pods": F.array_distinct(F.filter(concerned, lambda pod: pod.isNotNull())),
            "confirms": F.when(_from_agent(), F.concat(F.array("finding_id"), "twins")).otherwise(no_texts()),
        },
    )


def _from_agent() -> Column:
    return F.col("finding_id").isNotNull()


def _judged(story: DataFrame) -> DataFrame:
    """Add severity, confidence and the comparison with the replica."""
    sure, suspected = F.lit(Confidence.CONFIRMED.value), F.lit(Confidence.SUSPECTED.value)
    # puts count overwritten keys too: more of them on a replica do not turn an agent's suspicion into a proof
    compared = F.coalesce("far_less", F.lit(False))
    confirmed = F.when(
        _from_agent(), (F.col("confidence") == sure) | (compared & _proved_by_entries())
    ).otherwise(_proved_by_entries())
    found = F.when(confirmed, sure).otherwise(F.coalesce("confidence", suspected))
    confidence = F.when(_from_agent(), found).otherwise(lowered(found, F.col("unwatched")))
    severity = F.when(confidence == sure, F.lit(Severity.CRITICAL.value)).otherwise(
        F.coalesce("severity", F.lit(Severity.WARNING.value))
    )
    comparison = numbered(
        "%s held %d puts at offset %d, %s holds %d at offset %d",
        "replica_pod", "replica_puts", "replica_offset", "pod", "own_puts", "own_offset",
    )  # fmt: skip
    return story.withColumns({"severity": severity, "confidence": confidence, "comparison": comparison})


def _summary() -> Column:
    return F.concat(
        F.col("pod"),
        F.lit(" serves "),
        F.col("task_id"),
        of_store(),
        F.lit(", from a fresh store under an old offset; records before that offset are missing"),
        F.coalesce(F.concat(F.lit(": "), F.col("comparison")), F.lit("")),
    )


def _evidence() -> Column:
    place = F.concat_ws("/", "application_id", "task_id")
    who = (
        F.when(F.col("deletion.shape") == "cleaner-walk", F.lit("the cleaner"))
        .when(F.col("deletion.shape") == "owner-walk", F.lit("the task's owner"))
        .otherwise(F.lit("an unseen process"))
    )
    whole = F.col("deletion.change") == Change.TASK_DELETED.value
    what = F.when(whole, F.lit("the task directory")).otherwise(F.lit("the store"))
    at_offset = F.coalesce(numbered(" at offset %d", "deletion.offset_before"), F.lit(""))
    deleted = F.concat(F.col("pod"), F.lit(": "), who, F.lit(" deleted "), what, at_offset)
    created = numbered(
        "%s: a new store was made, identity %s", "pod", F.coalesce("creation.identity", F.lit("unknown"))
    )
    first = numbered(
        "%s: first checkpoint of the new store at %d or beyond, the offset of the deleted one",
        "pod",
        "old_offset",
    )
    return chain(
        F.array(
            entry(F.col("deletion.at_us"), deleted, place),
            entry(F.col("creation.at_us"), created, F.concat_ws("/", place, "creation.store")),
            entry(F.coalesce("own_at_us", "opened_at_us"), F.col("comparison"), F.col("replica_pod")),
            entry(F.col("opened_at_us"), first, place),
        ),
        F.col("elsewhere"),
        F.coalesce("evidence", F.array()),
    )


def _next_action() -> Column:
    restore = numbered(
        "Stop the instance on %s, keep a copy of its directory of %s, remove that directory only, start it again: it "
        "then restores from the changelog.",
        "pod", "task_id",
    )  # fmt: skip
    keep = numbered(" %s has the fuller copy: do not delete that one first.", "replica_pod")
    kept = F.when(F.coalesce("far_less", F.lit(False)), keep).otherwise(F.lit(""))
    return F.concat(restore, kept, F.lit(f" {WRITTEN_SINCE}"))


def _first_writes(seen: Seen) -> DataFrame:
    """Choose the checkpoints by which an old offset on a fresh store is found.

    Output columns: `PLACE`.
    """
    deleted = seen.events.where(F.col("change") == Change.TASK_DELETED.value).select(*TASK).distinct()
    mine = materialize(timeline.marks(seen.events).join(deleted, list(TASK), "left_semi"))
    first = carried_over(mine).select(*TASK, "pod", F.col("opened_at_us").alias("observed_at_us"))
    return mine.join(first, [*TASK, "pod", "observed_at_us"], "left_semi").select(*PLACE)


def _deleted_under_an_offset(_held: DataFrame, marks: DataFrame, _settings: DataFrame) -> DataFrame:
    return marks.where((F.col("change") == Change.TASK_DELETED.value) & (F.col("offset_before") > 0))


RULE = Rule(
    META,
    find,
    remembers=Past(
        extremes=(most("offset"), most("puts")),
        steps=(Change.TASK_DELETED.value,),
        turns=(Change.TASK_DELETED.value, Change.STORE_DELETED.value, Change.STORE_CREATED.value),
        moments=_first_writes,
        places=_first_writes,
    ),
    questions=_deleted_under_an_offset,
)
