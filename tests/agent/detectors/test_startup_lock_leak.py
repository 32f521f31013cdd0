"""Detector `startup-lock-leak`: a store of the start-up pass not closed by an orderly exit (KAFKA-20663 b)."""

from __future__ import annotations

import pytest

from agent.contract.events import Affected, Confidence, Level, Severity, Status
from tests.support.scenario import Scenario

ID = "startup-lock-leak"


def leaking(
    release: str = "4.3.0", *, leaks: bool = True, flushed: int = 500, others: bool = True
) -> Scenario:
    """Two tasks work; at the orderly end one of them is only let go with the process."""
    run = Scenario(release)
    app = run.start()
    for task_id in ("0_0", "0_1") if others else ("0_0",):
        app.opens(task_id)
        run.wait(0.5)
        app.puts(task_id, 500)
        app.flushes(task_id)
        app.puts(task_id, flushed)
    run.wait(5)
    if leaks:
        if flushed:
            app.flushes("0_0")
        if others:
            app.closes("0_1", 999)
        for database in run.task("0_0").databases.values():
            run.world.play("unlock", f"{database.path}/LOCK")
            database.crash()
        app.held.clear()
        app.ends()
    else:
        app.stops({"0_0": 999, "0_1": 999})
    run.wait(10)
    return run


def test_store_that_was_not_closed():
    """The other store was closed, this one was not, and it had flushed: suspected, told once."""
    finding = leaking().only(ID)
    assert (finding.level, finding.severity, finding.confidence, finding.status) == (
        Level.EXPOSURE,
        Severity.WARNING,
        Confidence.SUSPECTED,
        Status.RESOLVED,
    )
    assert (finding.task_id, finding.store, finding.affected) == ("0_0", "s", Affected.YES)
    times = [step.at_us for step in finding.evidence]
    assert times == sorted(times)


def test_quiet_for_an_orderly_stop():
    """Every store closed."""
    assert leaking(leaks=False).findings(ID) == []


def test_quiet_for_a_kill():
    """When no store was closed, the process was killed."""
    run = Scenario("4.3.0")
    app = run.start()
    for task_id in ("0_0", "0_1"):
        app.opens(task_id)
        run.wait(0.5)
        app.puts(task_id, 500)
        app.flushes(task_id)
    run.wait(5)
    app.crash()
    run.wait(10)
    assert run.findings(ID) == []


def test_quiet_without_another_store():
    """A single store gives nothing to compare with."""
    assert leaking(others=False).findings(ID) == []


@pytest.mark.parametrize("release", ["4.3.1", "4.2.1"])
def test_quiet_on_other_releases(release):
    """Only 4.3.0 keeps the lock of the start-up pass."""
    assert leaking(release).findings(ID) == []
