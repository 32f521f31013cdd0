"""What the main stages cost in moved data: one exchange where one suffices, and only the columns that they need."""

from __future__ import annotations

import re
from collections.abc import Callable, Generator

import pytest
from pyspark.sql import DataFrame, SparkSession

from spark_rollup import facts
from spark_rollup.bronze.load import load
from spark_rollup.intake import ingest
from spark_rollup.judging import copies
from spark_rollup.judging.base import last_local_findings
from tests.spark_rollup.support.fleet import Fleet

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]

TEXTS = {"line", "evidence", "summary", "next_action", "detail", "id"}
"""Columns that make events wide; only findings and marks are shown to people."""


def curve(events: DataFrame) -> DataFrame:
    return copies.curve(facts.slots(events), copies.whole_stores(events).where("false"))


STAGES: dict[str, tuple[Callable[[DataFrame], DataFrame], int]] = {
    "beats": (facts.beats, 1),
    "slots": (facts.slots, 1),
    "marks": (facts.marks, 0),
    "looks at whole stores": (copies.whole_stores, 0),
    "curve of whole stores": (curve, 2),
    "findings of agents": (last_local_findings, 1),
}
"""Stage and how often it moves data: once for each grouping."""


@pytest.fixture(scope="module")
def events(delta: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Generator[DataFrame, None, None]:
    """Read a bronze directory of two files, planned as a large one is."""
    spark, work = delta, tmp_path_factory.mktemp("plans")
    for name in ("one", "two"):
        fleet = Fleet(name)
        fleet.pod("pod-a").holds("0_0", 5).measures("0_0", 60, identity="x", puts=1, offset=1)
        fleet.write(work / name)
        ingest.run(spark, work / name, work / "bronze")
    before = str(spark.conf.get("spark.sql.shuffle.partitions"))
    spark.conf.set("spark.sql.shuffle.partitions", "8")
    yield load(spark, work / "bronze").events
    spark.conf.set("spark.sql.shuffle.partitions", before)


def plan_of(frame: DataFrame) -> str:
    return str(frame._jdf.queryExecution().executedPlan().treeString())


@pytest.mark.parametrize("stage", STAGES)
def test_a_stage_moves_data_no_more_than_it_must(events, stage):
    """One exchange for each grouping of the stage, and none for what is decided event by event."""
    make, allowed = STAGES[stage]
    assert len(re.findall(r"\bExchange ", plan_of(make(events)))) == allowed


@pytest.mark.parametrize("stage", sorted(STAGES.keys() - {"findings of agents", "marks"}))
def test_a_stage_reads_narrow_columns_only(events, stage):
    """Texts are left on disk; so is the raw line, always."""
    make, _ = STAGES[stage]
    leaves = make(events)._jdf.queryExecution().executedPlan().collectLeaves()
    read = {
        str(name)
        for index in range(leaves.size())
        for name in leaves.apply(index).requiredSchema().fieldNames()
    }
    assert read
    assert not read & TEXTS


def test_nothing_is_sorted_to_be_grouped(events):
    """Aggregates keep whole numbers only, so Spark hashes; a text in them would make it sort every event."""
    for make in (facts.beats, facts.slots, curve):
        assert "SortAggregate" not in plan_of(make(events))
