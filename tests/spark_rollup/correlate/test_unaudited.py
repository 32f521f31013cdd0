"""Times that nobody watched."""

from __future__ import annotations

import pytest

from tests.spark_rollup.support.fleet import Fleet, cases, says, story

RULE = "unaudited"


@says(RULE)
def all_was_watched(fleet: Fleet) -> None:
    fleet.pod("pod-a").holds("0_0", 5)


@says(RULE, severity="warning", pod="pod-a", level="self", summary="2 events missing")
def records_were_lost(fleet: Fleet) -> None:
    """Missing sequence numbers are counted and the interval is named."""
    fleet.pod("pod-a").holds("0_0", 5).loses(4, 5)


@says(RULE, severity="warning", summary="the agent said nothing")
def an_agent_went_silent(fleet: Fleet) -> None:
    """One that vanished without a word is reported until now."""
    fleet.pod("pod-a", ends_s=300, announces_end=False)


@says(RULE)
def an_agent_stopped(fleet: Fleet) -> None:
    """One that said that it stops is not silent."""
    fleet.pod("pod-a", ends_s=300)


@story
def an_agent_was_blind(fleet: Fleet) -> None:
    fleet.pod("pod-a").is_blind(100, 110).is_blind(200, 220, application_id="orders", task_id="0_1")


@story
def a_finding_is_not_in_the_input(fleet: Fleet) -> None:
    fleet.pod("pod-a").finds("torn-store", "0_0", 100, finding_id="f-100").loses_findings(100)


def test_what_an_agent_counts_and_is_not_there_is_a_warning(audited):
    """Beside the lost event itself: what it was, by id, and that it is open."""
    found = next(
        x for x in audited.findings(a_finding_is_not_in_the_input, RULE) if "counts" in str(x["summary"])
    )
    assert (found["severity"], found["confidence"], found["status"]) == ("warning", "confirmed", "open")
    assert found["summary"] == "pod-a: its agent counts open findings that are not in the input: 1"
    assert "1 critical and 0 warnings are not in the input: f-100" in str(found["evidence"])
    assert "at each start and every 6 hours" in str(found["next_action"])


def test_short_blindness_is_information(audited):
    """Seconds of blindness are noted: one finding per application concerned."""
    found = audited.findings(an_agent_was_blind, RULE)
    assert {(row["severity"], row["application_id"]) for row in found} == {("info", None), ("info", "orders")}


@pytest.mark.parametrize(("name", "rule", "expected"), cases(__name__))
def test_cases(audited, name, rule, expected):
    """What each story has beside it."""
    audited.check(name, rule, expected)
