"""Take events out of bronze again: those of a wild clock, of a test, of an agent that should not have shipped here.

They go to the quarantine with their lines, so nothing is lost; `ingest --again` of their segments brings them back.
"""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as F

from spark_rollup.bronze import snapshots
from spark_rollup.bronze.store import AT, read_events, write_quarantine
from spark_rollup.errors import UsageError
from spark_rollup.intake.compact import of_day, rewrite

FORGOTTEN = "forgotten"
"""Reason in the quarantine."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which events to forget.

    Args of the dataclass:
        ids: Events by their ids.
        pods: All events of these pods ...
        namespace: ... in this namespace; None = there is only one ...
        since_us: ... from this time on (microseconds since the epoch; None = from the first) ...
        until_us: ... and before this one (None = to the last).
    """

    ids: Sequence[str] = ()
    pods: Sequence[str] = ()
    namespace: str | None = None
    since_us: int | None = None
    until_us: int | None = None


def run(spark: SparkSession, bronze: Path, wanted: Wanted, now_us: int) -> int:
    """Take events out.

    Args:
        spark: Session.
        bronze: Bronze directory.
        wanted: Which.
        now_us: Microseconds since the epoch.

    Returns:
        How many there were.

    Raises:
        UsageError: there is no such event, or several namespaces have such a pod and none was named.
    """
    chosen = _chosen(wanted)
    if wanted.pods and wanted.namespace is None:
        _check_one_namespace(spark, bronze, wanted.pods)
    found = read_events(spark, bronze).where(chosen).select("id", "day", "line").distinct().localCheckpoint()
    days = sorted(str(row["day"]) for row in found.select("day").distinct().collect())
    if not days:
        raise UsageError(f"{bronze} holds no such event")
    put_aside = found.select(
        F.concat(F.lit("events/day="), "day").alias("file"), F.lit(FORGOTTEN).alias("reason"),
        F.lit("taken out by `forget`").alias("detail"), "line", F.lit(now_us).alias(AT),
    )  # fmt: skip
    write_quarantine(
        put_aside, bronze / "quarantine", "append"
    )  # first: cut off here, they are in both places
    for day in days:
        snapshots.withdraw(bronze, day)
        rows = of_day(spark, bronze, day)
        left = rows.where(~F.coalesce(chosen, F.lit(False)))
        rewrite(spark, bronze, day, left, left)
        place = bronze / "events" / f"day={day}"
        if not any(place.rglob("*.parquet")):
            shutil.rmtree(place)
        snapshots.withdraw(bronze, day)
    return found.count()


def _check_one_namespace(spark: SparkSession, bronze: Path, pods: Sequence[str]) -> None:
    rows = (
        read_events(spark, bronze)
        .where(F.col("pod").isin(list(pods)))
        .select("namespace")
        .distinct()
        .collect()
    )
    names = sorted(str(row["namespace"]) for row in rows)
    if len(names) > 1:
        raise UsageError(
            f"several namespaces have such a pod: name one with --namespace: {', '.join(names[:20])}"
        )


def _chosen(wanted: Wanted) -> Column:
    of_pod = F.col("pod").isin(list(wanted.pods))
    if wanted.namespace is not None:
        of_pod &= F.col("namespace") == wanted.namespace
    if wanted.since_us is not None:
        of_pod &= F.col("observed_at_us") >= wanted.since_us
    if wanted.until_us is not None:
        of_pod &= F.col("observed_at_us") < wanted.until_us
    return of_pod | F.col("id").isin(list(wanted.ids))
