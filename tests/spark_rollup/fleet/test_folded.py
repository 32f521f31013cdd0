"""Equal readings of a task in question are folded, and no rule sees a difference."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from random import Random
from typing import get_type_hints

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from agent.contract.events import Kind
from spark_rollup.columns import TASK
from spark_rollup.fleet import sizes
from spark_rollup.fleet.reduce import TIMELINES
from spark_rollup.fleet.rows import Reading
from spark_rollup.judging import copies
from tests.spark_rollup.support.drawn import FLEETS, fleet_of
from tests.spark_rollup.support.fleet import HORIZON_S, STORIES, Fleet, at_us
from tests.spark_rollup.support.plain import events_of, tables, texts

MANY = 200_000

SPARK = {"str": "string", "int": "bigint", "bool": "boolean"}

KINDS = {
    name: next(kind for word, kind in SPARK.items() if word in str(hint))
    for name, hint in get_type_hints(Reading).items()
}
"""Field of `Reading` -> its type in Spark."""

ROWS = (
    f"namespace string, application_id string, {', '.join(f'{name} {kind}' for name, kind in KINDS.items())}"
)


def reading(at: int, pod: str = "pod-a", **more: object) -> Reading:
    """Read a store."""
    return Reading(**{  # type: ignore[arg-type]
        "task_id": "0_0", "pod": pod, "store": "s", "at_us": at, "identity": None, "offset": 7, "puts": 7,
        "entries_low": None, "unsaved_puts": None, "anchor": False, **more,
    })  # fmt: skip


def steady(fleet: Fleet, seed: str) -> Fleet:
    """Let each pod say again and again what it measured last, at times that do not stand out."""
    dice = Random(seed)
    for pod in fleet.pods:
        measured = [x for x in pod.records if x.kind is Kind.SUMMARY]
        for x in measured:
            at = (x.observed_at_us - at_us(0)) / 1_000_000
            for _ in range(dice.randint(0, 12)):
                at += dice.choice((0.25, 1, 3, 11))
                if at < pod.ends_s - 1:
                    pod.tells(x.kind, at, **x.body)
    return fleet


def test_no_rule_sees_a_difference(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of all that is said, only curves have fewer points, and none that is not true."""
    fleets = [steady(fleet_of(f"steady-{number}"), str(number)) for number in range(FLEETS)]
    events = events_of(line for fleet in [*STORIES.values(), *fleets] for line in fleet.lines())
    folded = tables(events, at_us(HORIZON_S))
    monkeypatch.setattr(sizes, "folded", lambda readings, _: list(readings))
    whole = tables(events, at_us(HORIZON_S))
    assert folded.keys() == whole.keys()
    for name in whole:
        if name != TIMELINES:
            assert folded[name] == whole[name], name
    less, more = texts(folded[TIMELINES]), texts(whole[TIMELINES])
    assert less < more


def test_the_ends_of_equal_readings_stay():
    """And those beside an edge: with the copy of each pod for itself."""
    own = [reading(at, pod) for at in range(9) for pod in ("pod-a", "pod-b")] + [reading(9, puts=8)]
    left = sizes.folded(own, [4])
    assert [(x.pod, x.at_us) for x in left] == [
        *(("pod-a", at) for at in (0, 3, 4, 8, 9)), *(("pod-b", at) for at in (0, 3, 4, 8))
    ]  # fmt: skip
    assert sizes.folded(left, [4]) == left


def frame(spark: SparkSession, rows: Iterable[Reading]) -> DataFrame:
    return spark.createDataFrame([("shop", "orders", *row) for row in rows], ROWS)


def folded(readings: DataFrame, edges: list[int]) -> DataFrame:
    """Fold readings of a task that is asked about, in Spark."""
    of_stores = readings.select(*TASK, "store", "pod").distinct()
    asked = (
        of_stores.select(*TASK)
        .distinct()
        .withColumn("edges", F.array(*map(F.lit, edges)).cast("array<bigint>"))
    )
    return copies.folded(readings, of_stores, asked).select(*Reading._fields)


@pytest.mark.spark
@pytest.mark.timeout(600)
def test_spark_folds_as_the_driver_does(spark: SparkSession) -> None:
    """With readings at one time, of which some things are not known."""
    dice = Random(5)
    known = [
        reading(
            dice.randint(0, 60), dice.choice("ab"), identity=dice.choice((None, "", "i", "\u00e9", "Z")),
            puts=dice.choice((None, 1)), anchor=dice.random() < 0.1,
        )
        for _ in range(600)
    ]  # fmt: skip
    known += [reading(at, "c") for at in range(60)]
    edges = [3, 4, 20, 41]
    here = sizes.folded(known, edges)
    assert Counter(Reading(*row) for row in folded(frame(spark, known), edges).collect()) == Counter(here)
    assert len(here) < len(known)


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.timeout(600)
def test_few_of_many_equal_readings_reach_a_worker(spark: SparkSession) -> None:
    """However long a store stands still: two of each run, and two beside an edge."""
    times = spark.range(MANY).selectExpr("id AS at_us", f"id DIV {MANY // 4} AS puts")
    many = frame(spark, [reading(0)]).drop("at_us", "puts").crossJoin(times)
    assert folded(many, [10]).count() == 2 * 4 + 2
