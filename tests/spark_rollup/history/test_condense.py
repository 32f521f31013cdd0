"""What a snapshot says again: holds that never run into one another, and blindness that never ended."""

from __future__ import annotations

import pytest

from spark_rollup.bronze import load
from spark_rollup.columns import ROUTINE, is_routine
from spark_rollup.facts import timeline
from spark_rollup.history import condense
from tests.spark_rollup.support.fleet import Fleet, at_us

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]


@pytest.fixture(scope="module")
def events(spark, tmp_path_factory):
    """Five holds, a finding after the second one, another pod's holds, and three times of blindness: one ended."""
    fleet = Fleet("shop")
    pod = fleet.pod("pod-a")
    for number in range(5):
        pod.holds("0_0", 100 * number + 10).releases("0_0", 100 * number + 60)
    pod.finds("skipped-eos-wipe", "0_0", 190)
    other = fleet.pod("pod-b")
    for from_s, to_s in ((20, 30), (70, 80), (120, 150), (300, 310)):
        other.holds("0_0", from_s).releases("0_0", to_s)
    pod.is_blind(100, 130).is_blind(200, None).is_blind(300, None)
    loaded = load.load(spark, fleet.write(tmp_path_factory.mktemp("retold")))
    return loaded.events.drop("line").withColumn(ROUTINE, is_routine()).localCheckpoint()


def test_a_hold_is_kept_with_its_end_or_not_at_all(events, monkeypatch):
    """The first one, the last before an open finding, and the newest: what is left out makes no two of them one."""
    monkeypatch.setattr(condense, "FLIPS", 1)
    kept = condense.newest_flips(timeline.flips(events), events)
    told = condense.holds(kept).select("pod", "observed_at_us", "change").collect()
    assert sorted((row["pod"], row["observed_at_us"], row["change"]) for row in told) == [
        ("pod-a", at_us(10), "task-held"),
        ("pod-a", at_us(60), "task-released"),
        ("pod-a", at_us(110), "task-held"),
        ("pod-a", at_us(160), "task-released"),
        ("pod-a", at_us(460), "task-released"),
        ("pod-b", at_us(20), "task-held"),
        ("pod-b", at_us(30), "task-released"),
        ("pod-b", at_us(120), "task-held"),
        ("pod-b", at_us(150), "task-released"),
        ("pod-b", at_us(310), "task-released"),
    ]


def test_of_blindness_that_never_ended_the_oldest_represents_all(events):
    """What ended is not told again as if it had not: heartbeats speak of several intervals at once."""
    (row,) = condense.blindness(events).collect()
    assert [(one["from_us"], one["to_us"]) for one in row["blind"]] == [(at_us(200), None)]
