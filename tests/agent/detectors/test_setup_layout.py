"""Detector `setup`: disk and configured release disagree (KIP-1035)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from agent.contract.events import Affected, Confidence, Level, Severity, Status
from agent.inventory.model import Application, ProcessLife
from agent.layout.profile import Evidence, Profile, infer
from tests.support.scenario import Scenario
from tests.support.scenario_case import at, case, judge

ID = "setup"


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


def downgraded(new: str = "4.2.1", *, told: bool = True) -> Scenario:
    """A store that 4.3.1 wrote and closed; the operator says the new release already."""
    run = Scenario("4.3.1", told={"kafka_streams_version": new} if told else None, hidden=() if told else "*")
    app = run.start()
    app.opens("0_0")
    run.wait(1)
    app.puts("0_0", 100)
    app.stops({"0_0": 99})
    run.wait(15)
    return run


def fails_to_open(run: Scenario, times: int = 3) -> None:
    """Each start of the older release renames LOG, takes the lock, and gives up: `Column families not opened`."""
    path = run.task("0_0").databases["s", ""].path
    for _ in range(times):
        app = run.start("4.2.1")
        run.world.play("rename", f"{path}/LOG", to=f"{path}/LOG.old.{run.world.now_us}")
        run.world.play("create", f"{path}/LOG")
        run.world.play("open_w", f"{path}/LOG")
        run.world.lock(f"{path}/LOCK")
        run.wait(0.01)
        run.world.unlock(f"{path}/LOCK")
        app.ends()
        run.wait(4)


def test_downgrade_that_cannot_open_its_stores():
    """Seen live: 4.2.1 fails at every start on stores of 4.3.1; nothing is lost, and going back is the way."""
    run = downgraded()
    fails_to_open(run)
    before, finding = run.findings(ID)
    assert before.status is Status.RESOLVED
    assert (finding.severity, finding.confidence, finding.status) == (
        Severity.WARNING,
        Confidence.SUSPECTED,
        Status.OPEN,
    )
    assert "4.2.1 cannot open them: it fails at every start" in finding.summary
    assert "go back to 4.3 or later: nothing is lost" in finding.next_action
    assert {x.detector for x in run.loud()} == {ID}


def test_downgrade_before_its_first_start():
    """A gate before the start says so in time."""
    finding = downgraded().findings(ID)[-1]
    assert (finding.severity, finding.status) == (Severity.WARNING, Status.OPEN)
    assert "fails at every start" in finding.summary


def test_downgrade_onto_recreated_stores():
    """The application directory was removed: the older release has made its own stores."""
    run = downgraded()
    app = run.start("4.2.1")
    app.opens("0_0")
    app.wipes("0_0")
    app.restores("0_0", 99, puts=100)
    run.wait(60)
    assert [x.status for x in run.findings(ID)] == [Status.RESOLVED] * 2


@pytest.mark.parametrize(
    ("old", "new"), [("4.3.1", "4.3.0"), ("4.2.1", "4.0.0"), ("4.1.2", "3.9.2"), ("3.9.2", "3.7.2")]
)
def test_quiet_for_a_downgrade_with_the_same_layout(old, new):
    """What the newer release left the older one opens."""
    run = Scenario(old, told={"kafka_streams_version": new})
    app = run.start()
    app.opens("0_0")
    run.wait(1)
    app.puts("0_0", 100)
    app.stops({"0_0": 99})
    run.wait(15)
    app = run.start(new)
    app.opens("0_0")
    run.wait(15)
    app.stops({"0_0": 99})
    run.wait(15)
    assert run.findings(ID) == []


def test_release_that_is_not_given():
    """4.3 may as well have failed for another reason."""
    run = downgraded(told=False)
    fails_to_open(run)
    assert run.findings(ID) == []


@pytest.mark.parametrize(
    ("running", "confidence"),
    [("4.2.1", Confidence.CONFIRMED), (None, Confidence.SUSPECTED), ("8.2.1-ccs", Confidence.SUSPECTED)],
)
def test_confirmed_by_the_process_itself(running, confidence):
    """A visible process shows its jar; the setting is somebody's word, and a vendor's number is no release."""
    one = dossier(started=30)
    one.application.process_version, one.application.offsets_family_us = running, at(20)
    one = replace(
        one, profile=infer(Evidence(operator="4.2.1", offsets_family=True, process_version=running))
    )
    (verdict,) = judge(ID, one)
    assert (verdict.severity, verdict.confidence) == (Severity.WARNING, confidence)


def test_process_that_writes_them_can_open_them():
    """It is of 4.3 or later, and the setting is wrong."""
    one = dossier(started=10)
    one.application.offsets_family_us = at(20)
    one = replace(one, profile=infer(Evidence(operator="4.2.1", offsets_family=True)))
    assert "means 4.3.0 or later" in judge(ID, one)[0].summary


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


def test_dated_to_the_newest_options():
    """Or to when the application was first seen. The first disagreement is the headline, all are in the chain."""
    one = dossier(conflicts=("first", "second"))
    one.application.rocksdb_versions["9.7.2"] = at(15)
    (verdict,) = judge(ID, one)
    assert (verdict.summary, verdict.opened_at_us) == ("app: first.", at(20))
    assert [(step.what, step.at_us) for step in verdict.evidence] == [("first", at(20)), ("second", at(20))]
    assert judge(ID, dossier(written=None))[0].evidence[0].at_us == at(1)
