"""Law `deleted-while-held`: files swept away under a running store (N19)."""

from __future__ import annotations

import pytest

from agent.contract.events import Confidence, Level, Severity, Status
from tests.support.scenario import App, Scenario

ID = "deleted-while-held"


def running(release: str = "3.9.2") -> tuple[Scenario, App]:
    """A task that works."""
    run = Scenario(release)
    app = run.start()
    app.opens("0_0")
    run.wait(1)
    app.puts("0_0", 500)
    app.flushes("0_0")
    run.wait(5)
    return run, app


@pytest.mark.parametrize("release", ["2.3.1", "2.8.2", "3.9.2", "4.3.1"])
def test_identity_swept_under_a_held_store(release):
    """IDENTITY goes while LOCK is held, and its owner goes on."""
    run, _ = running(release)
    run.world.play("unlink", "app/0_0/rocksdb/s/IDENTITY")
    run.wait(2)
    finding = run.only(ID)
    assert (finding.level, finding.severity, finding.confidence, finding.status) == (
        Level.DAMAGE,
        Severity.WARNING,
        Confidence.SUSPECTED,
        Status.RESOLVED,
    )
    assert "IDENTITY" in finding.summary


def test_one_file_is_reported_once():
    """Later looks at the same store find the same file missing: that is no news."""
    run, app = running()
    run.world.play("unlink", "app/0_0/rocksdb/s/IDENTITY")
    run.wait(2)
    app.puts("0_0", 10)
    app.flushes("0_0")
    run.wait(130)
    assert len(run.findings(ID)) == 1


@pytest.mark.parametrize("release", ["2.1.1", "2.5.1", "2.8.2", "3.9.2", "4.3.1"])
def test_wipe_closes_the_store_first(release):
    """N13: an owner that wipes has closed the store before."""
    run, app = running(release)
    app.wipes("0_0")
    run.wait(10)
    assert run.findings(ID) == []


@pytest.mark.parametrize("release", ["2.3.1", "2.8.2", "3.9.2"])
def test_cleaner_takes_what_no_one_holds(release):
    """N8: a recursive walk over a released directory."""
    run, app = running(release)
    app.closes("0_0", 499)
    run.wait(30)
    app.cleaner.deletes("0_0")
    run.wait(10)
    assert run.findings(ID) == []


def test_compaction_and_reopening():
    """A running store drops SST files and old manifests of its own."""
    run, app = running()
    app.puts("0_0", 500)
    app.flushes("0_0")
    app.compacts("0_0")
    app.reopens("0_0", "s")
    run.wait(10)
    assert run.findings(ID) == []
