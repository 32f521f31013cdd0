"""Bronze of older versions: refused with the command that helps, and turned into Delta tables where it lies."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import functions as F

from spark_rollup.bronze.load import load
from spark_rollup.bronze.store import AT, read_events, read_quarantine
from spark_rollup.cli import main
from spark_rollup.columns import ROUTINE, is_routine
from spark_rollup.intake import ingest
from tests.spark_rollup.support.fleet import Fleet

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]


@pytest.fixture
def old(spark, tmp_path) -> Path:
    """Lay out what an older version left: one event twice, because its compaction was cut off, and one bad line."""
    fleet = Fleet("shop")
    fleet.pod("pod-a", ends_s=50).holds("0_0", 5)
    source, bronze = fleet.write(tmp_path / "in"), tmp_path / "bronze"
    (source / "bad.jsonl").write_text("{broken\n")
    loaded = load(spark, source)
    day = F.date_format(F.timestamp_micros("observed_at_us"), "yyyy-MM-dd")
    events = loaded.events.withColumns({"day": day, ROUTINE: is_routine()}).localCheckpoint()
    for rows in (events, events.limit(1)):
        rows.write.mode("append").partitionBy("day", ROUTINE).parquet(str(bronze / "events"))
    loaded.quarantine.withColumn(AT, F.lit(1)).write.parquet(str(bronze / "quarantine"))
    (bronze / "_compacting").write_text("2026-11-18\n")
    (bronze / "snapshots" / "day=2026-11-17").mkdir(parents=True)
    (bronze / "_bronze.json").write_text(f'{{"contract_major": 1, "judged_by": "{ingest.JUDGE}"}}')
    return bronze


def test_it_is_refused_and_migrated(delta, old, tmp_path, capsys):
    """Every command names the command that helps; afterwards each event is there once and nothing is taken again."""
    for command in (
        ["coverage", "--input", str(old)],
        ["compact", "--bronze", str(old)],
        ["ingest", "--input", str(tmp_path / "in"), "--bronze", str(old)],
    ):
        assert main(command) == 2
        assert f"`statewarden-rollup migrate --bronze {old}`" in capsys.readouterr().err
    for _ in range(2):
        assert main(["migrate", "--bronze", str(old)]) == 0
        assert capsys.readouterr().out.startswith("4 events in Delta tables")
    assert read_events(delta, old).count() == 4
    assert [row["reason"] for row in read_quarantine(delta, old).collect()] == ["not-json"]
    assert not (old / "snapshots").exists()
    again = ingest.run(delta, tmp_path / "in", old)
    assert (again.events, again.quarantined) == (0, 0)
