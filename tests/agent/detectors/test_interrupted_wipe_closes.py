"""The close of a task before a kill: what a corrupted close, a hand-over and an orderly stop leave on disk."""

from __future__ import annotations

import pytest

from agent.contract.events import Confidence, Level, Severity
from tests.support.kills import EOS, ID, killed, quiet, running, told
from tests.support.scenario import KEY_VALUE, Scenario


@pytest.mark.parametrize("release", ["3.9.2", "4.2.1", "4.3.1"])
@pytest.mark.parametrize(
    ("between", "severity"), [(0.03, "warning"), (0.2, "info"), (4.0, "info"), (5.5, None)]
)
def test_when_the_wipe_would_have_started(release, between, severity):
    """A wipe begins 4 to 40 ms after the close; where none had begun after 0.1 s, none was due."""
    run, app = running(release)
    app.closes("0_1", 2499)
    run.wait(between)
    killed(run, app)
    assert told(run) == ([] if severity is None else [("0_1", Severity(severity))])


@pytest.mark.parametrize(("between", "severity"), [(0.3, Severity.WARNING), (0.5, Severity.INFO)])
def test_on_a_slow_volume(between, severity):
    """Where an unlink takes 0.3 s, the first one of a wipe is seen so much later."""
    run = Scenario("4.0.0", EOS)
    app = run.start()
    for task_id in ("0_0", "0_1"):
        app.opens(task_id)
        app.restores(task_id, 1999, puts=2000)
    run.wait(5)
    app.stops({"0_0": 1999, "0_1": 1999})
    run.world.unlink_us = 300_000
    app = run.start()
    for task_id in ("0_0", "0_1"):
        app.opens(task_id)
        app.restores(task_id, 1999, puts=0)
    app.puts("0_0", 5000)
    app.flushes("0_0")
    app.compacts("0_0")
    run.wait(1)
    app.closes("0_0", 6999)
    run.wait(between)
    killed(run, app)
    assert told(run) == [("0_0", severity)]


def test_close_on_a_very_slow_volume():
    """RocksDB removes files while it closes: there its lock is let go long after the checkpoint was written."""
    run = Scenario("3.9.1", EOS, stores={"s": KEY_VALUE, "t": KEY_VALUE})
    run.world.unlink_us = 400_000
    app = run.start()
    for task_id in ("0_0", "0_1"):
        app.opens(task_id)
        app.restores(task_id, 1999, puts=2000)
        app.compacts(task_id)
    run.wait(3)
    app.puts("0_0", 5000)
    app.flushes("0_0")
    app.compacts("0_0")
    run.wait(3)
    app.checkpoints("0_0", 6999)
    run.wait(0.7)
    app.closes("0_0")
    run.wait(0.05)
    killed(run, app)
    assert told(run) == [("0_0", Severity.WARNING)]


FIELD = ["3.9.2", "4.2.1", "4.3.1"]
"""Releases that write a corrupted task's offsets before its wipe."""


@pytest.mark.parametrize("release", FIELD)
@pytest.mark.parametrize("between", [0.7, 1.5, 3.1])
@pytest.mark.parametrize("moved", [1, 2])
def test_rolling_restart_by_kill(release, between, moved):
    """The pod before is back and takes tasks over from this one, in order; then this one is killed."""
    run, app = running(release)
    for number in range(moved):
        app.closes(f"0_{number}", 2499)
    run.wait(between)
    killed(run, app)
    assert quiet(run)


@pytest.mark.parametrize("release", FIELD)
@pytest.mark.parametrize("closed", [1, 2, 3])
@pytest.mark.parametrize("flush", [0.01, 0.4])
def test_killed_in_an_orderly_stop(release, closed, flush):
    """The grace period is over: all offsets are written, some tasks are closed, the rest dies with the process."""
    run, app = running(release)
    ids = sorted(run.tasks)
    if not app.habits.offsets_in_store:
        for task_id in ids:
            run.wait(flush)
            app.checkpoints(task_id, 2499)
    for task_id in ids[:closed]:
        app.closes(task_id, 2499 if app.habits.offsets_in_store else None)
        run.wait(flush)
    killed(run, app)
    assert quiet(run)


@pytest.mark.parametrize(("first", "severity"), [("2_0", "info"), ("10_0", "warning")])
def test_order_of_an_orderly_stop(first, severity):
    """4.3 writes nothing before the first close; what is left is that a stop closes tasks by number: 2_0, then 10_0."""
    run = Scenario("4.3.1", EOS)
    app = run.start()
    for task_id in ("2_0", "10_0"):
        app.opens(task_id)
        app.restores(task_id, 1999, puts=2000)
        app.commits(task_id, 1999)
    run.wait(4)
    for task_id in ("2_0", "10_0"):
        app.puts(task_id, 500)
    app.closes(first, 2499)
    run.wait(0.02)
    killed(run, app)
    assert told(run) == [(first, Severity(severity))]
    assert ("a stop closes this task first" in run.only(ID).summary) == (severity == "info")


def test_wipe_of_long_ago_is_no_corruption_now():
    """A task that was wiped a minute before an orderly stop has nothing to do with it."""
    run, app = running("4.3.1")
    app.closes("0_3", 2499)
    app.deletes_directory("0_3")
    run.wait(60)
    app.closes("0_0", 2499)
    run.wait(0.02)
    killed(run, app)
    assert quiet(run)


@pytest.mark.parametrize("release", FIELD)
@pytest.mark.parametrize("between", [0.02, 0.8, 4.7])
def test_thread_that_was_removed(release, between):
    """removeStreamThread: all tasks of a thread are written, then closed one after the other; then a kill."""
    run, app = running(release)
    if not app.habits.offsets_in_store:
        for task_id in ("0_0", "0_2"):
            app.checkpoints(task_id, 2499)
    for task_id in ("0_0", "0_2"):
        app.closes(task_id, 2499 if app.habits.offsets_in_store else None)
    run.wait(between)
    killed(run, app)
    assert quiet(run)


@pytest.mark.parametrize("release", FIELD)
@pytest.mark.parametrize("between", [0.2, 2.0, 4.9])
def test_scaled_out(release, between):
    """A new instance takes one task over; then this one is killed."""
    run, app = running(release)
    app.closes("0_3", 2499)
    run.wait(between)
    killed(run, app)
    assert quiet(run)


@pytest.mark.parametrize("release", FIELD)
@pytest.mark.twin_of(ID, "its process lived on to open it again")
def test_handed_to_another_thread(release):
    """Another thread of the process has the task again when the kill comes: nothing was about to be wiped."""
    run, app = running(release)
    app.closes("0_0", 2499)
    run.wait(0.3)
    app.opens("0_0")
    run.wait(0.03)
    killed(run, app)
    assert told(run) == []


@pytest.mark.parametrize("release", FIELD)
def test_corrupted_after_another_was_wiped(release):
    """Two tasks are corrupted: the first is closed and wiped, then the second is closed and the process killed."""
    run, app = running(release)
    app.closes("0_0", 2499)
    run.wait(0.005)
    app.deletes_directory("0_0")
    app.closes("0_1", 2499)
    run.wait(0.01)
    killed(run, app)
    assert told(run) == [("0_1", Severity.WARNING)]


def test_end_that_was_polled():
    """Where nobody announces the end of the process it may have come up to a lock poll earlier than it was seen."""
    run, app = running("4.1.2")
    app.closes("0_0", 2499)
    app.crash()
    run.wait(5)
    assert told(run) == [("0_0", Severity.WARNING)]


def test_information_says_why():
    """What speaks against a corrupted close is told, and that nothing has to be done."""
    run, app = running("4.1.2")
    app.closes("0_0", 2499)
    run.wait(2)
    killed(run, app)
    assert told(run) == [("0_0", Severity.INFO)]
    late = run.only(ID)
    assert (late.confidence, late.level) == (Confidence.UNKNOWN, Level.EVENT)
    assert "its wipe would have started within 0.1 s" in late.summary
    assert late.next_action.startswith("Nothing")
    run, app = running("4.1.2")
    for task_id in ("0_0", "0_1"):
        app.checkpoints(task_id, 2499)
    for task_id in ("0_0", "0_1"):
        app.closes(task_id)
    run.wait(0.03)
    killed(run, app)
    assert told(run) == [("0_0", Severity.INFO), ("0_1", Severity.INFO)]
    assert "other tasks were closed with it" in run.findings(ID)[0].summary
