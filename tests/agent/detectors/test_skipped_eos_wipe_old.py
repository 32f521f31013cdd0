"""Detector `skipped-eos-wipe` on releases up to 2.5: KAFKA-7192, KAFKA-9891."""

from __future__ import annotations

import pytest

from agent.contract.events import Affected, Severity
from tests.agent.detectors.test_skipped_eos_wipe import ID, reopened
from tests.support.scenario import KEY_VALUE, App, Scenario


def old_crash(release: str, *, standby: bool = False) -> Scenario:
    """Exactly-once up to 2.5: 2000 restored puts, 7609 flushed by processing, then a kill."""
    run = Scenario(release, "exactly_once", 0 if not standby else 1)
    app = run.start()
    app.opens("0_0")
    app.restores("0_0", 2000)
    run.wait(2)
    if standby:
        app.checkpoints("0_0", 2000)
    app.puts("0_0", 7609)
    app.flushes("0_0")
    run.wait(2)
    app.crash()
    run.wait(5)
    return run


def test_7192_restoration_gives_back_less():
    """2.0.0 does not wipe: the restoration replays 2,000 records over 7,609 flushed puts."""
    run = old_crash("2.0.0")
    app = reopened(run)
    app.restores("0_0", 2000)
    run.wait(2)
    app.puts("0_0", 100)
    app.closes("0_0", 2100)
    run.wait(1)
    finding = run.only(ID)
    assert (finding.severity, finding.affected) == (Severity.CRITICAL, Affected.YES)
    assert "KAFKA-7192" in finding.upstream


def test_9891_standby_reuses_dirty_state():
    """2.5.0 reopens as a standby what a crashed active left; the first checkpoint is far too low."""
    run = old_crash("2.5.0")
    app = reopened(run)
    app.restores("0_0", 900, puts=900)
    app.checkpoints("0_0", 900)
    run.wait(2)
    finding = run.only(ID)
    assert (finding.severity, finding.upstream) == (Severity.CRITICAL, ("KAFKA-9891",))


@pytest.mark.twin_of("skipped-eos-wipe", "a standby of up to 2.5")
def test_quiet_for_a_standby_of_an_old_release():
    """Up to 2.5 only standbys have a checkpoint while they run: their data is committed."""
    run = old_crash("2.5.0", standby=True)
    app = reopened(run)
    app.checkpoints("0_0", 2000)
    run.wait(30)
    assert run.findings(ID) == []


def resumed(release: str, *, flushed: int) -> tuple[Scenario, App]:
    """An active task of up to 2.5 is suspended, which writes a checkpoint, and resumed, which deletes it."""
    run = Scenario(release, "exactly_once", 1, stores={"s": KEY_VALUE})
    app = run.start()
    app.opens("0_0")
    app.opens("0_1")
    app.restores("0_0", 2000)
    run.wait(2)
    app.checkpoints("0_0", 2000)
    run.wait(3)
    if flushed:
        run.world.play("unlink", "app/0_0/.checkpoint")
        app.puts("0_0", flushed)
        app.flushes("0_0")
        run.wait(20)
    return run, app


def comes_back_as_standby(run: Scenario, app: App) -> None:
    """Up to 2.5.0 nothing wipes it: its first checkpoint is far too low, and stays."""
    app.opens("0_0")
    app.puts("0_0", 900)
    app.checkpoints("0_0", 2900)
    run.wait(30)


@pytest.mark.parametrize("release", ["2.3.1", "2.4.1", "2.5.0"])
def test_checkpoint_of_a_suspension_makes_no_standby(release):
    """Killed after it was resumed, it comes back as a standby: what it flushed is still in the store."""
    run, app = resumed(release, flushed=7609)
    app.crash()
    run.wait(5)
    comes_back_as_standby(run, run.start())
    assert run.only(ID).severity is Severity.CRITICAL


def test_quiet_for_one_that_is_killed_while_it_is_suspended():
    """Its checkpoint is still there, and everything up to it is committed."""
    run, app = resumed("2.5.0", flushed=0)
    app.crash()
    run.wait(5)
    comes_back_as_standby(run, run.start())
    assert run.findings(ID) == []


def test_quiet_for_the_wipe_of_an_old_release():
    """2.5.1 wipes the store under the task lock: that is what exactly-once needs."""
    run = old_crash("2.5.1")
    app = reopened(run)
    app.wipes("0_0")
    app.restores("0_0", 2000)
    run.wait(30)
    assert run.findings(ID) == []
