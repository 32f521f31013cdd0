"""Signs that a process was at work."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from agent.inventory.blindness import note_blind
from agent.inventory.model import CheckpointFact, Store
from agent.judging.role import let_commits_pass, was_at_work
from tests.support.scenario_case import at, case, checkpoint, database, session, store, task

TOLD = {"commit_interval_ms": 1000}


def signs(
    *,
    flushed: Sequence[float] = (),
    reopened: Sequence[float] = (),
    born: float = 0.0,
    written: Sequence[float] = (),
) -> tuple[Store, list[CheckpointFact]]:
    files = database(puts=9, flushed=[(9, x) for x in flushed], born=born)
    files.reopened_us += tuple(at(x) for x in reopened)
    return store([files], [session(0)]), [checkpoint(x, 7) for x in written]


@pytest.mark.parametrize(
    "sign", [{"flushed": [20]}, {"reopened": [20]}, {"born": 20}, {"written": [20]}, {"flushed": [5, 20, 90]}]
)
@pytest.mark.parametrize(
    ("from_s", "until_s", "expected"), [(20, 20, True), (10, 30, True), (20.1, 30, False), (10, 19.9, False)]
)
@pytest.mark.parametrize("is_own", [True, False])
def test_what_is_a_sign(sign, from_s, until_s, expected, is_own):
    """A flush, an opening, a new store or a checkpoint, of the task or of another one of the application."""
    files, checkpoints = signs(**sign)
    one = task(files, checkpoints=checkpoints, task_id="0_1")
    asked = one if is_own else task()
    assert was_at_work(case(asked, one), at(from_s), at(until_s)) is expected


@pytest.mark.parametrize(
    ("sign", "until", "expected"),
    [(12, 22, True), (11.9, 60, False), (30, 40, True), (30, 39.9, False), (30, 25, False)],
)
def test_commits(sign, until, expected):
    """Two intervals of a second after 10 s the process must be at work, and nothing may come for ten seconds more."""
    one = task(signs(flushed=[sign])[0])
    assert let_commits_pass(case(one, told=TOLD), at(10), at(until)) is expected


@pytest.mark.parametrize(("until", "expected"), [(27, True), (26.9, False)])
def test_commits_that_the_clock_jumped_over(until: float, expected: bool) -> None:
    """Two intervals of a second and ten seconds must pass in fact: five seconds were only set."""
    one = task(signs(flushed=[12.5])[0])
    judged = case(one, told=TOLD)
    note_blind(judged.inventory, at(13), at(18), "clock-step")
    assert let_commits_pass(judged, at(10), at(until)) is expected
