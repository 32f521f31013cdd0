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
