"""Detector `interrupted-wipe`: killed between the close of a corrupted task and its wipe (hazard D2)."""

from __future__ import annotations

import pytest

from agent.contract.events import Affected, Confidence, Level, Severity
from tests.support.scenario import App, Scenario

ID = "interrupted-wipe"
EOS = "exactly_once_v2"


def closed_then_killed(
    release: str = "4.1.2",
    guarantee: str = EOS,
    *,
    between: float = 0.03,
    offset: int | None = 6999,
    siblings: bool = True,
    **more,
) -> Scenario:
    """A running task is closed with a fresh offset, and the process is killed shortly after."""
    run = Scenario(release, guarantee, **more)
    app = run.start()
    ids = ["0_0", "0_1"] if siblings else ["0_0"]
    for task_id in ids:
        app.opens(task_id)
        app.restores(task_id, 1999, puts=2000)
        if app.habits.offsets_in_store:
            app.commits(task_id, 1999)
    run.wait(5)
    for task_id in ids:
        app.puts(task_id, 5000)
        app.flushes(task_id)
    run.wait(2)
    app.closes("0_0", offset)
    run.wait(between)
    app.crash()
    run.wait(5)
    return run


def reopened(run: Scenario) -> App:
    """The next process opens the task and trusts it."""
    app = run.start()
    run.wait(5)
    app.opens("0_0")
    return app


@pytest.mark.parametrize("release", ["3.8.1", "3.9.1", "4.1.2", "4.2.1", "4.3.1"])
def test_suspected_when_reopened(release):
    """A close right before the kill, siblings killed open, and no wipe afterwards: suspected, never more."""
    run = closed_then_killed(release)
    assert run.findings(ID) == []
    app = reopened(run)
    app.restores("0_0", 6999, puts=0)
    run.wait(15)
    finding = run.only(ID)
    assert (finding.level, finding.severity, finding.confidence) == (
        Level.DAMAGE,
        Severity.WARNING,
        Confidence.SUSPECTED,
    )
    assert (finding.task_id, finding.affected) == ("0_0", Affected.YES)
    assert finding.missing_facts == ("aborted transactions in the changelog",)


def test_not_before_the_reopening_is_settled():
    """Without a checkpoint it takes ten seconds after the reopening to know that no wipe comes."""
    run = closed_then_killed()
    reopened(run)
    run.wait(9)
    assert run.findings(ID) == []
    run.wait(3)
    assert len(run.findings(ID)) == 1


def test_quiet_when_wiped():
    """A wipe at the next start is what is due."""
    run = closed_then_killed()
    app = reopened(run)
    app.wipes("0_0")
    run.wait(30)
    assert run.findings(ID) == []


def test_quiet_for_a_revoked_task():
    """A task that was let go six seconds before the kill was revoked."""
    run = closed_then_killed(between=6)
    reopened(run)
    run.wait(30)
    assert run.findings(ID) == []


def test_quiet_for_an_orderly_stop():
    """When everything is closed, nothing was interrupted."""
    run = Scenario("4.1.2", EOS)
    app = run.start()
    for task_id in ("0_0", "0_1"):
        app.opens(task_id)
        app.restores(task_id, 1999, puts=2000)
    run.wait(5)
    app.stops({"0_0": 2500, "0_1": 2500})
    run.wait(5)
    reopened(run)
    run.wait(30)
    assert run.findings(ID) == []


def test_quiet_without_siblings():
    """With no other task held to the end a kill after a close cannot be told from a stop."""
    run = closed_then_killed(siblings=False)
    reopened(run)
    run.wait(30)
    assert run.findings(ID) == []


def test_quiet_for_a_plain_crash():
    """A kill of open stores is no interrupted wipe."""
    run = Scenario("4.1.2", EOS)
    app = run.start()
    for task_id in ("0_0", "0_1"):
        app.opens(task_id)
        app.restores(task_id, 1999, puts=2000)
    run.wait(5)
    app.crash()
    run.wait(5)
    reopened(run)
    run.wait(30)
    assert run.findings(ID) == []


def test_quiet_without_a_fresh_offset():
    """A dirty close writes no offset: on 4.3 that is a false clean, before it a skipped wipe."""
    run = closed_then_killed("4.3.1", offset=None)
    reopened(run)
    run.wait(30)
    assert run.findings(ID) == []


@pytest.mark.parametrize(
    ("release", "guarantee", "hidden"),
    [
        ("3.7.2", EOS, ()),
        ("4.4.0", EOS, ()),
        ("4.1.2", "at_least_once", ()),
        ("4.1.2", EOS, ("processing_guarantee",)),
    ],
)
def test_quiet_elsewhere(release, guarantee, hidden):
    """Other releases, at-least-once, and an unknown guarantee."""
    run = closed_then_killed(release, guarantee, hidden=hidden)
    app = reopened(run)
    app.restores("0_0", 6999, puts=0)
    run.wait(30)
    assert run.findings(ID) == []


@pytest.mark.parametrize(("between", "said"), [(4.0, 1), (5.5, 0)])
def test_five_seconds_before_the_kill(between, said):
    """The wipe would have begun right after the close; five seconds are the limit."""
    run = closed_then_killed(between=between)
    reopened(run)
    run.wait(30)
    assert len(run.findings(ID)) == said
