"""What detectors share in words: places, last checkpoints, issues."""

from __future__ import annotations

from agent.contract.events import Affected
from agent.judging.upstream import KAFKA_8187, KAFKA_10362, KAFKA_20685
from agent.judging.wording import checkpoint_of, concerned, last_mark, most_affected, where
from tests.support.scenario_case import at, case, mark, session, store, task


def test_places():
    """A key-value store lies below `rocksdb`, a segmented one beside it."""
    one = task()
    assert where(one, store(name="s")) == "app/0_0/rocksdb/s"
    assert where(one, store(name="w", segmented=True)) == "app/0_0/w"
    assert checkpoint_of(one) == "app/0_0/.checkpoint"


def test_last_mark():
    """The last checkpoint of a session is told with its own time, its absence with that of the opening."""
    told = last_mark(task(), session(1, last=mark(5, 999, 1000)))
    assert (told.at_us, told.what) == (at(5), "last checkpoint: offset 999, 1000 puts on disk")
    none = last_mark(task(), session(1))
    assert (none.at_us, none.where) == (at(1), "app/0_0/.checkpoint")
    assert "no checkpoint" in none.what


def test_issues_that_may_affect_a_release():
    """Issues that a known release does not have are not named; the strongest answer counts."""
    issues = (KAFKA_20685, KAFKA_8187, KAFKA_10362)
    assert concerned(case(task(), release="4.1.2"), issues) == ("KAFKA-20685",)
    assert most_affected(case(task(), release="4.1.2"), issues) is Affected.YES
    assert concerned(case(task(), release=None), issues) == tuple(x.key for x in issues)
    assert most_affected(case(task(), release=None), issues) is Affected.POSSIBLY
    assert concerned(case(task(), release="3.4.1"), issues) == ()
    assert most_affected(case(task(), release="3.4.1"), issues) is Affected.NO
