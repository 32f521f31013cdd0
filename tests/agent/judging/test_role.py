"""Active or standby, by what the commit timer writes."""

from __future__ import annotations

import pytest

from agent.inventory.settings import ApplicationSettings, Setting
from agent.judging.role import TaskRole, may_be_on_the_way, moved_by, role_of
from agent.quantities.flushed import commits_passed
from tests.support.scenario_case import at, case, checkpoint, database, mark, session, store, task

TOLD = {"commit_interval_ms": 100}


def settings(interval_ms: int | None = 100) -> ApplicationSettings:
    return ApplicationSettings(
        {} if interval_ms is None else {"commit_interval_ms": Setting(str(interval_ms), "flag")}
    )


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


def test_commits_passed():
    """Two intervals, and ten seconds for a batch and a flush; the longest default where nothing is told."""
    assert not commits_passed(settings(), 10_199_999)
    assert commits_passed(settings(), 10_200_000)
    assert not commits_passed(settings(interval_ms=None), 69_999_999)
    assert commits_passed(settings(interval_ms=None), 70_000_000)


@pytest.mark.parametrize(
    ("standbys", "offset", "puts", "now", "role"),
    [
        (
            1,
            10_000,
            500,
            60,
            TaskRole.UNLESS_PAUSED,
        ),  # no commit wrote it: a restoration that ended, or a pause
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


def test_later_checkpoint_beside_standbys():
    """A standby that becomes active writes one, which its initialisation deletes, and one when it has restored."""
    first, last = mark(10, 2000, 2000), mark(50, 2600, 2500)
    one = store([database(puts=3000, flushed=[(2000, 9), (3000, 60)])], [session(0, first=first, last=last)])
    stands = task(one, checkpoints=[checkpoint(10, 2000, ended=11, deleted=True), checkpoint(50, 2600)])
    assert (
        role_of(case(stands, now=90, standbys=1, told=TOLD), one, one.sessions[-1]) is TaskRole.UNLESS_PAUSED
    )
    gone = task(
        one, checkpoints=[checkpoint(10, 2000, ended=50), checkpoint(50, 2600, ended=51, deleted=True)]
    )
    assert role_of(case(gone, now=90, standbys=1, told=TOLD), one, one.sessions[-1]) is TaskRole.STANDBY_LIKE
    assert role_of(case(gone, now=90, standbys=0, told=TOLD), one, one.sessions[-1]) is TaskRole.ASSUMED
