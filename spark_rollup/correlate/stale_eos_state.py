"""After a wipe that did not happen: where the untrusted state went, by volume and by changelog.

Signal: an agent's `skipped-eos-wipe` or `interrupted-wipe` finding of severity warning or above, or a
    `skipped-eos-wipe` that is information only because its agent does not know the copy's role, active or standby.
Fires when: such a finding is there; of information, when the fleet shows that the copy was the active. Tainted are:
    later pods with the same store IDENTITY (the volume moved), and later owners of the task, whose copy comes from a
    changelog that the suspect wrote to.
Clears when: the agent's finding is resolved.
Stays quiet when: the agents report nothing of the kind, or information about a copy whose role the fleet does not know.
Blind spots: what other applications read from the output cannot be seen here; pods without an agent may hold a task.
Source: KAFKA-20685, KAFKA-10362, KAFKA-7192, KAFKA-9891.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from agent.contract.events import Change, Confidence, Level, Severity, Status
from agent.contract.mechanisms import Mechanism
from agent.contract.units import UNCOMMITTED_RESULTS, Twin
from spark_rollup.columns import MICROS, TASK, chain, entry, no_texts, numbered, of_store, release
from spark_rollup.judging.base import Facts, Rule, RuleMeta, finding, lowered, words_of_agent
from spark_rollup.judging.fleet import (
    SKEW_US,
    attach,
    elsewhere,
    prefixed,
    same_task,
    suspects_of,
    with_gap_flag,
)
from spark_rollup.judging.growth import counted, course, unsaved_limit, went_on_unsaved
from spark_rollup.judging.past import Past, Window
from spark_rollup.judging.roles import with_proof_of_active

META = RuleMeta(
    id="stale-eos-state",
    title="Uncommitted state was kept after a crash, and others may have it now",
    level=Level.DAMAGE,
    severity=Severity.CRITICAL,
    mechanism=Mechanism.UNCOMMITTED_DATA,
    upstream=("KAFKA-20685", "KAFKA-10362", "KAFKA-7192", "KAFKA-9891"),
    asks=("skipped-eos-wipe", "interrupted-wipe"),
    consequence=f"{UNCOMMITTED_RESULTS} Pods that restored from it since have them too.",
    twin=Twin("the same crash on the release with the fix", "control-9891-2.5.1"),
)


ROLE_US = 24 * 3600 * MICROS
"""So long before a crash whose owner's role the agent does not know all readings and steps are remembered: what each
copy put in, and who wrote checkpoints meanwhile, shows it."""

COMMITS, COMMIT_INTERVAL_MS = 2, 100
"""After so many commits, of this interval by default under exactly-once, one has passed (the agent's own role test)."""

LAST_WITH_9891, FIRST_WITHOUT_FILES = (2, 5, 0), (4, 3)
"""Up to the one a standby that becomes active keeps what should be wiped (KAFKA-9891); from the other on no task writes
a checkpoint file, so that one without is no sign."""


def find(facts: Facts) -> DataFrame:
    """List for each skipped or interrupted wipe every pod that the untrusted state reached since.

    Output columns: `FINDING`.
    """
    quiet = F.col("severity") == Severity.INFO.value
    of_unknown_role = (F.col("detector") == "skipped-eos-wipe") & (
        F.col("confidence") == Confidence.SUSPECTED.value
    )
    suspects = suspects_of(facts.local, "skipped-eos-wipe", "interrupted-wipe").where(
        ~quiet | of_unknown_role
    )
    story = _moved_volumes(suspects.withColumn("until_us", F.lit(facts.as_of_us)), facts)
    story = _with_active(elsewhere(story, facts.held, "opened_at_us", "until_us"), facts)
    story = with_proof_of_active(story.withColumn("refuted", _is_refuted()), facts)
    story = story.where(~quiet | F.col("refuted") | F.col("why_active").isNotNull())
    return _findings(with_gap_flag(story, facts.unwatched, "opened_at_us", "observed_at_us", "unwatched"))


def _moved_volumes(suspects: DataFrame, facts: Facts) -> DataFrame:
    """Add where the same store identity was seen later on other pods (`moved`: evidence, `moved_pods`)."""
    seen = (
        facts.sizes.select(*TASK, "pod", "at_us", "identity")
        .unionByName(facts.marks.select(*TASK, "pod", "at_us", "identity"))
        .where(F.col("identity").isNotNull())
        .groupBy(*TASK, "pod", "identity")
        .agg(F.min("at_us").alias("first_us"), F.max("at_us").alias("last_us"))
    )
    shown = entry(
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
        "moved": F.array_sort(F.collect_list(shown)),
        "moved_pods": F.array_sort(F.collect_set("seen_pod")),
    }
    return attach(suspects, prefixed(seen, "seen_"), same, found)


def _with_active(suspects: DataFrame, facts: Facts) -> DataFrame:
    """Add `active_pod`: another pod that was the active while the suspect's role is unknown (null = none).

    Under exactly-once an active writes no checkpoint while it works and a standby does: a pod that put in more than
    10,000 records without one, went on, and was watched all the time was the active. So the suspect was a standby,
    whose stores need no wipe (KAFKA-9891 aside).
    """
    commit_ms = F.coalesce("commit_interval_ms", F.lit(COMMIT_INTERVAL_MS))
    roles = facts.settings.select(
        "namespace", "application_id", "num_standby_replicas", F.col("release_low").alias("since_release"),
        F.col("release_high").alias("until_release"), (commit_ms * COMMITS * 1_000 + SKEW_US).alias("commits_us"),
    )  # fmt: skip
    known = suspects.join(roles, ["namespace", "application_id"], "left")
    own = prefixed(facts.held.where(~F.col("cleaner")), "own_")
    mine = (
        same_task("own_") & (F.col("own_pod") == F.col("pod")) & (F.col("own_to_us") <= F.col("opened_at_us"))
    )
    known = attach(known, own, mine, {"tenure": F.max(F.struct("own_to_us", "own_from_us"))})
    tenures = known.select(
        "row_key", *TASK, "pod", "commits_us",
        F.col("tenure.own_from_us").alias("began_us"), F.col("tenure.own_to_us").alias("over_us"),
    )  # fmt: skip
    other = same_task("step_") & (F.col("step_pod") != F.col("pod"))
    # what the other pod put in must be the tenure's own whatever the two clocks say
    surely = F.col("step_at_us").between(F.col("began_us") + SKEW_US, F.col("over_us") - SKEW_US)
    grown = (
        tenures.join(prefixed(counted(facts.sizes), "step_"), other & surely, "inner")
        .groupBy("row_key", *TASK, "began_us", "over_us", "commits_us", "step_pod", "step_store")
        .agg(
            course("step_at_us", "step_puts").alias("readings"),
            unsaved_limit("step_unsaved_puts").alias("limit"),
        )
        .where(went_on_unsaved(F.col("readings"), F.col("limit"), F.col("commits_us")))
    )
    written = facts.marks.where(F.col("change") == Change.CHECKPOINT_WRITTEN.value).select(
        *TASK, "pod", "at_us"
    )
    during = F.col("step_at_us").between(F.col("began_us"), F.col("over_us"))
    wrote = tenures.join(prefixed(written, "step_"), other & during, "inner").select("row_key", "step_pod")
    unsaved = grown.join(wrote.distinct(), ["row_key", "step_pod"], "left_anti").select(
        F.col("row_key").alias("active_key"), *TASK, F.col("step_pod").alias("pod"), "began_us", "over_us",
        F.concat_ws("/", "row_key", "step_pod", "step_store").alias("row_key"),
    )  # fmt: skip
    # a checkpoint that was not seen is no missing one
    active = with_gap_flag(unsaved, facts.unwatched, "began_us", "over_us", "unwatched").where(
        ~F.col("unwatched")
    )
    same_row = F.col("active_key") == F.col("row_key")
    names = active.select("active_key", F.col("pod").alias("name"))
    return attach(known, names, same_row, {"active_pod": F.min("name")})


def _is_refuted() -> Column:
    """Return whether a suspicion falls: role unknown, standbys exist, a release that shows roles, another active."""
    return F.coalesce(
        (F.col("confidence") == Confidence.SUSPECTED.value)
        & (F.coalesce("num_standby_replicas", F.lit(1)) >= 1)
        & (F.col("since_release") > release(*LAST_WITH_9891))
        & (F.col("until_release") < release(*FIRST_WITHOUT_FILES))
        & F.col("active_pod").isNotNull(),
        F.lit(False),
    )


def _findings(story: DataFrame) -> DataFrame:
    tainted = F.array_distinct(F.concat("moved_pods", "other_pods"))
    return finding(
        story.withColumn("tainted", tainted),
        META,
        words_of_agent()
        | {
            "opened_at_us": F.col("opened_at_us"),
            "severity": F.when(F.col("refuted"), F.lit(Severity.INFO.value))
            # what kept the agent from a warning was the role alone
            .when(F.col("severity") == Severity.INFO.value, F.lit(Severity.WARNING.value))
            .otherwise(F.col("severity")),
            "status": F.when(F.col("refuted"), F.lit(Status.RESOLVED.value)).otherwise(F.col("status")),
            "ended_us": F.when(F.col("refuted"), F.col("opened_at_us")).otherwise(F.col("resolved_at_us")),
            "confidence": F.when(F.col("refuted"), F.lit(Confidence.CONFIRMED.value)).otherwise(
                lowered(F.col("confidence"), F.col("unwatched"))
            ),
            "summary": F.when(F.col("refuted"), _ruled_out()).otherwise(_summary()),
            "evidence": chain(
                F.array(
                    entry(
                        F.when(F.col("refuted"), F.col("tenure.own_from_us")),
                        _ruled_out(),
                        F.col("active_pod"),
                    )
                ),
                F.array(
                    entry(
                        F.when(~F.col("refuted"), F.col("tenure.own_from_us")),
                        F.col("why_active"),
                        F.col("pod"),
                    )
                ),
                F.col("moved"),
                _restored_later(),
                F.col("evidence"),
            ),
            "next_action": F.when(F.col("refuted"), F.lit("Nothing: the suspect was a standby.")).otherwise(
                _next_action()
            ),
            "pods": F.array_distinct(F.concat(F.array("pod"), "tainted")),
            "confirms": F.when(F.col("refuted"), no_texts()).otherwise(F.array("finding_id")),
            "refutes": F.when(F.col("refuted"), F.array("finding_id")).otherwise(no_texts()),
        },
    )


def _ruled_out() -> Column:
    return numbered(
        "%s was the active of %s before the crash: more than 10,000 records without a checkpoint; %s was its standby",
        "active_pod", "task_id", "pod",
    )  # fmt: skip


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
        F.lit(", which should have been wiped after a crash"),
        spread,
    )


def _next_action() -> Column:
    """The agent's own: it knows whether anything is proved, and of one incident there is one instruction."""
    others = F.concat(F.lit(" Then do the same on "), F.array_join("tainted", ", "), F.lit("."))
    return F.concat(
        numbered("Leave the volume of %s where it is. There, for task %s: ", "pod", "task_id"),
        F.col("next_action"),
        F.when(F.size("tainted") > 0, others).otherwise(F.lit("")),
    )  # fmt: skip


RULE = Rule(META, find, remembers=Past(window=Window("skipped-eos-wipe", Severity.INFO, ROLE_US)))
