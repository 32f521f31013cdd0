"""What agents count as open, against what is known of it."""

from __future__ import annotations

import pytest

from agent.contract.events import Kind
from spark_rollup.fleet.levels import last_words
from tests.spark_rollup.support.fleet import Fleet, at_us, story
from tests.spark_rollup.support.plain import events_of, tables

BUG = "resurrected-checkpoint"


@story
def all_is_known(fleet: Fleet) -> None:
    a = fleet.pod("pod-a").finds(BUG, "0_0", 100).finds(BUG, "0_1", 200, severity="warning")
    a.finds(BUG, "0_2", 200, severity="info").finds(BUG, "0_0", 300, status="resolved")


@story
def one_of_three_is_lost(fleet: Fleet) -> None:
    a = (
        fleet.pod("pod-a")
        .finds(BUG, "0_0", 100)
        .finds(BUG, "0_1", 200)
        .finds(BUG, "0_2", 300, severity="warning")
    )
    a.loses_findings(200)


@story
def its_end_was_heard_after_the_last_count(fleet: Fleet) -> None:
    fleet.pod("pod-a").finds(BUG, "0_0", 100).finds(BUG, "0_0", 895, status="resolved")


@story
def its_escalation_is_lost(fleet: Fleet) -> None:
    a = fleet.pod("pod-a").finds(BUG, "0_0", 100, severity="warning").finds(BUG, "0_0", 200)
    a.loses_findings(200)


@story
def an_end_and_a_beginning_are_lost(fleet: Fleet) -> None:
    """One is known that is over, and one is not known: the counts alone are equal."""
    a = fleet.pod("pod-a").finds(BUG, "0_0", 100).finds(BUG, "0_0", 200, status="resolved")
    a.finds(BUG, "0_1", 300).loses_findings(200, 300)


@story
def more_than_are_named(fleet: Fleet) -> None:
    a = fleet.pod("pod-a", ends_s=890).finds(BUG, "0_0", 100, finding_id="known")
    a.tells(Kind.HEARTBEAT, 889, open_criticals=3, open_warnings=200, open_ids=["known", "other"])


@story
def said_again_by_the_next_boot(fleet: Fleet) -> None:
    fleet.pod("pod-a", ends_s=400).finds(BUG, "0_0", 100).loses_findings(100)
    fleet.pod("pod-a", boot="boot-2", begins_s=405).repeats(BUG, "0_0", 406, 100)


@story
def its_end_is_lost(fleet: Fleet) -> None:
    fleet.pod("pod-a").finds(BUG, "0_0", 100).finds(BUG, "0_0", 200, status="resolved").loses_findings(200)


@story
def its_end_is_lost_and_the_agent_made_again(fleet: Fleet) -> None:
    a = fleet.pod("pod-a", ends_s=400).finds(BUG, "0_0", 100)
    a.finds(BUG, "0_0", 200, status="resolved").loses_findings(200)
    fleet.pod("pod-a", boot="boot-2", begins_s=405)


@story
def the_next_boot_forgot_it(fleet: Fleet) -> None:
    fleet.pod("pod-a", ends_s=400).finds(BUG, "0_0", 100)
    fleet.pod("pod-a", boot="boot-2", begins_s=405)


@story
def a_pod_that_was_scaled_down(fleet: Fleet) -> None:
    fleet.pod("pod-a", ends_s=400).finds(BUG, "0_0", 100).loses_findings(100)


@story
def a_pod_that_fell_silent(fleet: Fleet) -> None:
    fleet.pod("pod-a", ends_s=400, announces_end=False).finds(BUG, "0_0", 100).loses_findings(100)


@story
def the_next_boot_is_of_an_older_agent(fleet: Fleet) -> None:
    fleet.pod("pod-a", ends_s=400).finds(BUG, "0_0", 100).loses_findings(100)
    fleet.pod("pod-a", boot="boot-2", begins_s=405, counts=False)


@pytest.mark.parametrize(
    ("name", "criticals", "warnings", "ids"),
    [
        (all_is_known, 0, 0, []),
        (one_of_three_is_lost, 1, 0, [f"{BUG}-pod-a-0_1"]),
        (its_end_was_heard_after_the_last_count, 0, 0, []),
        (its_escalation_is_lost, 1, 0, []),
        (an_end_and_a_beginning_are_lost, 1, 0, [f"{BUG}-pod-a-0_1"]),
        (more_than_are_named, 2, 200, ["other"]),
        (said_again_by_the_next_boot, 0, 0, []),
        (the_next_boot_is_of_an_older_agent, 0, 0, []),
    ],
)
def test_what_is_counted_and_not_known_is_missed(audited, name, criticals, warnings, ids):
    """By id where ids are named, else by number."""
    (row,) = audited.rows("heard", name)
    assert (row["missed_criticals"], row["missed_warnings"], row["missed"]) == (criticals, warnings, ids)
    (seen,) = audited.rows("coverage", name)
    assert (seen["missed_criticals"], seen["missed_warnings"]) == (criticals, warnings)


def test_what_the_same_boot_no_longer_counts_is_over(audited):
    """The event of its end is lost, not the end; who was restarted may have forgotten it, so it stays open."""
    (before,) = audited.rows("local", its_end_is_lost_and_the_agent_made_again)
    assert before["status"] == "resolved"
    (over,) = audited.rows("local", its_end_is_lost)
    assert (over["status"], over["resolved_at_us"], over["observed_at_us"]) == (
        "resolved",
        at_us(870),
        at_us(870),
    )
    assert [x["status"] for x in audited.rows("local", the_next_boot_forgot_it)] == ["open"]


def test_a_last_word_ends_the_level(audited):
    """Nothing is counted on a pod that is gone, and a remark is left; silence is no last word."""
    for name, criticals, severity in (
        (a_pod_that_was_scaled_down, 0, "info"),
        (a_pod_that_fell_silent, 1, "warning"),
    ):
        (seen,) = audited.rows("coverage", name)
        assert seen["missed_criticals"] == criticals
        found = [x for x in audited.findings(name, "unaudited") if "counts" in str(x["summary"])]
        assert [x["severity"] for x in found] == [severity]


def test_an_older_agent_counts_nothing(audited):
    """Its newest boot decides: what an earlier one counted is no longer so."""
    assert audited.rows("heard", the_next_boot_is_of_an_older_agent)[0]["level_us"] is None
    assert audited.rows("heard", all_is_known)[0]["level_us"] == at_us(870)


def test_a_repetition_is_of_the_time_of_the_first_word(audited):
    """And is the same finding; when it was heard is known, too."""
    (row,) = audited.rows("local", said_again_by_the_next_boot)
    assert (row["observed_at_us"], row["heard_us"], row["status"]) == (at_us(100), at_us(406), "open")


def test_what_opened_again_after_a_clock_was_set_back_is_open():
    """The sequence of its boot says what was said last; by the times its end would be."""
    fleet = Fleet("shop")
    fleet.pod("pod-a").finds(BUG, "0_0", 100).finds(BUG, "0_0", 880, status="resolved").finds(BUG, "0_0", 890)
    events = [
        x._replace(observed_at_us=x.observed_at_us - 600_000_000) if x.observed_at_us >= at_us(890) else x
        for x in events_of(fleet.lines())
    ]
    assert [x.status for x in last_words(events)] == ["open"]
    (row,) = tables(events, at_us(880))["restarts"]
    assert row["answer"] == "damaged"
