"""Detector `startup-pass`: what a start of 4.3 or later did with the stores on disk (KAFKA-19434)."""

from __future__ import annotations

import pytest

from agent.contract.events import Affected, Level, Severity, Status
from agent.inventory.model import Application, ProcessLife
from tests.support.scenario import Scenario
from tests.support.scenario_case import at, case, database, judge, session, store, task

ID = "startup-pass"


def restarted(release: str, **more) -> Scenario:
    """Two tasks on disk, a start with its pass, then one of them is assigned."""
    run = Scenario(release, **more)
    app = run.start()
    for task_id in ("0_0", "0_1"):
        app.opens(task_id)
        app.puts(task_id, 100)
    run.wait(1)
    app.stops({"0_0": 99, "0_1": 99})
    run.wait(40)
    app = run.start()
    run.wait(1)
    if app.habits.startup_pass:
        app.startup_pass()
    run.wait(3)
    app.opens("0_0")
    return run


@pytest.mark.parametrize("release", ["4.3.0", "4.3.1"])
def test_reported_once_per_start(release):
    """Half a minute after the start one event tells the stores that were opened; it is closed at once."""
    run = restarted(release)
    run.wait(20)
    assert run.findings(ID) == []
    run.wait(60)
    finding = run.only(ID)
    assert (finding.level, finding.severity, finding.status) == (Level.EVENT, Severity.INFO, Status.RESOLVED)
    assert (finding.task_id, finding.upstream) == (None, ("KAFKA-19434",))
    opened = [step for step in finding.evidence if "opened" in step.what]
    assert {step.where for step in opened} == {"app/0_0", "app/0_1"}
    assert "2 stores" in finding.summary


@pytest.mark.parametrize("release", ["4.2.1", "3.9.2", "2.8.2"])
def test_quiet_on_other_releases(release):
    """Earlier releases open what they are assigned."""
    run = restarted(release)
    run.wait(100)
    assert run.findings(ID) == []


def test_quiet_for_a_first_start():
    """A fresh directory has nothing to pass over."""
    run = Scenario("4.3.1")
    app = run.start()
    app.opens("0_0")
    run.wait(100)
    assert run.findings(ID) == []


def life(
    *,
    started: float = 10,
    ended: float | None = None,
    opened: float = 11,
    created: bool = False,
    now: float = 100,
):
    """One process life and one session."""
    app = Application("app", exists=True)
    app.lives += (ProcessLife(at(started), None if ended is None else at(ended)),)
    one = task(store([database()], [session(opened, opened + 1, created=created)]))
    return case(one, application=app, release="4.3.1", now=now)


def test_waits_half_a_minute_or_for_the_end():
    """The pass is told when it must be over."""
    assert judge(ID, life(now=39.9)) == []
    assert len(judge(ID, life(now=40))) == 1
    assert len(judge(ID, life(ended=20, now=21))) == 1


def test_counts_stores_of_this_life():
    """A store that was made new, opened before, or after the end, is not part of it."""
    assert judge(ID, life(created=True)) == []
    assert judge(ID, life(opened=8.9)) == []
    assert len(judge(ID, life(opened=9))) == 1
    assert judge(ID, life(ended=20, opened=21)) == []


def test_says_what_became_of_a_store():
    """Each step says how long the store was open."""
    verdict = judge(ID, life())[0]
    assert verdict.affected is Affected.YES
    assert "released after 1.0 s" in verdict.evidence[1].what
    still = life()
    still.task.stores["s"].sessions[0].released_us = None
    assert "still open" in judge(ID, still)[0].evidence[1].what


def test_unknown_release_says_nothing():
    """The pass is not guessed."""
    one = life()
    other = case(*one.application.tasks.values(), application=one.application, release=None)
    assert judge(ID, other) == []
