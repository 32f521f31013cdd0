"""However Spark thins an input, the plain reduction makes the same of it: `reduce(thin(x)) == reduce(x)`."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from agent.contract.events import Kind
from spark_rollup.bronze import dedupe, load
from spark_rollup.columns import ROUTINE, is_routine
from spark_rollup.correlate import RULES
from spark_rollup.fleet import sizes
from spark_rollup.fleet.reduce import Question
from spark_rollup.judging.job import Wide
from spark_rollup.judging.plain import collected
from spark_rollup.spark.rows import rows_of
from tests.spark_rollup.support.drawn import drawn
from tests.spark_rollup.support.fleet import HORIZON_S, STORIES, Fleet, at_us, story
from tests.spark_rollup.support.plain import texts

FLEETS = 20

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(600)]


@story
def hours_of_summaries(fleet: Fleet) -> None:
    """Hours in which summaries agree, change once, contradict each other, or meet transitions."""
    looks = [*((10 * n, True) for n in range(1, 50)), (500, True), (510, False), (520, True), (530, False)]
    pod = fleet.pod("pod-a")
    for at, is_held in looks:
        pod.measures("0_0", at, held=is_held)
    pod.releases("0_0", 600).holds("0_0", 610).releases("0_1", 50).measures("0_1", 70, held=True)


@story
def a_store_that_stands_still(fleet: Fleet) -> None:
    """Equal readings on two pods, of a task in question: before, between and after what rules look at."""
    before, after = fleet.pod("pod-a").holds("0_0", 20), fleet.pod("pod-b").holds("0_0", 300)
    for at in range(2, 250):
        before.measures("0_0", at, identity="one", offset=900, puts=900 + at // 100)
        after.measures("0_0", at + 200, identity="two", offset=900, puts=7 + at // 200)
    before.releases("0_0", 260)
    after.finds("unrestored-store", "0_0", 350, store="s", identity="two")


def of_a_newer_agent(fleet: Fleet) -> Iterator[str]:
    """Tell what changed by events of a kind that is not known yet: they count, and no rule reads them."""
    for line in fleet.lines():
        event = json.loads(line)
        if event["data"]["kind"] == Kind.TRANSITION.value:
            event["data"] |= {"kind": "future", "schema_version": "1.99", "stores": [{"store": "q"}]}
        yield json.dumps(event)


def test_what_spark_thins_and_workers_judge_is_what_the_driver_says(spark, tmp_path, monkeypatch):
    """All stories, each told twice, split over partitions: every table is the same.

    With room for few rows of a task, which needs all that room for more does; with that, `test_closed` compares.
    """
    for copy in ("one", "two"):
        (tmp_path / copy).mkdir()
        fleets = [*STORIES.values(), *drawn()[:FLEETS]]
        lines = [line for fleet in fleets for line in fleet.lines()]
        text = "".join(f"{line}\n" for line in [*lines, *of_a_newer_agent(drawn()[FLEETS])])
        (tmp_path / copy / "all.jsonl").write_text(text)
    once = dedupe.one_row_per_id(load.load(spark, tmp_path).events).drop("line")
    wide = Wide(once.withColumn(ROUTINE, is_routine()).repartition(3).localCheckpoint(), spark.range(0))
    # a clock that is ahead, too: any will do
    pod = (f"{__name__.rpartition('.')[2]}.hours_of_summaries", "pod-a")
    asked = Question(at_us(HORIZON_S), rules=RULES, ahead={pod: 5_000_000})
    plain = collected(load.load(spark, tmp_path)).until(asked.as_of_us)
    monkeypatch.setattr(sizes, "MOST_ROWS", 4)
    there, here = wide.until(asked.as_of_us).told(asked), plain.told(asked)
    assert there.rows.keys() | {"timelines"} == here.rows.keys()
    assert there.timelines is not None
    lanes = [*there.of("timelines"), *rows_of(there.timelines)]
    assert texts(lanes) == texts(here.of("timelines"))
    for name in there.rows.keys() - {"timelines"}:
        assert texts(there.of(name)) == texts(here.of(name)), name
