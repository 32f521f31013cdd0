"""Detector `wipe-storm`: one storm is one finding."""

from __future__ import annotations

from tests.support.scenario_case import at, case, judge, task

ID = "wipe-storm"


def test_named_by_its_task():
    """Another wipe in the same storm is no new finding."""
    one = task()
    one.wiped_us += (at(10), at(20), at(30))
    before = judge(ID, case(one))[0]
    one.wiped_us += (at(40),)
    after = judge(ID, case(one))[0]
    assert before.subject == after.subject == "storm"
    assert [step.at_us for step in after.evidence] == [at(10), at(20), at(30), at(40)]


def test_count_that_is_not_known():
    """Only the last eight wipes are remembered."""
    one = task()
    one.wiped_us += tuple(at(x) for x in range(8))
    assert "at least 8 times" in judge(ID, case(one))[0].summary
