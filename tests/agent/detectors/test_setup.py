"""Detector `setup`: two processes on one application directory (KAFKA-6647)."""

from __future__ import annotations

import pytest

from agent.contract.events import Confidence, Level, Severity, Status
from agent.inventory.disk import ProcessFact
from agent.inventory.model import Application
from tests.support.scenario import Scenario
from tests.support.scenario_case import at, case, judge

ID = "setup"
SHARED = "shared-state"


def with_processes(*pids: int):
    """Visible processes on one directory."""
    app = Application("app", exists=True)
    app.processes = tuple(ProcessFact(pid, at(pid)) for pid in pids)
    return case(application=app)


def test_two_visible_processes():
    """Both are named, and the finding is dated to the second."""
    verdict = judge(ID, with_processes(3, 5))[0]
    assert (verdict.severity, verdict.confidence, verdict.opened_at_us) == (
        Severity.CRITICAL,
        Confidence.CONFIRMED,
        at(5),
    )
    assert "pids 3, 5" in verdict.summary
    assert len(verdict.evidence) == 2


def test_one_process_or_none_in_sight():
    """One is normal, none is what a sidecar without a shared process namespace sees."""
    assert judge(ID, with_processes(3)) == []
    assert judge(ID, with_processes()) == []


def test_lock_file_replaced_under_its_holder():
    """A lock file that is removed and recreated while it is held lets a second process in."""
    run = Scenario("3.9.2")
    app = run.start()
    app.opens("0_0")
    run.wait(2)
    with run.unheard():
        run.world.play("unlink", "app/.lock")
        run.world.lock("app/.lock")
    run.wait(65)
    finding = run.only(ID)
    assert (finding.level, finding.severity, finding.confidence) == (
        Level.DAMAGE,
        Severity.WARNING,
        Confidence.SUSPECTED,
    )


def test_quiet_for_restarts():
    """The next process takes the same file."""
    run = Scenario("3.9.2")
    for _ in range(3):
        app = run.start()
        app.opens("0_0")
        run.wait(2)
        app.crash()
        run.wait(1)
    assert run.findings(ID) == []


def test_two_applications_side_by_side():
    """Each has a directory and a lock of its own."""
    run = Scenario("3.9.2")
    run.start().opens("0_0")
    run.application = "other"
    run.tasks.clear()
    run.start().opens("0_0")
    run.wait(5)
    assert run.findings(ID) == []


def test_visible_processes_of_two_applications(monkeypatch: pytest.MonkeyPatch):
    """A process of the neighbour application in the same state directory is nobody's second process."""
    run = Scenario("3.9.2")
    mine, other = frozenset({"app"}), frozenset({"other"})
    facts = (ProcessFact(1, at(0), "3.9.2", mine), ProcessFact(2, at(1), "3.8.0", other))
    monkeypatch.setattr(run.world.disk, "processes", lambda: facts)
    run.start().opens("0_0")
    run.application = "other"
    run.tasks.clear()
    run.start().opens("0_0")
    run.wait(30)
    assert [x for x in run.findings(ID) if x.mechanism == SHARED] == []
    monkeypatch.setattr(run.world.disk, "processes", lambda: (*facts, ProcessFact(3, at(2), "3.9.2", mine)))
    run.wait(70)
    assert [x.application_id for x in run.findings(ID) if x.mechanism == SHARED] == ["app"]


def test_clears_when_no_process_is_left(monkeypatch: pytest.MonkeyPatch):
    """Both processes are gone: nothing shares the directory any more."""
    run = Scenario("3.9.2")
    both = (ProcessFact(1, at(0)), ProcessFact(2, at(1)))
    monkeypatch.setattr(run.world.disk, "processes", lambda: both)
    app = run.start()
    app.opens("0_0")
    run.wait(70)
    assert run.only(ID).status is Status.OPEN
    monkeypatch.setattr(run.world.disk, "processes", lambda: ())
    app.stops()
    run.wait(200)
    assert run.only(ID).status is Status.RESOLVED
