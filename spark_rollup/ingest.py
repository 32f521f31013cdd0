"""Segments -> bronze Parquet by day: each event once across all runs, unusable lines beside them with a reason."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from agent.contract.events import SCHEMA_MAJOR
from spark_rollup.dedupe import one_row_per_id
from spark_rollup.load import load
from spark_rollup.schemas import QUARANTINE


@dataclass(frozen=True, slots=True)
class Ingested:
    """How many rows one run added."""

    events: int
    quarantined: int


def run(spark: SparkSession, source: Path, bronze: Path) -> Ingested:
    """Add what is new; a run that is repeated, or was cut off half way, adds nothing twice.

    The raw line stays in the table, so fields that this version does not know are not lost.
    """
    loaded = load(spark, source)
    day = F.date_format(F.timestamp_micros("observed_at_us"), "yyyy-MM-dd")
    events = (
        _new(spark, one_row_per_id(loaded.events), bronze / "events", ["id"]).withColumn("day", day).persist()
    )
    rejected = _new(spark, loaded.quarantine, bronze / "quarantine", list(QUARANTINE.names)).persist()
    counts = Ingested(events.count(), rejected.count())
    if counts.events or not (bronze / "events").exists():
        events.repartition("day").sortWithinPartitions(
            "namespace", "application_id", "task_id", "pod", "observed_at_us", "sequence"
        ).write.mode("append").option("compression", "zstd").partitionBy("day").parquet(
            str(bronze / "events")
        )
    if counts.quarantined or not (bronze / "quarantine").exists():
        rejected.coalesce(1).write.mode("append").option("compression", "zstd").parquet(
            str(bronze / "quarantine")
        )
    (bronze / "_bronze.json").write_text(json.dumps({"contract_major": SCHEMA_MAJOR}) + "\n")
    events.unpersist()
    rejected.unpersist()
    return counts


def _new(spark: SparkSession, rows: DataFrame, table: Path, key: list[str]) -> DataFrame:
    if not any(table.glob("**/*.parquet")):
        return rows
    known = spark.read.parquet(str(table)).select(*(F.col(name).alias(f"known_{name}") for name in key))
    same = [F.col(name).eqNullSafe(F.col(f"known_{name}")) for name in key]
    return rows.join(known, same, "left_anti")
