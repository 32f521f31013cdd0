"""A small bronze for tests that change one."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from spark_rollup.bronze.store import read_events
from spark_rollup.intake import ingest
from tests.spark_rollup.support.fleet import Fleet

DAY_S = 86_400


class CutOffError(Exception):
    """Stands for kill -9."""


def cut(monkeypatch: pytest.MonkeyPatch, module: object, name: str, *, after: bool) -> None:
    """Let a step of a module be the last one; `after` its work or instead of it."""
    real = getattr(module, name)

    def fail(*arguments: object, **named: object) -> None:
        if after:
            real(*arguments, **named)
        raise CutOffError

    monkeypatch.setattr(module, name, fail)


def fleet(name: str = "shop", day: int = 0) -> Fleet:
    """One pod that runs for less than a minute on a day."""
    made = Fleet(name)
    made.pod("pod-a", begins_s=day * DAY_S, ends_s=day * DAY_S + 50).holds("0_0", day * DAY_S + 5)
    return made


def ids(spark: SparkSession, bronze: Path) -> list[str]:
    """List the ids of all events, in order."""
    return sorted(row["id"] for row in read_events(spark, bronze).select("id").collect())


@pytest.fixture(scope="session")
def made(delta: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two runs of one day, one of the next; to be copied: tables know no absolute paths."""
    work = tmp_path_factory.mktemp("made")
    for name, number in (("one", 0), ("two", 0), ("three", 1)):
        fleet(name, number).write(work / "in")
        ingest.run(delta, work / "in", work / "bronze")
    return work


@pytest.fixture
def work(made: Path, tmp_path: Path) -> Path:
    """Give a copy of it, with what it was made of."""
    return shutil.copytree(made, tmp_path, dirs_exist_ok=True)
