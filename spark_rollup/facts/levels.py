"""What each agent says is open, by its newest heartbeat, against the findings that are in the input.

A finding is an event, and an event can be lost, or be older than the input. A heartbeat counts what is open: where it
counts more than is known here, "nothing found" means unknown.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from agent.contract.events import Kind, Severity, Status
from spark_rollup.facts.heartbeats import BOOT, SLOT_US

_POD = ["namespace", "pod"]
LEVEL = ("level_last", "level_us", "criticals", "warnings", "tasks")
"""The newest heartbeat that counts (its sequence and time), and its counts."""


def settled(said: DataFrame, counted: DataFrame, events: DataFrame) -> DataFrame:
    """Close open findings that a later heartbeat of the same boot no longer names: the event of their end is lost.

    An agent that was restarted may have forgotten them: what an earlier boot said last stays as it was.

    Args:
        said: `last_local_findings`.
        counted: `heartbeats.beats`.
        events: `EVENT_ROW`.

    Output columns: those of `said`.
    """
    level = _named(events, counted).where(F.size("open_ids") == F.col("criticals") + F.col("warnings"))
    listed = level.select(*_POD, F.col("boot_id").alias("level_boot"), "level_last", "level_us", "open_ids")
    is_over = (
        (F.col("status") == Status.OPEN.value)
        & (F.col("severity") != Severity.INFO.value)
        & (F.col("heard_boot") == F.col("level_boot"))
        & (F.col("heard_sequence") < F.col("level_last"))
        & ~F.array_contains("open_ids", F.col("finding_id"))
    )
    ended = {name: F.col("level_us") for name in ("resolved_at_us", "observed_at_us")}
    ended["status"] = F.lit(Status.RESOLVED.value)
    rows = said.join(listed, _POD, "left").withColumn("is_over", F.coalesce(is_over, F.lit(False)))
    changed = {name: F.when(F.col("is_over"), value).otherwise(F.col(name)) for name, value in ended.items()}
    return rows.withColumns(changed).select(*said.columns)


def with_missed(last: DataFrame, counted: DataFrame, events: DataFrame, said: DataFrame) -> DataFrame:
    """Add to each pod what its agent counts as open and what of that is not known.

    Of findings that were resolved later than the heartbeat it is known that they were open. Where a heartbeat names
    fewer ids than it counts, the counts decide.

    Args:
        last: `heartbeats.last_words`.
        counted: `heartbeats.beats`.
        events: `EVENT_ROW`.
        said: `last_local_findings`.

    Output columns: those of `last`, boot_us (when the newest boot began), level_us (null = the newest boot counts
        nothing), missed_criticals, missed_warnings, missed (ids, as far as they are named),
        missed_tasks (so many more are watched than any event of the pod names).
    Grain: one row per pod.
    """
    level = _named(events, counted)
    was_open = (F.col("status") == Status.OPEN.value) | (F.col("heard_us") >= F.col("level_us"))
    critical = F.col("severity") == Severity.CRITICAL.value
    known = (
        said.where(F.col("severity") != Severity.INFO.value)
        .join(level.select(*_POD, "level_us"), _POD, "inner")
        .where(was_open)
        .groupBy(*_POD)
        .agg(
            F.collect_set(F.when(critical, F.col("finding_id"))).alias("known_criticals"),
            F.collect_set("finding_id").alias("known"),
        )
    )
    seen = events.where(F.col("task_id").isNotNull()).groupBy(*_POD)
    seen_tasks = seen.agg(F.count_distinct("application_id", "task_id").alias("seen_tasks"))
    nothing = F.array().cast("array<string>")
    rows = (
        last.join(level.drop("pod_uid", "boot_id"), _POD, "left")
        .join(known, _POD, "left")
        .join(seen_tasks, _POD, "left")
        .withColumns({name: F.coalesce(name, nothing) for name in ("open_ids", "known_criticals", "known")})
    )
    first = F.slice("open_ids", 1, F.greatest(F.least("criticals", F.size("open_ids")), F.lit(0)))
    more = _missing("criticals", first, "known_criticals")
    both = _missing(F.col("criticals") + F.col("warnings"), F.col("open_ids"), "known")
    return rows.select(
        *last.columns, "boot_us", "level_us",
        more.alias("missed_criticals"),
        F.greatest(both - more, F.lit(0)).alias("missed_warnings"),
        F.array_except("open_ids", "known").alias("missed"),
        F.greatest(
            F.coalesce(F.col("tasks") - F.coalesce("seen_tasks", F.lit(0)), F.lit(0)), F.lit(0)
        ).alias("missed_tasks"),
    )  # fmt: skip


def has_ended(as_of_us: int) -> Column:
    """Return whether a pod's agent ended with a last word, some time ago: nothing is counted there any more.

    What is open on its volume is said again when an agent is there again.
    """
    return F.col("stopped") & (F.col("last_us") < as_of_us - SLOT_US)


def _missing(number: Column | str, ids: Column, known: str) -> Column:
    """Return how many of so many, some of which are named, are not known; 0 where nothing was counted."""
    counted = F.col(number) if isinstance(number, str) else number
    unnamed = counted - F.size(known)
    return F.coalesce(F.greatest(unnamed, F.size(F.array_except(ids, known)), F.lit(0)), F.lit(0))


def _named(events: DataFrame, counted: DataFrame) -> DataFrame:
    """Add to `newest_levels` the ids that its heartbeat names: open_ids (empty = none, or it is not read)."""
    level = newest_levels(counted)
    ids = (
        events.where((F.col("kind") == Kind.HEARTBEAT.value) & (F.size("open_ids") > 0))
        .select(*BOOT, F.col("sequence").alias("level_last"), "open_ids")
        .join(F.broadcast(level.select(*BOOT, "level_last")), [*BOOT, "level_last"], "left_semi")
        .groupBy(*_POD)
        .agg(F.max("open_ids").alias("open_ids"))
    )
    nothing = F.array().cast("array<string>")
    return level.join(ids, _POD, "left").withColumn("open_ids", F.coalesce("open_ids", nothing))


def newest_levels(counted: DataFrame) -> DataFrame:
    """Take the newest counts of each pod's newest boot.

    Input columns: those of `heartbeats.beats`.
    Output columns: `BOOT`, boot_us, `LEVEL` (null = it counts nothing: its agent is older than contract 1.3).
    Grain: one row per pod.
    """
    boots = counted.groupBy(*BOOT).agg(
        F.min("at_first_us").alias("boot_us"),
        F.max(F.struct("last_us", "at_last_us", "last")).alias("newest"),
        F.max_by(F.struct(*LEVEL), "level_last").alias("level"),
    )
    whole = F.struct("pod_uid", "boot_id", "boot_us", "level")
    newest = boots.groupBy(*_POD).agg(F.max_by(whole, F.struct("newest", "boot_id")).alias("boot"))
    return newest.select(*_POD, "boot.pod_uid", "boot.boot_id", "boot.boot_us", "boot.level.*")
