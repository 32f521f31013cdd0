"""Moves, wipes and restores within an hour."""

from __future__ import annotations

import pytest

from tests.spark_rollup.support.fleet import Fleet, story

pytestmark = [pytest.mark.spark, pytest.mark.timeout(300), pytest.mark.xdist_group("spark")]

RULE = "task-churn"


def goes_round(fleet: Fleet, moves: int) -> None:
    """Move the task to and fro, a minute on each pod."""
    pods = (fleet.pod("pod-a"), fleet.pod("pod-b"))
    for number in range(moves + 1):
        pods[number % 2].holds("0_0", 10 + number * 60).releases("0_0", 65 + number * 60)


@story
def six_moves(fleet: Fleet) -> None:
    goes_round(fleet, 6)


@story
def twelve_moves(fleet: Fleet) -> None:
    goes_round(fleet, 12)


@story
def two_moves(fleet: Fleet) -> None:
    goes_round(fleet, 2)


@story
def three_wipes(fleet: Fleet) -> None:
    a = fleet.pod("pod-a").holds("0_0", 5)
    for at in (10, 200, 400, 600):
        a.creates_store("0_0", at, f"i-{at}", store="s").creates_store("0_0", at + 1, f"j-{at}", store="t")
        a.measures("0_0", at + 60, puts=5, bytes=1000)
        if at < 600:
            a.changes("store-deleted", "0_0", at + 150, shape="owner-walk", store="s")
            a.changes("store-deleted", "0_0", at + 151, shape="owner-walk", store="t")


def test_a_task_that_goes_round_is_told(audited):
    """Six moves in an hour: a note with the chain; twelve: a warning."""
    found = audited.finding(six_moves, RULE)
    assert (found["severity"], found["pods"]) == ("info", ["pod-a", "pod-b"])
    assert "6 moves, 0 wipes, 0 restores" in found["summary"]
    assert len(found["evidence"]) == 6
    assert audited.finding(twelve_moves, RULE)["severity"] == "warning"


def test_wipes_count_once_per_task_and_what_they_cost(audited):
    """Two stores wiped together are one wipe; the bytes of the copies made anew are added up."""
    found = audited.finding(three_wipes, RULE)
    assert "3 wipes, 3 restores" in found["summary"]
    assert "3000 bytes restored" in found["summary"]


def test_there_and_back_is_quiet(audited):
    """A rolling restart moves a task twice."""
    assert audited.findings(two_moves, RULE) == []
