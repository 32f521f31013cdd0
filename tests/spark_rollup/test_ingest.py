"""Bronze: what is taken once, what a run that is cut off leaves, and compaction."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from spark_rollup import compact, ingest, load
from spark_rollup.bronze import COMPACTING, TAKEN, read_events
from tests.spark_rollup.support.fleet import Fleet

pytestmark = [pytest.mark.spark, pytest.mark.timeout(300)]

DAY_S = 86_400


class CutOffError(Exception):
    """Stands for kill -9."""


def fleet(name: str = "shop", day: int = 0) -> Fleet:
    told = Fleet(name)
    told.pod("pod-a", uid=f"{name}-{day}", begins_s=day * DAY_S, ends_s=day * DAY_S + 50).holds(
        "0_0", day * DAY_S + 5
    )
    return told


def ids(spark: SparkSession, bronze: Path) -> list[str]:
    return sorted(row["id"] for row in read_events(spark, bronze).select("id").collect())


def cut(monkeypatch: pytest.MonkeyPatch, module: object, name: str, *, after: bool) -> None:
    """Let a step of a module be the last one; `after` its work or instead of it."""
    real = getattr(module, name)

    def fail(*arguments: object, **named: object) -> None:
        if after:
            real(*arguments, **named)
        raise CutOffError

    monkeypatch.setattr(module, name, fail)


def test_runs_that_are_cut_off_lose_and_double_nothing(spark, tmp_path, monkeypatch):
    """Cut off after the events were written, and before the list of taken files: the repeat completes it."""
    source, bronze = fleet().write(tmp_path / "in"), tmp_path / "bronze"
    for name, after in (("write_events", True), ("_remember", False)):
        with monkeypatch.context() as patch:
            cut(patch, ingest, name, after=after)
            with pytest.raises(CutOffError):
                ingest.run(spark, source, bronze)
    assert ingest.taken(bronze) == {}
    again = ingest.run(spark, source, bronze)
    assert (again.events, again.files) == (0, 1)
    assert len(ids(spark, bronze)) == len(set(ids(spark, bronze))) == len(fleet().lines())
    assert ingest.run(spark, source, bronze) == ingest.Ingested(0, 0, 0)


def test_lists_of_what_was_taken_are_summed_up(tmp_path, monkeypatch):
    """Without what is gone; later sizes win; cut off before the old lists go, nothing is lost."""
    monkeypatch.setattr(ingest, "LISTS", 3)
    remember = ingest._remember  # no other way to it without Spark
    for number in range(3):
        remember(tmp_path, {f"in/{number}": 1, "in/grows": number}, frozenset())
    with monkeypatch.context() as patch:
        cut(patch, Path, "unlink", after=False)
        with pytest.raises(CutOffError):
            remember(tmp_path, {"in/3": 1}, {"in/0", "in/1"})
    known = {"in/2": 1, "in/3": 1, "in/grows": 2}
    assert ingest.taken(tmp_path).items() >= known.items()
    remember(tmp_path, {}, {"in/0", "in/1"})
    assert ingest.taken(tmp_path) == known
    assert len(list((tmp_path / TAKEN).glob("*.jsonl"))) == 1
    remember(tmp_path, {"in/grows": 3}, frozenset())
    assert ingest.taken(tmp_path) == known | {"in/grows": 3}


def test_compaction_joins_finished_days_and_survives_a_cut(spark, tmp_path, monkeypatch):
    """The small files of a day become one; cut off in between, events are there twice and readers know."""
    source, bronze = tmp_path / "in", tmp_path / "bronze"
    for name, day in (("one", 0), ("two", 0), ("three", 1)):
        fleet(name, day).write(source)
        ingest.run(spark, source, bronze)
    before = ids(spark, bronze)
    assert load.load(spark, bronze).unique
    with monkeypatch.context() as patch:
        # the joined files are in, and the old ones are about to go
        cut(patch, Path, "unlink", after=False)
        with pytest.raises(CutOffError):
            compact.run(spark, bronze)
    assert (bronze / COMPACTING).exists()
    assert not load.load(spark, bronze).unique
    assert sorted(set(ids(spark, bronze))) == before
    assert compact.run(spark, bronze) == 1
    assert ids(spark, bronze) == before
    assert load.load(spark, bronze).unique
    # the second day is the newest and was not touched; routine events and the others lie apart
    assert [len(list(day.rglob("*.parquet"))) for day in sorted((bronze / "events").glob("day=*"))] == [2, 2]
    assert compact.run(spark, bronze) == 0
