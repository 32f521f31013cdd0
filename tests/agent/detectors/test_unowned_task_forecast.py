"""Detector `unowned-task`: when the cleaner may take the directory, and which siblings show life."""

from __future__ import annotations

import pytest

from agent.contract.codec import moment
from tests.support.scenario_case import at, case, database, judge, store, task

ID = "unowned-task"


def dossier(*, mtime: float = 10, delay: int | None = None, taken: float = 0, now: float = 100):
    """0_0 was let go at 10 s, its directory changed at `mtime`; 0_1 is held since `taken`."""
    one = task(store([database()]))
    one.held, one.released_us, one.mtime_us = False, at(10), at(mtime)
    sibling = task(store([database()]), task_id="0_1")
    sibling.held, sibling.held_since_us = True, at(taken)
    told = {} if delay is None else {"state_cleanup_delay_ms": delay}
    return case(one, sibling, now=now, release="2.1.1", guarantee=None, standbys=1, told=told)


@pytest.mark.parametrize(
    ("mtime", "delay", "due"),
    [(10, 600_000, 610), (50, 600_000, 650), (10, 60_000, 70)],
)  # fmt: skip
def test_forecast(mtime, delay, due):
    """The cleaner counts from the directory's own time; it may be due already."""
    said = judge(ID, dossier(mtime=mtime, delay=delay))[0].summary
    assert f"the cleaner may take it from {moment(at(due))} on" in said


def test_no_forecast_without_the_delay():
    """What nobody said is not guessed."""
    assert "cleaner" not in judge(ID, dossier())[0].summary


@pytest.mark.parametrize(("taken", "said"), [(94.9, 1), (95, 0)])
def test_sibling_that_was_just_taken(taken, said):
    """After a restart tasks are taken one by one: a sibling counts when it is held for more than five seconds."""
    assert len(judge(ID, dossier(taken=taken))) == said
