"""Active or standby, by what the commit timer writes; signs that a process was at work."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from agent.inventory.blindness import note_blind
from agent.inventory.settings import ApplicationSettings, Setting
from agent.judging.restoration_end import RestorationEnd, restoration_end
from agent.judging.role import TaskRole, let_commits_pass, may_be_on_the_way, moved_by, role_of, was_at_work
from agent.quantities.flushed import commits_passed
from tests.support.scenario_case import at, case, checkpoint, database, mark, session, store, task

TOLD = {"commit_interval_ms": 100}


@pytest.mark.parametrize(
    ("opened", "earlier", "offset", "expected"),
    [
        (0, None, 10_000, False),
        (0, None, 10_001, True),
        (0, (5, 1000, 1), 11_000, False),
        (0, (5, 1000, 1), 11_001, True),
        (7, (5, 1000, 1), 10_001, True),  # the task object that wrote it is gone: compared with nothing
        (7, (5, 1000, 1), 10_000, False),
        (0, (5, 50_000, 0), 12_000, True),  # of a directory that was wiped
    ],
)
def test_first_checkpoint_is_compared_with_nothing(opened, earlier, offset, expected):
    """Only what the same task object wrote before counts."""
    before = [] if earlier is None else [checkpoint(earlier[0], earlier[1], ended=10, incarnation=earlier[2])]
    one = task(checkpoints=[*before, checkpoint(10, offset)])
    assert may_be_on_the_way(one, one.checkpoints[-1], at(opened)) is expected
    assert moved_by(one, one.checkpoints[-1]) == offset - (0 if earlier is None else earlier[1])


@pytest.mark.parametrize(("interval_ms", "least_us"), [(100, 10_200_000), (None, 70_000_000)])
def test_commits_passed(interval_ms, least_us):
    """Two intervals, and ten seconds for a batch and a flush; the longest default where nothing is told."""
    told = {} if interval_ms is None else {"commit_interval_ms": Setting(str(interval_ms), "flag")}
    settings = ApplicationSettings(told)
    assert [commits_passed(settings, x) for x in (least_us - 1, least_us)] == [False, True]


@pytest.mark.parametrize(
    ("standbys", "offset", "puts", "now", "role"),
    [
        # no commit wrote it: a restoration that ended, or a pause
        (1, 10_000, 500, 60, TaskRole.UNLESS_PAUSED),
        (1, 10_000, 10_001, 30.2, TaskRole.ACTIVE),
        (1, 10_001, 500, 60, TaskRole.STANDBY_LIKE),
        (None, 10_001, 500, 60, TaskRole.UNKNOWN),
        (0, 10_001, 500, 60, TaskRole.ASSUMED),
        (1, 10_001, 10_001, 30.2, TaskRole.ACTIVE),
        (1, 10_001, 10_001, 30.1, TaskRole.STANDBY_LIKE),  # no commit was due for sure
    ],
)
def test_role(standbys, offset, puts, now, role):
    """Of a task that flushed `puts` at 20 s beyond its checkpoint of 10 s, and a little more right after it."""
    one = store(
        [database(puts=2000 + puts, flushed=[(2000, 9), (2000 + puts, 20), (2001 + puts, 20.2)])],
        [session(0, first=mark(10, offset, 2000))],
    )
    owner = task(one, checkpoints=[checkpoint(10, offset)])
    asked = case(owner, now=now, standbys=standbys, told=TOLD)
    assert role_of(asked, one, one.sessions[-1]) is role


# -- signs of work --------------------------------------------------------------------------------------------


def signed(
    *,
    flushed: Sequence[float] = (),
    reopened: Sequence[float] = (),
    born: float = 0.0,
    written: Sequence[float] = (),
    task_id: str = "0_0",
) -> Any:
    """A task with these signs."""
    files = database(
        puts=9, flushed=[(9, x) for x in flushed], born=born, reopened_us=tuple(map(at, reopened))
    )
    return task(
        store([files], [session(0)]), checkpoints=[checkpoint(x, 7) for x in written], task_id=task_id
    )


@pytest.mark.parametrize(
    "sign", [{"flushed": [20]}, {"reopened": [20]}, {"born": 20}, {"written": [20]}, {"flushed": [5, 20, 90]}]
)
@pytest.mark.parametrize(
    ("from_s", "until_s", "expected"), [(20, 20, True), (10, 30, True), (20.1, 30, False), (10, 19.9, False)]
)
@pytest.mark.parametrize("is_own", [True, False])
def test_what_is_a_sign(sign, from_s, until_s, expected, is_own):
    """A flush, an opening, a new store or a checkpoint, of the task or of another one of the application."""
    one = signed(**sign, task_id="0_1")
    assert was_at_work(case(one if is_own else task(), one), at(from_s), at(until_s)) is expected


@pytest.mark.parametrize(
    ("sign", "until", "set_forward", "expected"),
    [
        (12, 22, False, True),
        (11.9, 60, False, False),
        (30, 40, False, True),
        (30, 39.9, False, False),
        (30, 25, False, False),
        (12.5, 27, True, True),  # five seconds of it were only set
        (12.5, 26.9, True, False),
    ],
)
def test_commits(sign, until, set_forward, expected):
    """Two intervals of a second after 10 s the process must be at work, and nothing may come for ten seconds more."""
    judged = case(signed(flushed=[sign]), told={"commit_interval_ms": 1000})
    if set_forward:
        note_blind(judged.inventory, at(13), at(18), "clock-step")
    assert let_commits_pass(judged, at(10), at(until)) is expected


@pytest.mark.parametrize(("own", "certain"), [(30, True), (20.1, False)])
def test_a_restoration_ended_for_sure_only_if_the_task_itself_was_at_work(own, certain):
    """A thread that a processor or a broker holds up writes nothing, while another thread's task goes on."""
    files = database(puts=12_003, flushed=[(2000, 9), (12_002, 20), (12_003, own)])
    one = store([files], [session(0, first=mark(10, 10_001, 2000))])
    owner = task(one, checkpoints=[checkpoint(10, 10_001)])
    asked = case(owner, signed(flushed=[30], task_id="0_1"), now=60, standbys=1, told=TOLD)
    end = restoration_end(asked, owner, one, one.sessions[-1])
    assert end == RestorationEnd(10_001, certain)
