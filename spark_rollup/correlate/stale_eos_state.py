"""After a wipe that did not happen: where the untrusted state went, by volume and by changelog.

Signal: an agent's `skipped-eos-wipe` or `interrupted-wipe` finding of severity warning or above.
Fires when: such a finding is there. Tainted are: later pods with the same store IDENTITY (the volume moved), and later
    owners of the task, whose copy comes from a changelog that the suspect wrote to.
Clears when: the agent's finding is resolved.
Stays quiet when: the agents report nothing of the kind, or only information.
Blind spots: what other applications read from the output cannot be seen here.
Source: KAFKA-20685, KAFKA-10362, KAFKA-7192, KAFKA-9891.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from agent.contract.events import Level, Severity
from spark_rollup.columns import TASK, chain, entry, numbered, of_store
from spark_rollup.correlate.base import Facts, Rule, RuleMeta, finding, lowered, words_of_agent
from spark_rollup.correlate.fleet import attach, elsewhere, prefixed, same_task, suspects_of, with_gap_flag

META = RuleMeta(
    id="stale-eos-state",
    title="Uncommitted state was kept after a crash, and others may have it now",
    level=Level.DAMAGE,
    severity=Severity.CRITICAL,
    upstream=("KAFKA-20685", "KAFKA-10362", "KAFKA-7192", "KAFKA-9891"),
    docs="rules/stale-eos-state.md",
)


def find(facts: Facts) -> DataFrame:
    """List for each skipped or interrupted wipe every pod that the untrusted state reached since.

    Output columns: `FINDING`.
    """
    suspects = suspects_of(facts.local, "skipped-eos-wipe", "interrupted-wipe").where(
        F.col("severity") != Severity.INFO.value
    )
    story = _moved_volumes(suspects.withColumn("until_us", F.lit(facts.as_of_us)), facts)
    story = elsewhere(story, facts.held, "opened_at_us", "until_us")
    return _findings(with_gap_flag(story, facts.gaps, "opened_at_us", "observed_at_us", "unwatched"))


def _moved_volumes(suspects: DataFrame, facts: Facts) -> DataFrame:
    """Add where the same store identity was seen later on other pods (`moved`: evidence, `moved_pods`)."""
    seen = (
        facts.sizes.select(*TASK, "pod", "at_us", "identity")
        .unionByName(facts.marks.select(*TASK, "pod", "at_us", "identity"))
        .where(F.col("identity").isNotNull())
        .groupBy(*TASK, "pod", "identity")
        .agg(F.min("at_us").alias("first_us"), F.max("at_us").alias("last_us"))
    )
    told = entry(
        F.greatest("seen_first_us", "opened_at_us"),
        numbered(
            "%s has the same store (identity %s): the volume moved or was copied", "seen_pod", "identity"
        ),
        F.col("seen_pod"),
    )
    same = (
        same_task("seen_")
        & (F.col("seen_identity") == F.col("identity"))
        & (F.col("seen_pod") != F.col("pod"))
        & (F.col("seen_last_us") >= F.col("opened_at_us"))
    )
    found = {
        "moved": F.array_sort(F.collect_list(told)),
        "moved_pods": F.array_sort(F.collect_set("seen_pod")),
    }
    return attach(suspects, prefixed(seen, "seen_"), same, found)


def _findings(story: DataFrame) -> DataFrame:
    tainted = F.array_distinct(F.concat("moved_pods", "other_pods"))
    return finding(
        story.withColumn("tainted", tainted),
        META,
        words_of_agent()
        | {
            "opened_at_us": F.col("opened_at_us"),
            "confidence": lowered(F.col("confidence"), F.col("unwatched")),
            "summary": _summary(),
            "evidence": chain(F.col("moved"), _restored_later(), F.col("evidence")),
            "next_action": _next_action(),
            "pods": F.array_distinct(F.concat(F.array("pod"), "tainted")),
            "confirms": F.array("finding_id"),
        },
    )


def _restored_later() -> Column:
    source = F.lit(", from a changelog that the suspect wrote to")
    return F.transform(
        "elsewhere",
        lambda item: F.struct(
            item["at"].alias("at"), F.concat(item["what"], source).alias("what"), item["where"].alias("where")
        ),
    )


def _summary() -> Column:
    spread = F.when(
        F.size("tainted") > 0, F.concat(F.lit("; tainted since: "), F.array_join("tainted", ", "))
    ).otherwise(F.lit("; no other pod has it so far"))
    return F.concat(
        F.col("pod"),
        F.lit(" kept state of "),
        F.col("task_id"),
        of_store(),
        F.lit(", that should have been wiped after a crash"),
        spread,
    )


def _next_action() -> Column:
    others = F.concat(
        F.lit(" Then do the same on "),
        F.array_join("tainted", ", "),
        F.lit(", and compare the output with the input since the crash."),
    )
    return F.concat(
        numbered(
            "Leave the volume of %s where it is. Stop the instance there in an orderly way, keep a copy of its "
            "directory of %s aside, remove that directory only, start it again: it restores committed records only.",
            "pod", "task_id",
        ),
        F.when(F.size("tainted") > 0, others).otherwise(F.lit("")),
    )  # fmt: skip


RULE = Rule(META, find)
