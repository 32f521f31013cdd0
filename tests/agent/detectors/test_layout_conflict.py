"""Detector `layout-conflict`: disk and configured release disagree (KIP-1035)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from agent.contract.events import Affected, Confidence, Level, Severity, Status
from agent.inventory.model import Application, ProcessLife
from agent.layout.profile import Profile
from tests.support.scenario import Scenario
from tests.support.scenario_case import at, case, judge

ID = "layout-conflict"


def configured(told: str | None, release: str) -> Scenario:
    """The operator says `told`, the process is of `release`."""
    run = Scenario(release, told={"kafka_streams_version": told})
    app = run.start()
    app.opens("0_0")
    run.wait(1)
    app.puts("0_0", 100)
    app.flushes("0_0")
    run.wait(15)
    return run


@pytest.mark.parametrize(("told", "release"), [("3.9.2", "4.3.1"), ("4.2.1", "4.3.0"), ("3.9.2", "2.8.2")])
def test_disk_excludes_the_configured_release(told, release):
    """Options written after the process began, and a layout that the release does not have: a warning."""
    finding = configured(told, release).only(ID)
    assert (finding.level, finding.severity, finding.confidence, finding.status) == (
        Level.EXPOSURE,
        Severity.WARNING,
        Confidence.SUSPECTED,
        Status.OPEN,
    )
    assert finding.task_id is None
    assert told in finding.summary


@pytest.mark.parametrize("release", ["2.0.1", "2.3.1", "2.6.2", "2.8.2", "3.4.1", "3.9.2", "4.1.2", "4.3.1"])
def test_quiet_where_they_agree(release):
    """Every release writes what its row of the table says."""
    assert configured(release, release).findings(ID) == []


def test_rocksdb_version_alone_is_no_conflict():
    """Users replace the library: 4.1 told, 3.9's RocksDB found."""
    assert configured("4.1.2", "3.9.2").findings(ID) == []


def test_unknown_release_conflicts_with_nothing():
    """Without a configured release there is nothing to disagree with."""
    assert configured(None, "4.3.1").findings(ID) == []


def test_upgrade_in_place():
    """N16, N17: an upgrade leaves traces of the old release behind; told the new one, nothing disagrees."""
    run = Scenario("2.8.2", told={"kafka_streams_version": "3.9.2"})
    app = run.start()
    app.opens("0_0")
    run.wait(1)
    app.stops({"0_0": 10})
    run.wait(5)
    app = run.start("3.9.2")
    app.opens("0_0")
    run.wait(15)
    assert [x for x in run.findings(ID) if x.status is Status.OPEN] == []


def dossier(
    *, written: float | None = 20, started: float | None = 10, conflicts: tuple[str, ...] = ("a means b",)
):
    """Conflicts on disk; options written at 20 s by a process that began at 10 s."""
    app = Application("app", exists=True, first_seen_us=at(1))
    if started is not None:
        app.lives += (ProcessLife(at(started)),)
    if written is not None:
        app.rocksdb_versions["9.7.3"] = at(written)
    return replace(case(application=app), profile=Profile(conflicts=conflicts))


def test_only_what_this_process_wrote_is_a_warning():
    """Older files may be those of the release before."""
    assert judge(ID, dossier())[0].severity is Severity.WARNING
    assert judge(ID, dossier(written=10))[0].severity is Severity.INFO
    assert judge(ID, dossier(started=None))[0].severity is Severity.INFO
    nothing = judge(ID, dossier(written=None))[0]
    assert (nothing.severity, nothing.opened_at_us) == (Severity.INFO, at(1))


def test_needs_a_conflict():
    """No conflict, no finding; while they disagree nothing is affected for sure."""
    assert judge(ID, dossier(conflicts=())) == []
    assert judge(ID, dossier())[0].affected is Affected.POSSIBLY


def test_needs_the_operators_word():
    """Traces that disagree among themselves are the profile's business: no release was configured."""
    silent = replace(dossier(), settings=case(release=None).settings)
    assert judge(ID, silent) == []


def test_dated_to_the_options():
    """The chain is dated to what was written, or to when the application was first seen."""
    assert judge(ID, dossier())[0].evidence[0].at_us == at(20)
    assert judge(ID, dossier(written=None))[0].evidence[0].at_us == at(1)
