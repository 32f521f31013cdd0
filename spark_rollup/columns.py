"""Small column expressions that stages and rules share."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from agent.contract.events import Kind

TASK = ("namespace", "application_id", "task_id")
"""Key of a task. The namespace belongs to it, with the cluster before it (`scoped`): staging and production, or two
regions, may share every other name."""

MICROS = 1_000_000

ROUTINE = "routine"
"""Column beside `EVENT_ROW`: summaries and heartbeats without blind intervals: nearly all of the events, all alike."""


def is_routine() -> Column:
    """Return whether an event is routine; bronze keeps these apart."""
    blind = F.coalesce(F.size("blind"), F.lit(0)) > 0
    return (F.col("kind") == Kind.SUMMARY.value) | ((F.col("kind") == Kind.HEARTBEAT.value) & ~blind)


def is_notable() -> Column:
    """Select the events that are not routine."""
    return ~F.col(ROUTINE)


def summary() -> Column:
    """Choose the summaries."""
    return F.col(ROUTINE) & (F.col("kind") == Kind.SUMMARY.value)


def scoped(events: DataFrame) -> DataFrame:
    """Put the cluster before the namespace (`eu-1/shop`), which no namespace of Kubernetes can look like.

    So all that distinguishes tasks, pods and applications by namespace distinguishes clusters. Events that name no
    cluster, as those of contract 1.0, keep their namespace.
    """
    known = F.coalesce("cluster", F.lit("")) != ""
    named = F.when(known, F.concat_ws("/", "cluster", "namespace")).otherwise(F.col("namespace"))
    return events.withColumn("namespace", named)


def rfc3339(at_us: Column | str) -> Column:
    """Write microseconds since the epoch as RFC 3339 UTC with microseconds (the session's zone is UTC)."""
    return F.date_format(F.timestamp_micros(at_us), "yyyy-MM-dd'T'HH:mm:ss.SSSSSS'Z'")


def clock(at_us: Column | str) -> Column:
    """Write microseconds since the epoch for sentences, which are read on another day and in another zone."""
    return F.date_format(F.timestamp_micros(at_us), "yyyy-MM-dd HH:mm:ss 'UTC'")


def seconds(from_us: Column, to_us: Column) -> Column:
    """Seconds between two times in microseconds, as a double."""
    return (to_us - from_us) / F.lit(float(MICROS))


def entry(at_us: Column, what: Column, where: Column) -> Column:
    """Build one entry of an evidence chain; null when the time or the sentence is null."""
    return F.when(
        at_us.isNotNull() & what.isNotNull(),
        F.struct(rfc3339(at_us).alias("at"), what.alias("what"), F.coalesce(where, F.lit("")).alias("where")),
    )


def chain(*parts: Column) -> Column:
    """Join evidence entries and arrays of entries in time order, without nulls and repeats."""
    return F.array_sort(F.array_distinct(F.filter(F.concat(*parts), lambda item: item.isNotNull())))


def numbered(template: str, *values: Column | str) -> Column:
    """Fill a printf template; null as soon as one value is null (Spark itself would print `null`)."""
    columns = [F.col(value) if isinstance(value, str) else value for value in values]
    known = columns[0].isNotNull()
    for column in columns[1:]:
        known = known & column.isNotNull()
    return F.when(known, F.format_string(template, *columns))


def of_store() -> Column:
    """Name the row's store for a sentence; nothing where the statement is about the whole task."""
    return F.coalesce(F.concat(F.lit(", store "), F.col("store")), F.lit(""))


def no_texts() -> Column:
    """Write an empty array of strings."""
    return F.array().cast("array<string>")


def release_parts(version: Column) -> Column:
    """Split a release such as `3.9.2` into an array of numbers, which Spark compares element by element."""
    digits = F.regexp_extract(version, r"^(\d+(\.\d+)*)", 1)
    return F.when(digits != "", F.transform(F.split(digits, r"\."), lambda part: part.try_cast("int")))


def release(*parts: int) -> Column:
    """Write a constant release to compare `release_parts` with."""
    return F.array(*(F.lit(part) for part in parts))
