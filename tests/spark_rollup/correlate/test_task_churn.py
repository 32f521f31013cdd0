"""Moves, wipes and restores within an hour."""

from __future__ import annotations

import pytest

from tests.spark_rollup.support.fleet import Fleet, cases, says, story

RULE = "task-churn"


def goes_round(fleet: Fleet, moves: int) -> None:
    """Move the task to and fro, a minute on each pod."""
    pods = (fleet.pod("pod-a"), fleet.pod("pod-b"))
    for number in range(moves + 1):
        pods[number % 2].holds("0_0", 10 + number * 60).releases("0_0", 65 + number * 60)


@story
def six_moves(fleet: Fleet) -> None:
    goes_round(fleet, 6)


@says(RULE, loud="warning confirmed")
def twelve_moves(fleet: Fleet) -> None:
    goes_round(fleet, 12)


@says(RULE)
def two_moves(fleet: Fleet) -> None:
    """A rolling restart moves a task there and back."""
    goes_round(fleet, 2)


def goes_round_with_a_standby(fleet: Fleet, ahead_s: float) -> None:
    """Two of three pods have the task, every minute another two; who keeps it closes and opens it meanwhile."""
    for number in range(3):
        pod, shift = fleet.pod(f"pod-{number}"), ahead_s * (number == 1)
        for slot in range(12):
            if slot % 3 != number:
                opened = 10 + slot * 60 + number / 10 + shift
                pod.holds("0_0", opened).releases("0_0", opened + 59)


@story
def by_clocks_that_agree(fleet: Fleet) -> None:
    goes_round_with_a_standby(fleet, 0)


@story
def by_clocks_that_differ(fleet: Fleet) -> None:
    goes_round_with_a_standby(fleet, 6)


@says(RULE)
def flickers_beside_a_standby(fleet: Fleet) -> None:
    """Rebalances close and open the task where it is, within the second, and so does the standby's pod."""
    a, b = fleet.pod("pod-a"), fleet.pod("pod-b")
    for number in range(14):
        a.holds("0_0", 10 + number * 60).releases("0_0", 69 + number * 60)
        b.holds("0_0", 10.5 + number * 60).releases("0_0", 69.5 + number * 60)


@says(RULE)
def restarts_where_it_is(fleet: Fleet) -> None:
    """Another pod had the task once; since then one pod restarts again and again, half a minute each time."""
    fleet.pod("pod-b").holds("0_0", 5).releases("0_0", 100)
    a = fleet.pod("pod-a")
    for number in range(13):
        a.holds("0_0", 101 + number * 60).releases("0_0", 130 + number * 60)


@says(RULE, loud="warning suspected")
def twelve_moves_not_all_watched(fleet: Fleet) -> None:
    """Where the begin of a hold may have been missed, the number is not sure."""
    goes_round(fleet, 12)
    fleet.pods[1].is_blind(400, 405)


@says(RULE, summary=("3 wipes, 3 restores", "3000 bytes restored"))
def three_wipes(fleet: Fleet) -> None:
    """Two stores wiped together are one wipe; the bytes of the copies recreated are added up."""
    a = fleet.pod("pod-a").holds("0_0", 5)
    for at in (10, 200, 400, 600):
        a.creates_store("0_0", at, f"i-{at}", store="s").creates_store("0_0", at + 1, f"j-{at}", store="t")
        a.measures("0_0", at + 60, puts=5, bytes=1000)
        if at < 600:
            a.changes("store-deleted", "0_0", at + 150, shape="owner-walk", store="s")
            a.changes("store-deleted", "0_0", at + 151, shape="owner-walk", store="t")


def test_a_task_that_goes_round_is_reported(audited):
    """Six moves in an hour: a note with the chain."""
    found = audited.finding(six_moves, RULE)
    assert (found["severity"], found["pods"]) == ("info", ["pod-a", "pod-b"])
    assert "6 moves, 0 wipes, 0 restores" in found["summary"]
    assert len(found["evidence"]) == 6


def test_clocks_do_not_decide_how_many_moves_there_were(audited):
    """Six seconds between the clocks change in which order pods take the task, and must not change the number."""
    found = [audited.finding(told, RULE)["summary"] for told in (by_clocks_that_agree, by_clocks_that_differ)]
    assert [summary.split(" moves")[0] for summary in found] == ["0_0: 12", "0_0: 12"]


@pytest.mark.parametrize(("name", "rule", "expected"), cases(__name__))
def test_cases(audited, name, rule, expected):
    """What each story has beside it."""
    audited.check(name, rule, expected)
