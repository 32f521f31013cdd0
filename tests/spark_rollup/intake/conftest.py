"""A small bronze for tests that change one."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from spark_rollup.intake import ingest
from tests.spark_rollup.support.fleet import Fleet

DAY_S = 86_400


def fleet(name: str, day: int) -> Fleet:
    """One pod that runs for less than a minute on a day."""
    made = Fleet(name)
    made.pod("pod-a", begins_s=day * DAY_S, ends_s=day * DAY_S + 50).holds("0_0", day * DAY_S + 5)
    return made


@pytest.fixture(scope="session")
def made(delta: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two runs of one day, one of the next; to be copied: tables know no absolute paths."""
    work = tmp_path_factory.mktemp("made")
    for name, number in (("one", 0), ("two", 0), ("three", 1)):
        fleet(name, number).write(work / "in")
        ingest.run(delta, work / "in", work / "bronze")
    return work
