"""A task moved and ran before its new owner can have restored it: the previous owner's size shows it.

Signal: an agent's `unrestored-store` finding, which decides by mechanism on the new owner's disk.
Fires when: that finding is there; the previous owner had far more live entries at no higher an
    offset: confirmed, unless the pod was unwatched or messages were lost between the store's opening and the finding.
Clears when: the agent's finding is resolved.
Stays quiet when: no agent reports it (sizes alone never raise it: a copy restored from a compacted changelog is small),
    or the agent also calls the same store a `resurrected-checkpoint`: one damage, one finding.
Blind spots: no earlier owner was watched: the local verdict is the only evidence, and says so. Where messages were lost
    the agent may have called it a `resurrected-checkpoint` in one of them: the damage is there, its name is suspected.
Source: KAFKA-7672 (2.0.1 to 2.1.1), KAFKA-16017 (up to 3.5.2 and 3.6.1).
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from agent.contract.events import Confidence, Level, Severity
from agent.contract.mechanisms import Mechanism
from agent.contract.units import WRONG_RESULTS, Twin
from spark_rollup.columns import TASK, chain, clock, entry, numbered, of_store
from spark_rollup.judging.base import Facts, Rule, RuleMeta, finding, words_of_agent
from spark_rollup.judging.fleet import (
    OFFSET_SLACK,
    attach,
    far_less,
    own_size,
    prefixed,
    same_store,
    same_task,
    suspects_of,
    with_gap_flag,
)
from spark_rollup.judging.past import Past, most

META = RuleMeta(
    id="unrestored-task",
    title="A task ran before its new owner had restored it",
    level=Level.DAMAGE,
    severity=Severity.CRITICAL,
    mechanism=Mechanism.OFFSET_WITHOUT_DATA,
    upstream=("KAFKA-7672", "KAFKA-16017"),
    asks=("unrestored-store",),
    consequence=WRONG_RESULTS,
    twin=Twin("N7 and N15, the new owner restored in full", "benign-move-3.9.2"),
)

_REPORTED_WITHIN_US = 3_600_000_000
"""By then the agent has said all that it calls this damage (microseconds); what it says later it says again."""


def find(facts: Facts) -> DataFrame:
    """Join agents' `unrestored-store` findings with the previous owner of the task.

    Output columns: `FINDING`.
    """
    suspects = suspects_of(facts.local, "unrestored-store").join(
        _already_reported(facts.said), [*TASK, "pod", "identity"], "left_anti"
    )
    suspects = own_size(suspects, facts.sizes, "opened_at_us")
    reported_us = F.least(F.col("observed_at_us"), F.col("opened_at_us") + _REPORTED_WITHIN_US)
    suspects = with_gap_flag(
        suspects.withColumn("reported_us", reported_us),
        facts.unwatched,
        "opened_at_us",
        "reported_us",
        "unwatched",
    )
    return _findings(_last_size_of_owner(_previous_owner(suspects, facts.held), facts.sizes))


def _already_reported(said: DataFrame) -> DataFrame:
    """List stores of which the agent itself says that they carry an old offset: one damage, one finding."""
    return said.where((F.col("detector") == "resurrected-checkpoint") & F.col("identity").isNotNull()).select(
        *TASK, "pod", "identity"
    )


def _previous_owner(suspects: DataFrame, held: DataFrame) -> DataFrame:
    """Add the other pod that held the task last before the finding opened (`owner_*`; null = none seen)."""
    others = prefixed(held.where(~F.col("cleaner")), "owner_")
    earlier = F.col("owner_from_us") < F.col("opened_at_us")
    same = same_task("owner_") & (F.col("owner_pod") != F.col("pod")) & earlier
    names = ("owner_pod", "owner_from_us", "owner_to_us")
    last = F.max_by(F.struct(*names), F.struct("owner_to_us", "owner_from_us", "owner_pod"))
    return attach(suspects, others, same, {"owner": last}).select(*suspects.columns, "owner.*")


def _last_size_of_owner(suspects: DataFrame, sizes: DataFrame) -> DataFrame:
    """Add the fullest reading of the previous owner's copy while it was the owner (`held_*`; null = none)."""
    readings = prefixed(sizes.where(F.col("puts").isNotNull()), "reading_")
    meanwhile = F.col("reading_at_us").between(F.col("owner_from_us"), F.col("opened_at_us"))
    same = (
        same_task("reading_")
        & (F.col("reading_pod") == F.col("owner_pod"))
        & same_store("reading_")
        & meanwhile
    )
    known = F.col("reading_entries_low").isNotNull()
    found = {
        "fullest": F.max(F.struct("reading_puts", "reading_at_us", "reading_offset")),
        "richest": F.max(F.when(known, F.struct("reading_entries_low", "reading_at_us", "reading_offset"))),
    }
    return attach(suspects, readings, same, found).select(
        *suspects.columns,
        F.col("richest.reading_entries_low").alias("held_entries"),
        F.col("richest.reading_offset").alias("held_entries_offset"),
        F.col("fullest.reading_at_us").alias("held_us"),
        F.col("fullest.reading_puts").alias("held_puts"),
        F.col("fullest.reading_offset").alias("held_offset"),
    )


def _findings(story: DataFrame) -> DataFrame:
    # the new owner must claim at least the offset that the previous one had; unknown offsets prove nothing
    reach = F.col("own_offset") * (1 + OFFSET_SLACK)
    more = F.coalesce(
        far_less(F.col("own_puts"), F.col("held_puts")) & (reach >= F.col("held_offset")), F.lit(False)
    )
    # puts count overwritten keys, which a compacted changelog does not bring back: only live entries prove
    fuller = far_less(F.col("own_puts"), F.col("held_entries")) & (reach >= F.col("held_entries_offset"))
    # the agent's `resurrected-checkpoint` of this store may be what was lost: then this is the wrong name
    proved = F.coalesce(fuller, F.lit(False)) & ~F.col("unwatched")
    comparison = numbered(
        "%s held %d puts at offset %d, %s claims offset %d with %d puts",
        "owner_pod", "held_puts", "held_offset", "pod", "own_offset", "own_puts",
    )  # fmt: skip
    judged = story.withColumn("proved", proved).withColumn("comparison", F.when(more, comparison))
    return finding(
        judged,
        META,
        words_of_agent()
        | {
            "opened_at_us": F.col("opened_at_us"),
            "severity": F.when(F.col("proved"), F.lit(Severity.CRITICAL.value)).otherwise(F.col("severity")),
            "confidence": F.when(F.col("proved"), F.lit(Confidence.CONFIRMED.value)).otherwise(
                F.col("confidence")
            ),
            "summary": _summary(),
            "evidence": _evidence(),
            "next_action": _next_action(),
            "pods": F.filter(F.array("pod", "owner_pod"), lambda pod: pod.isNotNull()),
            "confirms": F.array("finding_id"),
        },
    )


def _summary() -> Column:
    return F.concat(
        F.col("pod"),
        F.lit(" ran "),
        F.col("task_id"),
        of_store(),
        F.lit(", without having restored it"),
        F.coalesce(F.concat(F.lit(" after "), F.col("owner_pod")), F.lit("")),
        F.coalesce(F.concat(F.lit(": "), F.col("comparison")), F.lit("")),
    )


def _evidence() -> Column:
    place = F.concat_ws("/", "application_id", "task_id", "store")
    held = numbered(
        "%s held the task from %s to %s", "owner_pod", clock("owner_from_us"), clock("owner_to_us")
    )  # fmt: skip
    alone = F.when(
        F.col("owner_pod").isNull(),
        F.lit("no earlier owner was watched: the agent's verdict is the only evidence"),
    )
    return chain(
        F.array(
            entry(F.col("owner_from_us"), held, F.col("owner_pod")),
            entry(
                F.col("held_us"),
                numbered("%s's copy had %d puts", "owner_pod", "held_puts"),
                F.col("owner_pod"),
            ),
            entry(F.coalesce("own_at_us", "opened_at_us"), F.col("comparison"), place),
            entry(F.col("opened_at_us"), alone, F.lit("rollup")),
        ),
        F.col("evidence"),
    )


def _next_action() -> Column:
    """The agent's own: of one incident there is one instruction."""
    return F.concat(
        numbered("On %s, for task %s: ", "pod", "task_id"),
        F.col("next_action"),
        F.coalesce(numbered(" If %s still has its directory, keep it as the reference.", "owner_pod"), F.lit("")),
    )  # fmt: skip


RULE = Rule(META, find, remembers=Past(extremes=(most("entries_low"),)))
