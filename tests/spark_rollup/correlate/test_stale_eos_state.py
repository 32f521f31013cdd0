"""Where state went that should have been wiped."""

from __future__ import annotations

import pytest

from tests.spark_rollup.support.fleet import Fleet, story

pytestmark = [pytest.mark.spark, pytest.mark.timeout(300)]

RULE = "stale-eos-state"


def skipped_wipe(fleet: Fleet, **body: object):
    a = fleet.pod("pod-a").holds("0_0", 5).measures("0_0", 30, identity="suspect", puts=10, offset=10)
    return a.finds("skipped-eos-wipe", "0_0", 60, store="s", identity="suspect", **body)


@story
def nobody_else_has_it(fleet: Fleet) -> None:
    skipped_wipe(fleet)
    fleet.pod("pod-b").holds("0_1", 5)


@story
def the_task_moved_on(fleet: Fleet) -> None:
    skipped_wipe(fleet).releases("0_0", 100)
    fleet.pod("pod-b").holds("0_0", 105)
    fleet.pod("pod-c").holds("0_0", 10).releases("0_0", 20)


@story
def the_volume_moved(fleet: Fleet) -> None:
    skipped_wipe(fleet).releases("0_0", 100)
    fleet.pod("pod-b").measures("0_0", 200, held=None, identity="suspect", puts=12, offset=12)


@story
def only_information(fleet: Fleet) -> None:
    skipped_wipe(fleet, severity="info", confidence="suspected")


@story
def the_agent_was_blind_meanwhile(fleet: Fleet) -> None:
    skipped_wipe(fleet).is_blind(59, 61)


@story
def a_wipe_was_interrupted(fleet: Fleet) -> None:
    a = fleet.pod("pod-a").holds("0_0", 5)
    a.finds("interrupted-wipe", "0_0", 60, severity="warning", confidence="suspected")


def test_a_lone_owner_is_reported_alone(audited):
    """No other pod has the state: severity and confidence are the agent's, and only the pod itself is named."""
    found = audited.finding(nobody_else_has_it, RULE)
    assert (found["severity"], found["confidence"], found["level"]) == ("critical", "confirmed", "damage")
    assert found["pods"] == ["pod-a"]
    assert found["confirms"] == ["skipped-eos-wipe-pod-a-0_0"]


def test_later_owners_are_tainted(audited):
    """A pod that takes the task afterwards restores what the suspect wrote; one that left before does not count."""
    found = audited.finding(the_task_moved_on, RULE)
    assert found["pods"] == ["pod-a", "pod-b"]
    assert any("pod-b held the task" in step["what"] for step in found["evidence"])


def test_a_moved_volume_is_tainted(audited):
    """The same store identity on another pod is the same files."""
    found = audited.finding(the_volume_moved, RULE)
    assert found["pods"] == ["pod-a", "pod-b"]
    assert any("identity suspect" in step["what"] for step in found["evidence"])


def test_information_is_no_damage(audited):
    """An agent's note below warning starts nothing."""
    assert audited.findings(only_information, RULE) == []


def test_a_gap_lowers_confidence(audited):
    """A blind interval across the finding takes `confirmed` away."""
    assert audited.finding(the_agent_was_blind_meanwhile, RULE)["confidence"] == "suspected"


def test_an_interrupted_wipe_is_followed_too(audited):
    """The twin detector's findings are treated alike."""
    found = audited.finding(a_wipe_was_interrupted, RULE)
    assert (found["severity"], found["confidence"]) == ("warning", "suspected")
