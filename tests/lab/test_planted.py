"""Planted faults: each has a life, and of each is told what laws said."""

from __future__ import annotations

import pytest

from tests.lab.faults import FAULTS
from tests.lab.planted import PLAYS, RELEASES, Outcome, design
from tests.lab.said import Said
from tests.lab.truth import Difference
from tests.support.laws import LAWS


def said(agent: str, severity: str = "warning", detector: str = LAWS[0].meta.id) -> Said:
    """A word of a law."""
    return Said(agent, detector, "0_0", "kv", severity, "suspected", "possibly", "a summary", "", 1)


@pytest.mark.parametrize("fault", FAULTS)
def test_each_fault_has_a_life_under_an_application_that_has_it(fault):
    run = design(fault, RELEASES.split(",")[0])
    assert run.settings["live.planted"] == fault
    assert run.guarantee == PLAYS[fault].guarantee
    assert FAULTS.keys() == PLAYS.keys()


def test_truth_and_words_of_each_are_told():
    lost = Outcome(
        "other-offset",
        "3.9.2",
        (Difference("kv", 0, lost=3, extra=0, expected=9),),
        (said("a-told"), said("a-untold")),
    )
    silent = Outcome("replay-twice", "3.9.2", (), (said("a-told", "info"),))
    undecided = Outcome("replay-twice", "4.3.1", (), ())
    assert lost.lines().startswith(f"other-offset 3.9.2: kv: 3 of 9 lost; laws: {LAWS[0].meta.id}\n")
    assert undecided.lines() == "replay-twice 4.3.1: right; everything was put twice; laws: silent\n"
    assert [x.is_missed for x in (lost, silent, undecided)] == [False, True, False]


def test_what_one_agent_alone_says_is_marked():
    one = Outcome("delete-held", "4.3.1", (), (said("a-told"),))
    assert one.words == f"{LAWS[0].meta.id} (one agent)"
