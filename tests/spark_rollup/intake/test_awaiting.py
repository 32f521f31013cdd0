"""Three defects of the storage as Parquet files: each test proves one, and fails once it is gone."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from py4j.protocol import Py4JJavaError

from spark_rollup.bronze import load
from spark_rollup.intake import compact, ingest
from spark_rollup.sources import files
from spark_rollup.sources.files import Directory, FileSource
from tests.spark_rollup.support.fleet import Fleet

pytestmark = [pytest.mark.spark, pytest.mark.timeout(300)]

DAY_S = 86_400

PROBE = """
from spark_rollup.spark.session import build_session
spark = build_session(0)
print("partitions", spark.conf.get("spark.sql.shuffle.partitions"))
"""


def write(target: Path, name: str, day: int = 0) -> Path:
    fleet = Fleet(name)
    fleet.pod("pod-a", begins_s=day * DAY_S, ends_s=day * DAY_S + 50)
    return fleet.write(target)


@pytest.mark.xfail(
    raises=Py4JJavaError, strict=True, reason="compaction removes files that a reader has listed"
)
def test_a_reader_that_began_before_a_compaction_reads_to_its_end(spark, tmp_path):
    """What it listed is there until it is done."""
    bronze = tmp_path / "bronze"
    for name, day in (("one", 0), ("two", 0), ("three", 1)):
        ingest.run(spark, write(tmp_path / "in", name, day), bronze)
    events = load.load(spark, bronze).events.select("id")
    assert compact.run(spark, bronze) == 1
    assert len(events.collect()) == 9


@pytest.mark.slow
@pytest.mark.xfail(
    raises=AssertionError,
    strict=True,
    reason="what spark-submit is given loses against our choice",
)
def test_what_spark_submit_is_given_wins(tmp_path):
    """As docs/rollup.md says."""
    import pyspark

    (tmp_path / "probe.py").write_text(PROBE)
    submit = Path(pyspark.__file__).parent / "bin" / "spark-submit"
    given = ["--master", "local[1]", "--conf", "spark.sql.shuffle.partitions=77"]
    ran = subprocess.run(
        [submit, *given, tmp_path / "probe.py"], capture_output=True, text=True, timeout=200, check=True,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path), "PYSPARK_PYTHON": sys.executable},
    )  # fmt: skip
    assert "partitions 77" in ran.stdout


@pytest.mark.xfail(
    raises=AssertionError,
    strict=True,
    reason="a run takes all files at once, however many there are",
)
def test_a_run_takes_files_in_turns(spark, tmp_path, monkeypatch):
    """As a stream does, so that what was taken is durable turn by turn."""
    monkeypatch.setattr(files, "FILES_PER_TURN", 2)
    for name in ("one", "two", "three"):
        write(tmp_path, name)
    assert FileSource(Directory(tmp_path)).batch(spark, {}).parts <= 2
