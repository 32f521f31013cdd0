"""Compaction loses nothing: a file that cannot be read is told, and stays."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import functions as F

from spark_rollup import clock
from spark_rollup.bronze import snapshots
from spark_rollup.bronze.snapshots import DAY_US
from spark_rollup.bronze.store import AT, read_events, read_quarantine, write_quarantine
from spark_rollup.cli import main
from spark_rollup.columns import ROUTINE
from spark_rollup.errors import DamagedError
from spark_rollup.intake import compact, ingest
from spark_rollup.intake.compact import KEEP_DAYS, STAGING
from spark_rollup.schemas import EVENT_ROW, HEARD, QUARANTINE, UNWATCHED
from tests.spark_rollup.support.fleet import Fleet

pytestmark = [pytest.mark.spark, pytest.mark.timeout(300)]

DAY_S = 86_400


def fleet(name: str, day: int) -> Fleet:
    told = Fleet(name)
    told.pod("pod-a", begins_s=day * DAY_S, ends_s=day * DAY_S + 50).holds("0_0", day * DAY_S + 5)
    return told


@pytest.fixture
def bronze(spark, tmp_path) -> Path:
    """Two runs of one day, one of the next."""
    for name, day in (("one", 0), ("two", 0), ("three", 1)):
        fleet(name, day).write(tmp_path / "in")
        ingest.run(spark, tmp_path / "in", tmp_path / "bronze")
    return tmp_path / "bronze"


def tear(place: Path) -> Path:
    """Cut a Parquet file short, as a full disk or a dying volume does."""
    victim = sorted(place.rglob("*.parquet"))[0]
    victim.write_bytes(victim.read_bytes()[:-100])
    victim.with_name(f".{victim.name}.crc").unlink()
    return victim


def ids(spark, bronze: Path) -> set[str]:
    return {row["id"] for row in read_events(spark, bronze).select("id").collect()}


def test_a_damaged_file_is_told_kept_and_its_events_come_back(spark, bronze, tmp_path, capsys):
    """`compact` and every reader name it; moved aside, `ingest --again` brings its events from the segments."""
    before = ids(spark, bronze)
    damaged = tear(bronze / "events")
    there = sorted(bronze.rglob("*.parquet"))
    asked = {
        "compact": ["compact", "--bronze", str(bronze)],
        "coverage": ["coverage", "--input", str(bronze)],
        "ingest": ["ingest", "--input", str(tmp_path / "in"), "--bronze", str(bronze), "--again"],
    }
    for command in asked.values():
        assert main(command) == 2
        out, err = capsys.readouterr()
        assert (out, err.count("\n")) == ("", 1)
        assert f"{damaged} cannot be read" in err
        assert "--again" in err
    assert sorted(path for path in bronze.rglob("*.parquet") if STAGING not in path.parts) == there
    damaged.rename(tmp_path / "aside")
    assert ids(spark, bronze) < before
    assert main(asked["ingest"]) == 0
    assert ids(spark, bronze) == before
    assert main(asked["compact"]) == 0
    assert ids(spark, bronze) == before


def test_nothing_is_removed_while_an_event_would_be_missing(spark, bronze, monkeypatch):
    """Whatever made it go missing."""
    before = ids(spark, bronze)
    monkeypatch.setattr(compact, "one_row_per_id", lambda rows: rows.where("sequence > 1"))
    with pytest.raises(DamagedError, match="2026-11-18: 2 events would be lost"):
        compact.run(spark, bronze)
    assert ids(spark, bronze) == before
    assert not (bronze / STAGING).exists()


def test_a_damaged_snapshot_is_no_all_clear(spark, bronze, tmp_path, capsys):
    """What lies before the look-back cannot be known without it: the audit says so and ends."""
    place = snapshots.folder(bronze, "2026-11-17")
    empty = spark.range(0)
    for name, schema in (("events", EVENT_ROW), ("heard", HEARD), ("unwatched", UNWATCHED)):
        columns = [F.lit(None).cast(field.dataType).alias(field.name) for field in schema.fields]
        more = [F.lit(None).cast("boolean").alias(ROUTINE)] if name == "events" else []
        empty.select(*columns, *more).write.parquet(str(place / name))
    (place / snapshots.MADE).write_text(f'{{"format": {snapshots.FORMAT}}}')
    damaged = tear(place / "events")
    asked = ["audit", "--input", str(bronze), "--output", str(tmp_path / "out"), "--look-back", "1"]
    assert main(asked) == 2
    err = capsys.readouterr().err.splitlines()[-1]
    assert f"{damaged} cannot be read" in err
    assert f"remove the directory {place}" in err


def test_the_quarantine_is_joined_and_ages(spark, tmp_path):
    """What an upgrade may still use stays; the rest for a month from the day on which it came or was first seen."""
    now_us = clock.now_us()

    def put(reason: str, at_us: int | None) -> None:
        texts = [F.lit(reason).alias(name) for name in QUARANTINE.names]
        row = spark.range(1).select(*texts, F.lit(at_us).cast("bigint").alias(AT))
        write_quarantine(row, tmp_path / "quarantine", "append")

    def reasons() -> set[str]:
        return {row["reason"] for row in read_quarantine(spark, tmp_path).collect()}

    put("not-json", now_us - KEEP_DAYS * DAY_US - 1)
    put("cut-off-file", now_us - KEEP_DAYS * DAY_US)
    put("unknown-major", 0)
    put("too-large", None)
    assert compact.tidy(spark, tmp_path, now_us) == 1
    assert reasons() == {"cut-off-file", "unknown-major", "too-large"}
    assert len(list((tmp_path / "quarantine").glob("*.parquet"))) == 1
    assert compact.tidy(spark, tmp_path, now_us + KEEP_DAYS * DAY_US + 1) == 2
    assert reasons() == {"unknown-major"}
    assert compact.tidy(spark, tmp_path / "absent", now_us) == 0
