"""Detector `unrestored-store`: a task runs, and its store is still open for a restoration that was never ended.

Found by the hunt on 2.0.1: a table of a source topic came back to its thread, one poll of 1,000 records was applied,
and the checkpoint claimed these 1,000 of 5,040, no more.
"""

from __future__ import annotations

import pytest

from agent.contract.events import Confidence, Level, Severity, Status
from tests.agent.detectors.test_unrestored_store import ID
from tests.support.scenario import KEY_VALUE, WINDOWED, Scenario
from tests.support.scenario_app import App

COMMIT_S = 12


def half(release: str = "2.0.1", guarantee: str = "at_least_once", **more) -> tuple[Scenario, App]:
    """A new directory, and one poll of a restoration: 1,000 puts in a store that is open for bulk loading."""
    run = Scenario(release, guarantee, **more)
    app = run.start()
    app.opens("0_0")
    run.wait(0.1)
    app.begins_restoring("0_0")
    app.puts("0_0", 1000)
    return run, app


def commits(run: Scenario, app: App, times: int, offset: int = 1000) -> None:
    """As a running task does; what its source topic's entry says is what was restored."""
    for _ in range(times):
        run.wait(COMMIT_S)
        app.flushes("0_0")
        app.write_checkpoint("0_0", {("in-table", 0): offset})


@pytest.mark.parametrize("release", ["2.0.1", "2.1.1"])
def test_one_poll_and_commits(release):
    """Nothing is claimed that is not there: the fourth commit shows that the task runs."""
    run, app = half(release)
    commits(run, app, 3)
    run.wait(20)
    assert run.findings(ID) == []
    commits(run, app, 1)
    run.wait(8)
    finding = run.only(ID)
    assert (finding.level, finding.severity, finding.confidence, finding.status, finding.store) == (
        Level.DAMAGE,
        Severity.WARNING,
        Confidence.SUSPECTED,
        Status.OPEN,
        "s",
    )
    assert "its restoration began and was not ended" in finding.summary
    assert finding.evidence[-1].what.endswith("the restoration was not ended; 1000 puts on disk")


def test_what_was_not_restored_stays_missing():
    """It took new records, and claims them: the next opening has nothing to restore. It ends with the store."""
    run, app = half()
    commits(run, app, 4)
    app.puts("0_0", 20)
    commits(run, app, 1, 5060)
    app.closes("0_0")
    app.ends()
    run.wait(8)
    app = run.start()
    app.opens("0_0")
    commits(run, app, 9, 5060)
    assert run.only(ID).status is Status.OPEN
    app.closes("0_0")
    app.ends()
    app.deletes_directory("0_0")
    run.wait(5)
    app = run.start()
    app.opens("0_0")
    app.restores("0_0", 5060)
    commits(run, app, 1, 5060)
    assert run.only(ID).status is Status.RESOLVED


@pytest.mark.parametrize("times", [1, 2])
@pytest.mark.twin_of(ID, "a revocation and a close write fewer commits")
def test_a_close_in_the_middle_of_a_restoration(times):
    """What a revocation and a close write of a restoring task, seen live on 2.0.1: three within 0.14 s."""
    run, app = half()
    app.flushes("0_0")
    for _ in range(times):
        run.wait(15)
        for _ in range(3):
            run.wait(0.05)
            app.write_checkpoint("0_0", {("in-table", 0): 1000})
    app.closes("0_0")
    app.ends()
    run.wait(30)
    assert run.findings(ID) == []


@pytest.mark.twin_of(ID, "its restoration ended, or never began")
def test_a_whole_restoration():
    """The second reopen comes before the first commit."""
    run, app = half()
    app.ends_restoring("0_0")
    commits(run, app, 5)
    run.wait(8)
    assert run.findings(ID) == []


def test_the_wipe_of_another_store():
    """At-least-once writes a checkpoint without the wiped one, again and again: the rest was read at the opening."""
    run = Scenario("2.0.1", "at_least_once", stores={"s": KEY_VALUE, "other": KEY_VALUE})
    app = run.start()
    app.opens("0_0")
    run.wait(1)
    app.puts("0_0", 500)
    app.checkpoints("0_0", {"s": 500, "other": 500})
    app.closes("0_0", {"s": 500, "other": 500})
    app.ends()
    run.wait(5)
    app = run.start()
    app.opens("0_0")
    run.wait(0.1)
    app.begins_restoring("0_0", "s")
    app.puts("0_0", 1000, store="s")
    for _ in range(5):
        run.wait(COMMIT_S)
        app.checkpoints("0_0", {"s": 500})
    run.wait(8)
    assert run.findings(ID) == []
    app.checkpoints("0_0", {"s": 1500})
    run.wait(8)
    assert run.findings(ID) == []


@pytest.mark.parametrize("release", ["2.2.0", "2.5.1"])
def test_releases_that_forget(release):
    """From 2.2 on nothing is remembered of what was completed once."""
    run, app = half(release)
    commits(run, app, 5)
    run.wait(8)
    assert run.findings(ID) == []


def test_windowed_stores_have_no_such_mode():
    """Their restoration reopens nothing."""
    run = Scenario("2.0.1", "at_least_once", stores={"w": WINDOWED})
    app = run.start()
    app.opens("0_0")
    app.puts("0_0", 1000)
    commits(run, app, 5)
    assert run.findings(ID) == []
