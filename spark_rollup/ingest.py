"""Segments -> bronze Parquet by day: each event once across all runs, unusable lines beside them with a reason.

Only files (of a topic: offsets) that no earlier run took are read. The list of what was taken is written last, so a
run that is cut off between any two steps is repeated harmlessly: events that it had added already are recognised by
their ids.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping, Set
from dataclasses import dataclass, field
from pathlib import Path

from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F

from agent.contract.events import SCHEMA_MAJOR
from spark_rollup import snapshots
from spark_rollup.bronze import TAKEN, read_events, read_quarantine, write_events
from spark_rollup.config import MARKER
from spark_rollup.dedupe import one_row_per_id
from spark_rollup.load import CUT_OFF
from spark_rollup.schemas import QUARANTINE
from spark_rollup.sources.base import Batch, Source
from spark_rollup.sources.files import Directory, FileSource

LISTS = 100
"""So many lists of what was taken are summed up to one: about a day of runs."""


@dataclass(frozen=True, slots=True)
class Ingested:
    """What one run did.

    Args of the dataclass:
        events: Rows that it added to bronze.
        quarantined: Rows that it added to the quarantine.
        files: Files that it read, or partitions of a topic.
        unread: Files that could not be read to their ends, and why: they are left for the next run.
    """

    events: int
    quarantined: int
    files: int
    unread: Mapping[str, str] = field(default_factory=dict)


def run(spark: SparkSession, source: Path | Source, bronze: Path) -> Ingested:
    """Add what is new; a run that is repeated, or was cut off half way, adds nothing twice.

    The raw line stays in the table, so fields that this version does not know are not lost.

    Raises:
        SourceError: the source does not answer, refuses, or has not what was asked for.
    """
    chosen = FileSource(Directory(source)) if isinstance(source, Path) else source
    return take(spark, chosen.batch(spark, taken(bronze)), bronze)


def take(spark: SparkSession, batch: Batch, bronze: Path) -> Ingested:
    """Add one batch; the list of what was taken is written last."""
    if not batch.parts and (bronze / MARKER).exists():
        return Ingested(0, 0, 0)
    counts = _add(spark, batch, bronze)
    (bronze / MARKER).write_text(json.dumps({"contract_major": SCHEMA_MAJOR}) + "\n")
    places = {place: until for place, until in batch.taken.items() if place not in counts.unread}
    _remember(bronze, places, batch.gone)
    return counts


def taken(bronze: Path) -> dict[str, int]:
    """Read what earlier runs took: files with the size that they had, partitions with the next offset."""
    rows = (
        json.loads(line)
        for part in sorted((bronze / TAKEN).glob("*.jsonl"))
        for line in part.read_text(encoding="utf-8").splitlines()
    )
    return {row["place"]: row["until"] for row in rows}


def _remember(bronze: Path, places: Mapping[str, int], gone: Set[str]) -> None:
    """Write one more list; the hundredth sums all of them up, without what is gone from the source.

    Cut off before the old lists are removed, they are summed up once more. A file that comes back is read again, and
    its events are known by their ids.
    """
    folder = bronze / TAKEN
    folder.mkdir(parents=True, exist_ok=True)
    lists = sorted(folder.glob("*.jsonl"))
    number = int(lists[-1].name.partition("-")[0]) + 1 if lists else 0  # later lists win
    if len(lists) < LISTS:
        _write_list(folder, number, places)
        return
    left = {place: until for place, until in taken(bronze).items() if place not in gone}
    _write_list(folder, number, {**left, **places})
    for path in lists:
        path.unlink()


def _write_list(folder: Path, number: int, places: Mapping[str, int]) -> None:
    lines = [json.dumps({"place": place, "until": until}) for place, until in sorted(places.items())]
    text = "".join(f"{line}\n" for line in lines)
    name = f"{number:08d}-{hashlib.sha256(text.encode()).hexdigest()[:16]}"
    part = folder / f".{name}.part"
    part.write_text(text, encoding="utf-8")
    os.replace(part, folder / f"{name}.jsonl")  # noqa: PTH105 - all of it or nothing


def _add(spark: SparkSession, batch: Batch, bronze: Path) -> Ingested:
    span = _span(batch.loaded.events)
    events, number = _fresh(spark, batch.loaded.events, bronze, span)
    rejected = batch.loaded.quarantine.persist()
    torn = [row["file"] for row in rejected.where(F.col("reason") == CUT_OFF).select("file").collect()]
    unread = batch.unread(torn)
    fresh = rejected.where((F.col("reason") != CUT_OFF) | ~F.col("file").isin(list(unread)))
    if any((bronze / "quarantine").glob("*.parquet")):
        fresh = _without(fresh, read_quarantine(spark, bronze), list(QUARANTINE.names))
    counts = Ingested(number, fresh.count(), batch.parts, unread)
    if counts.events or not (bronze / "events").exists():
        day = F.date_format(F.timestamp_micros("observed_at_us"), "yyyy-MM-dd")
        _withdraw(bronze, span)
        write_events(events.withColumn("day", day), bronze / "events", batch.size_bytes, mode="append")
    _withdraw(bronze, span)  # what began meanwhile; after a run that was cut off here nothing may be new
    if counts.quarantined or not (bronze / "quarantine").exists():
        fresh.coalesce(1).write.mode("append").option("compression", "zstd").parquet(
            str(bronze / "quarantine")
        )
    spark.catalog.clearCache()
    return counts


def _span(events: DataFrame) -> Row | None:
    """Find the time and the days that events are from; None = there are none."""
    at = F.timestamp_micros("observed_at_us")
    span = events.agg(
        F.min("observed_at_us").alias("first_us"), F.max("observed_at_us").alias("last_us"),
        F.date_format(F.min(at), "yyyy-MM-dd").alias("first_day"),
        F.date_format(F.max(at), "yyyy-MM-dd").alias("last_day"),
    ).first()  # fmt: skip
    return None if span is None or span["first_us"] is None else span


def _withdraw(bronze: Path, span: Row | None) -> None:
    """Let no snapshot hold that lacks these events."""
    if span is not None:
        snapshots.withdraw(bronze, span["first_day"])


def _fresh(spark: SparkSession, events: DataFrame, bronze: Path, span: Row | None) -> tuple[DataFrame, int]:
    """Keep each event once that bronze does not hold, and count them.

    Repeats are rare and ids are short: only ids are gathered and compared, events stay where they are.
    """
    ids = events.groupBy("id").agg(F.count("*").alias("copies")).persist()
    there = _known(spark, ids, bronze, span).localCheckpoint()
    twice = ids.where(F.col("copies") > 1).select("id")
    repeated = twice.unionByName(there).distinct().localCheckpoint()
    number = ids.count() - there.count()
    once = one_row_per_id(events.join(repeated.join(there, "id", "left_anti"), "id", "left_semi"))
    return events.join(repeated, "id", "left_anti").unionByName(once), number


def _known(spark: SparkSession, ids: DataFrame, bronze: Path, span: Row | None) -> DataFrame:
    """List the ids that bronze holds; it is asked only about the days and the time that the events are from."""
    if span is None or not any((bronze / "events").glob("**/*.parquet")):
        return ids.select("id").limit(0)
    there = read_events(spark, bronze).where(
        F.col("day").between(span["first_day"], span["last_day"])
        & F.col("observed_at_us").between(span["first_us"], span["last_us"])
    )
    # bronze may hold an event twice while a compaction is half done
    return there.select("id").join(ids.select("id"), "id", "left_semi").distinct()


def _without(rows: DataFrame, there: DataFrame, key: list[str]) -> DataFrame:
    known = there.select(*(F.col(name).alias(f"known_{name}") for name in key))
    same = [F.col(name).eqNullSafe(F.col(f"known_{name}")) for name in key]
    return rows.join(known, same, "left_anti")
