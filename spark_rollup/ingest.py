"""Segments -> bronze Parquet by day: each event once across all runs, unusable lines beside them with a reason.

Only files that no earlier run took are read. The list of what was taken is written last, so a run that is cut off
between any two steps is repeated harmlessly: events that it had added already are recognised by their ids.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from agent.contract.events import SCHEMA_MAJOR
from spark_rollup.bronze import TAKEN, read_events, read_quarantine, write_events
from spark_rollup.config import MARKER
from spark_rollup.dedupe import one_row_per_id
from spark_rollup.load import load_files, segments
from spark_rollup.schemas import QUARANTINE


@dataclass(frozen=True, slots=True)
class Ingested:
    """How many rows one run added, and how many files it read."""

    events: int
    quarantined: int
    files: int


def run(spark: SparkSession, source: Path, bronze: Path) -> Ingested:
    """Add what is new; a run that is repeated, or was cut off half way, adds nothing twice.

    The raw line stays in the table, so fields that this version does not know are not lost.
    """
    found = {str(path): path.stat().st_size for path in segments(source)}
    known = taken(bronze)
    fresh = sorted(path for path, size in found.items() if known.get(path) != size)
    if not fresh and (bronze / MARKER).exists():
        return Ingested(0, 0, 0)
    size_bytes = sum(found[path] for path in fresh)
    counts = _add(spark, fresh, bronze, size_bytes)
    (bronze / MARKER).write_text(json.dumps({"contract_major": SCHEMA_MAJOR}) + "\n")
    _remember(bronze, {path: found[path] for path in fresh})
    return counts


def taken(bronze: Path) -> dict[str, int]:
    """Read which files earlier runs took, with the size that they had."""
    rows = (
        json.loads(line)
        for part in sorted((bronze / TAKEN).glob("*.jsonl"))
        for line in part.read_text(encoding="utf-8").splitlines()
    )
    return {row["file"]: row["size_bytes"] for row in rows}


def _remember(bronze: Path, files: dict[str, int]) -> None:
    lines = [json.dumps({"file": path, "size_bytes": size}) for path, size in sorted(files.items())]
    text = "".join(f"{line}\n" for line in lines)
    folder = bronze / TAKEN
    folder.mkdir(parents=True, exist_ok=True)
    name = hashlib.sha256(text.encode()).hexdigest()[:16]
    part = folder / f".{name}.part"
    part.write_text(text, encoding="utf-8")
    os.replace(part, folder / f"{name}.jsonl")  # noqa: PTH105 - all of it or nothing


def _add(spark: SparkSession, files: Sequence[str], bronze: Path, size_bytes: int) -> Ingested:
    loaded = load_files(spark, files)
    day = F.date_format(F.timestamp_micros("observed_at_us"), "yyyy-MM-dd")
    once = one_row_per_id(loaded.events).withColumn("day", day).persist()
    events = _unknown(spark, once, bronze).persist()
    rejected = loaded.quarantine
    if any((bronze / "quarantine").glob("*.parquet")):
        rejected = _without(rejected, read_quarantine(spark, bronze), list(QUARANTINE.names))
    rejected = rejected.persist()
    counts = Ingested(events.count(), rejected.count(), len(files))
    if counts.events or not (bronze / "events").exists():
        write_events(events, bronze / "events", size_bytes, mode="append")
    if counts.quarantined or not (bronze / "quarantine").exists():
        rejected.coalesce(1).write.mode("append").option("compression", "zstd").parquet(
            str(bronze / "quarantine")
        )
    for frame in (once, events, rejected):
        frame.unpersist()
    return counts


def _unknown(spark: SparkSession, events: DataFrame, bronze: Path) -> DataFrame:
    """Keep events that bronze does not hold; it is asked only about the days and the time that they are from."""
    if not any((bronze / "events").glob("**/*.parquet")):
        return events
    span = events.agg(
        F.min("observed_at_us").alias("first_us"), F.max("observed_at_us").alias("last_us"),
        F.min("day").alias("first_day"), F.max("day").alias("last_day"),
    ).first()  # fmt: skip
    if span is None or span["first_us"] is None:
        return events
    there = read_events(spark, bronze).where(
        F.col("day").between(span["first_day"], span["last_day"])
        & F.col("observed_at_us").between(span["first_us"], span["last_us"])
    )
    return _without(events, there, ["id"])


def _without(rows: DataFrame, there: DataFrame, key: list[str]) -> DataFrame:
    known = there.select(*(F.col(name).alias(f"known_{name}") for name in key))
    same = [F.col(name).eqNullSafe(F.col(f"known_{name}")) for name in key]
    return rows.join(known, same, "left_anti")
