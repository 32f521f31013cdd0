"""Detector `wipe-storm`: one storm is one finding."""

from __future__ import annotations

from tests.support.scenario_case import at, case, judge, task

ID = "wipe-storm"


def test_named_by_its_first_wipe():
    """Another wipe in the same storm is no new finding."""
    one = task()
    one.wiped_us += (at(10), at(20), at(30))
    before = judge(ID, case(one))[0]
    one.wiped_us += (at(40),)
    after = judge(ID, case(one))[0]
    assert before.subject == after.subject == f"since {at(10)}"
    assert [step.at_us for step in after.evidence] == [at(10), at(20), at(30), at(40)]
