"""May a pod be restarted? For each task on it: how its copy is, who else has a good one, what a kill does."""

from __future__ import annotations

from dataclasses import replace
from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from agent.contract.events import Change, Severity, Status
from spark_rollup.columns import TASK, clock, no_texts, numbered, release
from spark_rollup.facts.gaps import LOST, SILENT
from spark_rollup.facts.levels import has_ended
from spark_rollup.judging.alone import refutations, unrefuted
from spark_rollup.judging.base import Facts
from spark_rollup.judging.copies import copies
from spark_rollup.judging.fleet import attach, concerns_task, prefixed, same_task
from spark_rollup.judging.past import Past, last
from spark_rollup.report.restart_answer import CLEAN_ONLY, DAMAGED, KEEP, NOT_RUNNING, RESTORE, SAFE, UNKNOWN
from spark_rollup.schemas import RESTARTS
from spark_rollup.spark.single_partition import single_partition

KEPT = (((2, 6), (2, 6, 1)), ((3, 8), (4, 1, 2)), ((4, 2), (4, 2, 1)))
"""First and last releases on which an exactly-once task keeps its checkpoint while it runs, so that a kill leads to no
wipe (KAFKA-10362, KAFKA-20685)."""

WALKS_AWAY = ((4, 3), (4, 3, 1))
"""First and last release on which a task that moves away may be deleted before it comes back (KAFKA-20805)."""

REMEMBERS = Past(extremes=(last("offset"), last("bytes")))
"""How far behind a copy is, and what its restoration costs."""

_POD = ["namespace", "pod"]
_COPY = [*TASK, "pod"]


def restarts(facts: Facts, findings: DataFrame) -> DataFrame:
    """Answer for every task that every pod holds or has damaged.

    Args:
        facts: All facts.
        findings: `FINDING`: what rules and `verify` found, and what agents say alone. What they refute does not count.

    Output columns: `RESTARTS`.
    Grain: one row per copy of a task, and one without a task where a finding is about all of an application on a pod.
    """
    facts = replace(facts, refuted=refutations(findings))
    follow = _to_follow(findings)
    states = _with_doubt(_with_damage(copies(facts), facts, follow), facts)
    story = _with_others(states)
    settings = facts.settings.select(
        "namespace", "application_id", "processing_guarantee", "release_low", "release_high"
    )
    rows = story.join(_saved(facts), _COPY, "left").join(settings, ["namespace", "application_id"], "left")
    answered = rows.withColumn("kinds", _kinds()).select(
        *_COPY, F.col("kinds")[0].alias("answer"), "kinds", "follow", "first_action", "healthy_elsewhere",
        "ill_elsewhere", F.when(F.size("healthy_elsewhere") == 0, F.col("bytes")).alias("restore_bytes"),
        _unclean().alias("unclean_stop"), "doubt",
    )  # fmt: skip
    return answered.select(*RESTARTS.names).unionByName(_without_task(follow))


def doubts(facts: Facts, *, of_parts: bool = False) -> DataFrame:
    """Say of which pods it is unknown what they hold by now, and why.

    A pod is not known while it is silent or blind, and until a whole round of summaries came after something was lost;
    while its agent counts findings or tasks that are not in the input; and where something was lost of an agent that
    counts none. One whose agent said that it ends is taken at its word for a moment; what runs there later is not seen.

    Args:
        facts: All facts.
        of_parts: Whether blindness of one application or task counts: for the pod it does, for its other tasks not.

    Output columns: namespace, pod, doubt, gone (its agent had announced its end).
    Grain: one row per pod.
    """
    silent = facts.gaps.where((F.col("cause") == SILENT) & (F.col("to_us") == facts.as_of_us)).select(
        *_POD, F.lit(0).alias("first"), F.concat(F.lit("not heard since "), clock("from_us")).alias("doubt")
    )
    gone = facts.heard.where(has_ended(facts.as_of_us)).select(
        *_POD,
        F.lit(1).alias("first"),
        F.concat(F.lit("its agent ended at "), clock("last_us")).alias("doubt"),
    )
    single_partition = F.col("application_id").isNull() & F.col("task_id").isNull()
    blind = (
        _unrepaired(facts)
        .where(single_partition | F.lit(of_parts))
        .select(
            *_POD,
            F.lit(2).alias("first"),
            F.concat(F.lit("not watched at "), clock("from_us")).alias("doubt"),
        )
    )
    number = F.col("missed_criticals") + F.col("missed_warnings")
    several = F.when(number == 1, F.lit("finding that is")).otherwise(F.lit("findings that are"))
    missed = facts.heard.where(number > 0).select(
        *_POD,
        F.lit(3).alias("first"),
        numbered("its agent counts %d open %s not in the input", number, several).alias("doubt"),
    )
    lost = facts.gaps.where(F.col("cause") == LOST).select(*_POD).distinct()
    forgetful = (
        facts.heard.where(F.col("level_us").isNull())
        .join(lost, _POD, "left_semi")
        .select(
            *_POD,
            F.lit(4).alias("first"),
            F.lit("events of its agent are lost, and it does not say again what is open").alias("doubt"),
        )
    )
    unnamed = facts.heard.where(F.col("missed_tasks") > 0).select(
        *_POD,
        F.lit(5).alias("first"),
        numbered("tasks that its agent watches and that are not in the input: %d", "missed_tasks").alias(
            "doubt"
        ),
    )
    unknown = reduce(DataFrame.unionByName, (silent, gone, blind, missed, forgetful, unnamed))
    return unknown.groupBy(*_POD).agg(
        F.min_by("doubt", "first").alias("doubt"), F.max(F.col("first") == 1).alias("gone")
    )


def known_pods(facts: Facts) -> DataFrame:
    """List every pod that was heard of, each with what puts it in doubt.

    Output columns: namespace, pod, doubt (null: none), gone (its agent had announced its end).
    Grain: one row per pod.
    """
    known = facts.heard.select("namespace", "pod").distinct()
    return known.join(doubts(facts, of_parts=True), _POD, "left").withColumn(
        "gone", F.coalesce("gone", F.lit(False))
    )


def _unrepaired(facts: Facts) -> DataFrame:
    """Take the unwatched times after which no pod has reported everything again."""
    heard = facts.heard.select(*_POD, "last_us")
    return single_partition(facts.unwatched.join(heard, _POD, "inner")).where(
        F.col("until_us") >= F.col("last_us")
    )


def _to_follow(findings: DataFrame) -> DataFrame:
    """Take what has to be done first: open criticals, by every pod that one without a task names.

    Output columns: `TASK` (task_id null = the whole application there), pod, follow, first_action.
    """
    open_ = (F.col("status") == Status.OPEN.value) & (F.col("severity") == Severity.CRITICAL.value)
    pods = F.when(F.col("task_id").isNull(), F.col("pods")).otherwise(F.array("pod"))
    rows = findings.where(open_).withColumn("place", F.explode(pods)).where(F.col("place").isNotNull())
    return rows.groupBy(*TASK, F.col("place").alias("pod")).agg(
        F.array_sort(F.collect_set("detector")).alias("follow"),
        F.array_join(F.array_sort(F.collect_set("next_action")), " ").alias("first_action"),
    )


def _without_task(follow: DataFrame) -> DataFrame:
    no_pods = no_texts()
    return follow.where(F.col("task_id").isNull()).select(
        *_COPY, F.lit(DAMAGED).alias("answer"), F.array(F.lit(DAMAGED)).alias("kinds"), "follow", "first_action",
        no_pods.alias("healthy_elsewhere"), no_pods.alias("ill_elsewhere"),
        F.lit(None).cast("bigint").alias("restore_bytes"), F.lit("").alias("unclean_stop"),
        F.lit(None).cast("string").alias("doubt"),
    )  # fmt: skip


def _with_damage(held: DataFrame, facts: Facts, follow: DataFrame) -> DataFrame:
    """Add copies that no process holds but that are damaged or exposed, and to each what has to be followed first.

    Output columns: `TASK`, pod, bytes, ill, healthy, now (held at the last reading), exposed, follow, first_action.
    """
    exposed = unrefuted(facts.local, facts.refuted).where(
        (F.col("detector") == "stale-eos-checkpoint")
        & (F.col("status") == Status.OPEN.value)
        & F.col("task_id").isNotNull()
    )
    at_risk = exposed.groupBy(*_COPY).agg(F.first("next_action").alias("risk_action"))
    damaged = follow.where(F.col("task_id").isNotNull())
    now = facts.held.where(F.col("lasting") & ~F.col("cleaner")).select(*_COPY).distinct()
    ill = single_partition(held.select(*_COPY, "bytes", "ill", "healthy").join(damaged, _COPY, "full"))
    rows = (
        single_partition(ill.join(at_risk, _COPY, "full"))
        .join(now.withColumn("now", F.lit(True)), _COPY, "left")
        .withColumns({"now": F.coalesce("now", F.lit(False)), "exposed": F.col("risk_action").isNotNull()})
    )
    # of a process that is gone an exposure is no longer a risk: the next start trusts what is there
    dead = F.col("exposed") & ~F.col("now")
    known = F.coalesce("follow", no_texts())
    return rows.select(
        *_COPY, "bytes", F.coalesce("ill", F.lit("")).alias("ill"), "now", "exposed",
        (F.coalesce("healthy", F.lit(False)) & F.col("now") & F.col("follow").isNull()).alias("healthy"),
        F.when(dead, F.array_union(known, F.array(F.lit("stale-eos-checkpoint")))).otherwise(known).alias("follow"),
        F.when(dead, F.concat_ws(" ", "first_action", "risk_action")).otherwise(F.col("first_action")).alias(
            "first_action"
        ),
    )  # fmt: skip


def _with_doubt(rows: DataFrame, facts: Facts) -> DataFrame:
    """Add `doubt`: why the present state of the copy is unknown; null = it is watched."""
    gaps = prefixed(_unrepaired(facts), "gap_")
    same = (
        (F.col("gap_namespace") == F.col("namespace")) & (F.col("gap_pod") == F.col("pod")) & concerns_task()
    )
    unseen = numbered("not watched at %s", clock("gap_from_us"))
    found = {"unseen": F.max_by(unseen, "gap_from_us")}
    keyed = rows.withColumn("row_key", F.concat_ws("/", *_COPY))
    return (
        attach(keyed, gaps, same, found)
        .join(doubts(facts), _POD, "left")
        .withColumns({"doubt": F.coalesce("doubt", "unseen"), "gone": F.coalesce("gone", F.lit(False))})
        .drop("unseen")
    )


def _with_others(states: DataFrame) -> DataFrame:
    """Add who else has the task: healthy_elsewhere, ill_elsewhere, ill_held (a bad copy works), unwatched."""
    known = F.col("doubt").isNull()
    why = F.concat_ws(
        " and ",
        F.when((F.size("follow") > 0) | F.col("ill").contains("damaged"), F.lit("(damaged)")),
        F.when(F.col("ill").contains("behind"), F.regexp_extract("ill", r"\([0-9]+ records behind\)", 0)),
        F.when(~F.col("now"), F.lit("(not held)")),
        F.when(~known, F.concat(F.lit("("), F.col("doubt"), F.lit(")"))),
    )
    fit = F.col("healthy") & known
    quiet = ~known & ~F.col("gone")  # who said goodbye has no copy that works
    others = states.select(
        *_COPY, (F.col("now") & known).alias("now"), fit.alias("fit"), quiet.alias("quiet"), why.alias("why")
    )
    same = same_task("other_") & (F.col("other_pod") != F.col("pod"))
    other = F.col("other_pod").isNotNull()
    ill = other & ~F.col("other_fit")
    found = {
        "healthy_elsewhere": F.array_sort(F.collect_set(F.when(F.col("other_fit"), F.col("other_pod")))),
        "ill_elsewhere": F.array_sort(F.collect_set(F.when(ill, F.concat_ws(" ", "other_pod", "other_why")))),
        "ill_held": F.coalesce(F.max(ill & F.col("other_now")), F.lit(False)),
        "unwatched": F.coalesce(F.max(ill & F.col("other_quiet")), F.lit(False)),
    }
    return attach(states, prefixed(others, "other_"), same, found)


def _kinds() -> Column:
    """List all answers that hold for a copy, the worst first."""
    alone = F.size("healthy_elsewhere") == 0
    running = F.col("now")
    doubtful = F.col("doubt").isNotNull() | (alone & F.col("unwatched"))
    only = running & ~doubtful & F.col("healthy") & alone & F.col("ill_held")
    known = F.filter(
        F.array(
            F.when(F.size("follow") > 0, F.lit(DAMAGED)),
            F.when(running & F.col("exposed"), F.lit(CLEAN_ONLY)),
            F.when(only, F.lit(KEEP)),
            F.when(running & doubtful | F.col("doubt").isNotNull(), F.lit(UNKNOWN)),
            F.when(running & alone & ~doubtful & ~only, F.lit(RESTORE)),
        ),
        lambda kind: kind.isNotNull(),
    )
    harmless = F.array(F.when(running, F.lit(SAFE)).otherwise(F.lit(NOT_RUNNING)))
    return F.when(F.size(known) > 0, known).otherwise(harmless)


def _saved(facts: Facts) -> DataFrame:
    """Add `saved`: whether the task's checkpoint is there, by what was last seen of it (null = never seen)."""
    gone = (Change.CHECKPOINT_DELETED.value, Change.TASK_DELETED.value)
    steps = facts.saved.select(*_COPY, "at_us", F.lit(True).alias("there")).unionByName(
        facts.marks.where(F.col("change").isin(*gone)).select(*_COPY, "at_us", F.lit(False).alias("there"))
    )
    return steps.groupBy(*_COPY).agg(F.max_by("there", F.struct("at_us", "there")).alias("saved"))


def _unclean() -> Column:
    """Say what happens to this copy if the process is killed instead of stopped."""
    exactly_once = F.col("processing_guarantee").startswith("exactly_once")
    may_keep = reduce(Column.__or__, (_may_be(*ends) for ends in KEPT))
    surely_keeps = reduce(Column.__or__, (_is_surely(*ends) for ends in KEPT))
    issue = "the next start trusts what is there, committed or not (KAFKA-20685)"
    deleted = F.when(
        _may_be(*WALKS_AWAY),
        F.lit(
            "; if the task moves away meanwhile, its directory may be deleted before it comes back (KAFKA-20805)"
        ),
    )
    main = (
        F.when(
            F.col("exposed"), F.lit("uncommitted records may stay in the store and are trusted (KAFKA-20685)")
        )
        .when(
            F.col("processing_guarantee").isNull(),
            F.lit("depends on the processing guarantee, which is not known"),
        )
        .when(~exactly_once, F.lit("records since the last checkpoint are replayed onto the store"))
        .when(
            F.coalesce(F.col("saved"), F.lit(True)) & F.coalesce(surely_keeps, F.lit(False)),
            F.when(F.col("saved"), F.lit(f"the store is not wiped: {issue}")).otherwise(
                F.lit(f"if it has a checkpoint, the store is not wiped: {issue}")
            ),
        )
        .when(
            F.coalesce(F.col("saved"), F.lit(True)) & F.coalesce(may_keep, F.lit(True)),
            F.lit(f"depends on the release, which is not known for sure: up to 4.2.1 it may be that {issue}"),
        )
        .otherwise(F.lit("the store is wiped at the next start and restored"))
    )
    held = F.concat(main, F.coalesce(deleted, F.lit("")))
    return F.when(F.col("now"), held).otherwise(F.lit("not running: no process holds it there"))


def _may_be(first: tuple[int, ...], last: tuple[int, ...]) -> Column:
    return (F.col("release_low") <= release(*last)) & (F.col("release_high") >= release(*first))


def _is_surely(first: tuple[int, ...], last: tuple[int, ...]) -> Column:
    return (F.col("release_low") >= release(*first)) & (F.col("release_high") <= release(*last))
