"""Take events out of bronze again: those of a wrong clock, of a test, of an agent that should not have shipped here.

They go to the quarantine with their lines, so nothing is lost; `ingest --again` of their segments brings them back. A
file that is damaged is removed alone: what it held cannot be kept.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from spark_rollup.bronze import snapshots, table
from spark_rollup.bronze.place import Place
from spark_rollup.bronze.store import (
    AT,
    EVENTS,
    REJECTED,
    add_quarantine,
    check_format,
    laid_out,
    read_dated_quarantine,
    read_events,
)
from spark_rollup.columns import ROUTINE
from spark_rollup.config import literal
from spark_rollup.errors import UsageError
from spark_rollup.spark.materialize import materialize

FORGOTTEN = "forgotten"
"""Reason in the quarantine."""

_PARTITION = re.compile(rf"/(day|{ROUTINE})=([^/]+)")


def run(
    spark: SparkSession,
    bronze: Place,
    now_us: int,
    ids: Sequence[str] = (),
    pods: Sequence[str] = (),
    namespace: str | None = None,
    since_us: int | None = None,
    until_us: int | None = None,
) -> int:
    """Take events out: by their ids, and all of some pods.

    Args:
        spark: Session.
        bronze: Where.
        now_us: When this is, for the quarantine.
        ids: Of events.
        pods: All of their events ...
        namespace: ... in this namespace; None = there is only one ...
        since_us: ... from this time on (microseconds since the epoch; None = from the first) ...
        until_us: ... and before this one (None = to the last).

    Returns:
        How many there were.

    Raises:
        UsageError: there is no such event, or several namespaces have such a pod and none was named.
    """
    check_format(bronze)
    of_pod = F.col("pod").isin(list(pods))
    if namespace is not None:
        of_pod &= F.col("namespace") == namespace
    elif pods:
        _check_one_namespace(spark, bronze, pods)
    if since_us is not None:
        of_pod &= F.col("observed_at_us") >= since_us
    if until_us is not None:
        of_pod &= F.col("observed_at_us") < until_us
    chosen = F.coalesce(of_pod | F.col("id").isin(list(ids)), F.lit(False))
    found = materialize(read_events(spark, bronze).where(chosen).select("id", "day", "line"))
    days = sorted(str(row["day"]) for row in found.select("day").distinct().collect())
    if not days:
        raise UsageError(f"{bronze} holds no such event")
    put_aside = found.select(
        F.concat(F.lit("events/day="), "day").alias("file"), F.lit(FORGOTTEN).alias("reason"),
        F.lit("removed by `forget`").alias("detail"), "line", F.lit(now_us).alias(AT),
    )  # fmt: skip
    add_quarantine(put_aside, bronze)  # first: cut off here, they are in both places
    snapshots.withdraw(bronze, days[0], days[-1])
    for day in days:
        left = read_events(spark, bronze).where((F.col("day") == day) & ~chosen)
        table.replace(laid_out(left, 0), bronze / EVENTS, f"day = '{day}'")
    return found.count()


def remove_file(spark: SparkSession, bronze: Place, path: str) -> int:
    """Remove a data file, by its name, from the tables of events, quarantine or snapshots without reading it.

    A snapshot goes as a whole.

    Returns:
        How many other files its day and kind had; they are rewritten.

    Raises:
        UsageError: there is no such file, or it is all that is left of a removed day.
    """
    check_format(bronze)
    frames = {EVENTS: read_events(spark, bronze), REJECTED: read_dated_quarantine(spark, bronze)}
    known = {name: frame.inputFiles() for name, frame in frames.items()}
    known[snapshots.KEPT] = snapshots.files(spark, bronze)
    sought = path.rpartition("/")[2]
    found = [(name, one) for name in known for one in known[name] if one.rpartition("/")[2] == sought]
    if not found:
        raise UsageError(f"{bronze} has no such file: {path}")
    name, chosen = found[0]
    folder = chosen.rpartition("/")[0]
    beside = [one for one in known[name] if one.rpartition("/")[0] == folder and one != chosen]
    parts = dict(_PARTITION.findall(folder))
    if name == snapshots.KEPT:
        if parts["day"] <= snapshots.note(bronze).removed:
            raise UsageError(
                f"{path} is all that is left of {parts['day']}, whose events were removed: restore it, or remove "
                f"{bronze / snapshots.NOTE} and {bronze / snapshots.KEPT} and lose all removed days"
            )
        beside = []
    if parts:
        snapshots.withdraw(bronze, parts["day"], parts["day"])
    where = " AND ".join(
        f"{key} = {value if key == ROUTINE else repr(value)}" for key, value in parts.items()
    )
    if not beside:
        table.drop(spark, bronze / name, where or "true")
        return 0
    reader = spark.read.schema(frames[name].schema).option("basePath", str(bronze / name))
    left = reader.parquet(*map(literal, beside))
    table.replace(laid_out(left, 0) if parts else left.coalesce(1), bronze / name, where or None)
    return len(beside)


def _check_one_namespace(spark: SparkSession, bronze: Place, pods: Sequence[str]) -> None:
    rows = read_events(spark, bronze).where(F.col("pod").isin(list(pods))).select("namespace").distinct()
    names = sorted(str(row["namespace"]) for row in rows.collect())
    if len(names) > 1:
        listed = ", ".join(names[:20])
        raise UsageError(f"several namespaces have such a pod: name one with --namespace: {listed}")
