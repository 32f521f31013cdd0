"""What detectors share in words: durations, places, last checkpoints, issues."""

from __future__ import annotations

import pytest

from agent.contract.events import Affected
from agent.judging.base import seconds
from agent.judging.upstream import KAFKA_8187, KAFKA_10362, KAFKA_20685
from agent.judging.wording import checkpoint_of, concerned, most_affected, where
from tests.support.scenario_case import case, store, task


@pytest.mark.parametrize(
    ("microseconds", "text"),
    [(0, "0.0 s"), (400_000, "0.4 s"), (9_400_000, "9.4 s"), (10_000_000, "10 s"), (10_400_000, "10 s")],
)
def test_seconds(microseconds, text):
    """A tenth is told up to ten seconds, whole seconds from there on."""
    assert seconds(microseconds) == text


def test_places():
    """A key-value store lies below `rocksdb`, a segmented one beside it."""
    one = task()
    assert where(one, store(name="s")) == "app/0_0/rocksdb/s"
    assert where(one, store(name="w", segmented=True)) == "app/0_0/w"
    assert checkpoint_of(one) == "app/0_0/.checkpoint"


@pytest.mark.parametrize(
    ("release", "keys", "affected"),
    [
        ("4.1.2", ("KAFKA-20685",), Affected.YES),
        (None, ("KAFKA-20685", "KAFKA-8187", "KAFKA-10362"), Affected.POSSIBLY),
        ("3.4.1", (), Affected.NO),
    ],
)
def test_issues_that_may_affect_a_release(release, keys, affected):
    """Issues that a known release does not have are not named; the strongest answer counts."""
    issues, one = (KAFKA_20685, KAFKA_8187, KAFKA_10362), case(task(), release=release)
    assert (concerned(one, issues), most_affected(one, issues)) == (keys, affected)
