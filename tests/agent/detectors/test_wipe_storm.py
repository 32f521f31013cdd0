"""Detector `wipe-storm`: the same task wiped three times within an hour."""

from __future__ import annotations

import pytest

from agent.contract.events import Confidence, Level, Severity, Status
from tests.support.scenario import App, Scenario
from tests.support.scenario_case import at, case, judge, task

ID = "wipe-storm"


def running(release: str = "4.1.2", tasks: int = 1) -> tuple[Scenario, App]:
    """Tasks under exactly-once."""
    run = Scenario(release, "exactly_once_v2")
    app = run.start()
    for number in range(tasks):
        app.opens(f"0_{number}")
        run.wait(0.5)
        app.puts(f"0_{number}", 100)
        app.flushes(f"0_{number}")
    run.wait(5)
    return run, app


@pytest.mark.parametrize("release", ["2.6.2", "3.9.2", "4.1.2", "4.3.1"])
def test_third_wipe(release):
    """Two wipes are bad luck, three within an hour a storm; an hour later it is over."""
    run, app = running(release)
    for _ in range(2):
        app.wipes("0_0")
        run.wait(60)
    assert run.findings(ID) == []
    app.wipes("0_0")
    run.wait(5)
    finding = run.only(ID)
    assert (finding.level, finding.severity, finding.confidence, finding.status) == (
        Level.EXPOSURE,
        Severity.WARNING,
        Confidence.CONFIRMED,
        Status.OPEN,
    )
    assert "3 times" in finding.summary
    run.wait(3600)
    assert run.only(ID).status is Status.RESOLVED


def test_one_fencing_over_many_tasks():
    """N14: every task wiped once is one fencing."""
    run, app = running(tasks=4)
    for number in range(4):
        app.wipes(f"0_{number}")
    run.wait(60)
    assert run.findings(ID) == []


def test_cleaner_is_no_wipe():
    """N8: a directory that is cleaned and comes back is a moving task."""
    run, app = running()
    for _ in range(4):
        app.closes("0_0", 99)
        run.wait(30)
        app.cleaner.deletes("0_0")
        app.opens("0_0")
        run.wait(30)
    assert run.findings(ID) == []


@pytest.mark.parametrize("release", ["3.9.2", "4.3.1"])
def test_idle_partition(release):
    """A task that never got a record is wiped at every start of 4.3 under exactly-once, and restores nothing."""
    run = Scenario(release, "exactly_once_v2")
    app = run.start()
    app.opens("0_0")
    for _ in range(4):
        run.wait(60)
        app.wipes("0_0")
    assert run.findings(ID) == []
    app.puts("0_0", 100)
    app.flushes("0_0")
    for _ in range(3):
        run.wait(60)
        app.wipes("0_0")
    run.wait(5)
    assert "3 times" in run.only(ID).summary


def dossier(*times: float, now: float = 4000):
    """Wiped at these times."""
    one = task()
    one.wiped_us += tuple(at(x) for x in times)
    return case(one, now=now)


def test_within_an_hour():
    """The first of three must be at most an hour old."""
    assert len(judge(ID, dossier(400, 500, 600))) == 1
    assert judge(ID, dossier(399.9, 500, 600)) == []
    assert judge(ID, dossier(500, 600)) == []


def test_dated_to_the_third():
    """The deciding wipe is the third one."""
    verdict = judge(ID, dossier(500, 600, 700, 800))[0]
    assert verdict.opened_at_us == at(700)
    assert "4 times" in verdict.summary


def test_storm_is_one_finding():
    """Two processes that fence each other wipe a task every few seconds: one finding, with the present count."""
    run, app = running()
    for _ in range(40):
        app.wipes("0_0")
        run.wait(2)
    assert "at least 8 times" in run.only(ID).summary
    told = [record for record in run.world.records if record.body.get("detector") == ID]
    assert len(told) == 6
    run.wait(3600)
    app.wipes("0_0")
    assert run.only(ID).status is Status.RESOLVED
    for _ in range(2):
        app.wipes("0_0")
    finding = run.only(ID)
    assert finding.status is Status.OPEN
    assert "wiped 3 times" in finding.summary
    assert len(finding.evidence) == 3
