"""Upkeep loses nothing: a file that cannot be read is an error that names it; old days go only as far as they may."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from spark_rollup import audit, clock
from spark_rollup.bronze import load, snapshots, table
from spark_rollup.bronze.snapshots import DAY_US
from spark_rollup.bronze.store import AT, EVENTS, add_quarantine, read_events, read_quarantine
from spark_rollup.cli import main
from spark_rollup.config import AuditOptions
from spark_rollup.errors import DamagedError
from spark_rollup.intake import claim, closed, compact, ingest
from spark_rollup.intake.compact import KEEP_DAYS
from spark_rollup.judging.plain import Plain
from spark_rollup.schemas import QUARANTINE
from tests.spark_rollup.intake.conftest import fleet, ids

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]


@pytest.fixture
def bronze(work) -> Path:
    """Give a copy."""
    return work / "bronze"


def tear(place: Path) -> Path:
    """Cut a Parquet file short, as a full disk or a dying volume does."""
    victim = sorted(place.rglob("*.parquet"))[0]
    victim.write_bytes(victim.read_bytes()[:-100])
    victim.with_name(f".{victim.name}.crc").unlink()
    return victim


def test_finished_days_are_joined(spark, bronze, tmp_path):
    """The small files of a day become one of each kind, the newest day's stay; who reads meanwhile sees no change."""
    before = ids(spark, bronze)
    events = load.load(spark, bronze).events.select("id")
    relative = Path(os.path.relpath(bronze))  # as it may be given on the command line
    assert compact.run(spark, relative) == 1
    assert ids(spark, bronze) == before
    assert len(read_events(spark, bronze).inputFiles()) == 4
    assert compact.run(spark, bronze) == 0
    compact.clean(spark, relative)
    ingest.run(spark, fleet("four", 0).write(tmp_path / "more"), bronze)
    assert sorted(row["id"] for row in events.collect()) == before
    assert set(ids(spark, bronze)) > set(before)


def test_an_ingest_beside_a_compaction_waits_and_no_snapshot_lacks_its_events(
    spark, bronze, tmp_path, monkeypatch, capsys
):
    """While a day is joined and summed up nothing is added to it; what comes afterwards withdraws the snapshot."""
    ingest.run(spark, fleet("newest", 2).write(tmp_path / "newest"), bronze)
    late = fleet("late", 0)
    asked = ["ingest", "--input", str(late.write(tmp_path / "late")), "--bronze", str(bronze)]
    beside: list[int] = []
    monkeypatch.setattr(claim, "PATIENCE_S", 0.0)
    choose = closed._rows

    def interrupted(*given: Any) -> DataFrame:
        beside.append(main(asked))
        return choose(*given)

    monkeypatch.setattr(closed, "_rows", interrupted)
    assert main(["compact", "--bronze", str(bronze), "--snapshots"]) == 0
    assert snapshots.note(bronze).days == ("2026-11-18",)
    before = ids(spark, bronze)
    assert main(asked) == 0
    assert snapshots.note(bronze).days == ()
    assert beside == [2]
    assert "another run is working" in capsys.readouterr().err
    rows = [row["id"] for row in read_events(spark, bronze).select("id").collect()]
    assert len(rows) == len(set(rows)) == len(before) + len(late.lines())


@pytest.mark.parametrize("lost", [False, True], ids=["torn", "gone"])
def test_a_damaged_file_is_named_and_its_events_come_back(spark, bronze, tmp_path, capsys, lost):
    """`compact` and every reader name it; taken out, `ingest --again` brings its events from the segments."""
    before = ids(spark, bronze)
    damaged = tear(bronze / "events")
    if lost:
        damaged.unlink()
    asked = {
        "compact": ["compact", "--bronze", str(bronze)],
        "coverage": ["coverage", "--input", str(bronze)],
        "ingest": ["ingest", "--input", str(tmp_path / "in"), "--bronze", str(bronze), "--again"],
    }
    for command in asked.values():
        assert main(command) == 3
        out, err = capsys.readouterr()
        assert (out, err.count("\n")) == ("", 1)
        assert f"{damaged} " in err
        assert f"`statewarden-rollup forget --bronze {bronze} --file {damaged}`" in err
        assert "--again" in err
    assert main(["forget", "--bronze", str(bronze), "--file", "other.parquet"]) == 2
    assert "has no such file" in capsys.readouterr().err
    assert main(["forget", "--bronze", str(bronze), "--file", str(damaged)]) == 0
    assert set(ids(spark, bronze)) < set(before)
    if lost:  # the table is from here on the same as without the torn file
        return
    assert main(asked["ingest"]) == 0
    assert ids(spark, bronze) == before
    assert main(asked["compact"]) == 0
    assert ids(spark, bronze) == before


def test_a_damaged_log_is_named(spark, bronze, capsys):
    """What a commit says cannot be read: no table is made up of the rest."""
    commit = bronze / "events" / table.LOG / f"{1:020d}.json"
    commit.write_text(commit.read_text()[:-50])
    commit.with_name(f".{commit.name}.crc").unlink()
    spark._jvm.org.apache.spark.sql.delta.DeltaLog.clearCache()
    assert main(["coverage", "--input", str(bronze)]) == 3
    assert f"{commit} cannot be read: restore this file" in capsys.readouterr().err


@pytest.mark.slow
def test_old_days_go_as_far_as_a_snapshot_replaces_them(spark, bronze, tmp_path, capsys):
    """Without one nothing goes; an audit of everything reads it in their place; damaged or gone, it is no all-clear."""
    ingest.run(spark, fleet("four", 2).write(tmp_path / "in"), bronze)
    asked = ["compact", "--bronze", str(bronze), "--retain", "2"]
    assert main(asked) == 0
    assert "no day removed" in capsys.readouterr().out
    assert main([*asked, "--snapshots"]) == 0
    assert "1 summed up, days up to 2026-11-18 removed" in capsys.readouterr().out
    left = {row["day"] for row in read_events(spark, bronze).select("day").distinct().collect()}
    assert left == {"2026-11-19", "2026-11-20"}
    options = AuditOptions(bronze, tmp_path / "out")
    read, _ = audit.prepare(spark, options)
    assert isinstance(read, Plain)
    assert {x.namespace for x in read.events} == {"three", "four"}
    assert {x.namespace for x in read.kept} == {"one", "two"}
    ingest.run(spark, fleet("late", 0).write(tmp_path / "in"), bronze)
    assert snapshots.note(bronze).days == ("2026-11-18",)
    again, _ = audit.prepare(spark, options)
    assert isinstance(again, Plain)
    assert "late" not in {x.namespace for x in again.events}
    assert closed.run(spark, bronze) == []

    damaged = tear(bronze / snapshots.KEPT)
    assert main(["audit", "--input", str(bronze), "--output", str(tmp_path / "out"), "--look-back", "1"]) == 3
    err = capsys.readouterr().err.splitlines()[-1]
    assert f"{damaged} cannot be read" in err
    assert f"`statewarden-rollup forget --bronze {bronze} --file {damaged}` takes it out" in err
    assert main(["forget", "--bronze", str(bronze), "--file", str(damaged)]) == 2
    assert "is all that is left of 2026-11-18" in capsys.readouterr().err
    shutil.rmtree(bronze / snapshots.KEPT)
    with pytest.raises(DamagedError, match="its log is gone"):
        audit.prepare(spark, options)


def test_what_a_run_that_was_cut_off_left_behind_goes(spark, bronze):
    """After a day; files of the table never do."""
    before = ids(spark, bronze)
    orphan = bronze / EVENTS / "day=2026-11-18" / "routine=true" / "part-0-orphan.parquet"
    orphan.write_text("half a file")
    compact.clean(spark, bronze)
    assert orphan.exists()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(table, "KEPT_HOURS", 0)
        spark.conf.set("spark.databricks.delta.retentionDurationCheck.enabled", "false")
        compact.clean(spark, bronze)
        spark.conf.unset("spark.databricks.delta.retentionDurationCheck.enabled")
    assert not orphan.exists()
    assert ids(spark, bronze) == before


@pytest.mark.usefixtures("delta")
def test_the_quarantine_is_joined_and_ages(spark, tmp_path):
    """What an upgrade may still use stays; the rest for a month from the day on which it came or was first seen."""
    now_us = clock.now_us()

    def put(reason: str, at_us: int | None) -> None:
        texts = [F.lit(reason).alias(name) for name in QUARANTINE.names]
        row = spark.range(1).select(*texts, F.lit(at_us).cast("bigint").alias(AT))
        add_quarantine(row, tmp_path)

    def reasons() -> set[str]:
        return {row["reason"] for row in read_quarantine(spark, tmp_path).collect()}

    put("not-json", now_us - KEEP_DAYS * DAY_US - 1)
    put("cut-off-file", now_us - KEEP_DAYS * DAY_US)
    put("unknown-major", 0)
    put("too-large", None)
    assert compact.tidy(spark, tmp_path, now_us) == 1
    assert reasons() == {"cut-off-file", "unknown-major", "too-large"}
    assert len(read_quarantine(spark, tmp_path).inputFiles()) == 1
    assert compact.tidy(spark, tmp_path, now_us + KEEP_DAYS * DAY_US + 1) == 2
    assert reasons() == {"unknown-major"}
    assert compact.tidy(spark, tmp_path / "absent", now_us) == 0


def test_partitions_of_one_file_are_left_alone():
    """And the newest day, of which more comes in."""
    paths = [f"file:/b/events/day=2026-11-{day}/routine=true/{name}" for day in (18, 19, 20) for name in "ab"]
    assert compact.scattered(paths) == ["2026-11-18", "2026-11-19"]
    assert compact.scattered(paths[1:]) == ["2026-11-19"]
    assert compact.scattered([]) == []
