"""Detector `missing-fact`: one finding per application and setting that was not given."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from agent.contract.events import Level, Severity, Status
from tests.support.scenario import Scenario
from tests.support.scenario_case import case, database, judge, store, task

ID = "missing-fact"


def test_names_the_setting_and_whom_it_silences():
    """Each setting that is not given is one info finding that lists the detectors concerned."""
    run = Scenario("4.1.2", "exactly_once_v2", hidden=("processing_guarantee",))
    app = run.start()
    app.opens("0_0")
    app.opens("0_1")
    run.wait(5)
    guarantee = [x for x in run.findings(ID) if "processing.guarantee" in x.summary]
    assert len(guarantee) == 1
    assert (guarantee[0].level, guarantee[0].severity, guarantee[0].status) == (
        Level.SELF,
        Severity.INFO,
        Status.OPEN,
    )
    assert guarantee[0].task_id is None
    assert "skipped-eos-wipe" in guarantee[0].summary
    assert "stale-eos-checkpoint" in guarantee[0].summary
    assert not [x for x in run.findings(ID) if "num.standby.replicas" in x.summary]


def test_nothing_given_is_still_one_finding_per_setting():
    """With no setting at all nothing is told twice."""
    run = Scenario("4.1.2", hidden=("*",))
    app = run.start()
    for number in range(3):
        app.opens(f"0_{number}")
    run.wait(120)
    summaries = [x.summary for x in run.findings(ID)]
    assert len(summaries) == len(set(summaries)) > 3


def test_quiet_without_a_store():
    """An application without stores needs no settings."""
    run = Scenario("4.1.2", hidden=("*",), stores={})
    app = run.start()
    app.opens("0_0")
    run.wait(120)
    assert run.findings(ID) == []


def dossier(**settings: Any) -> Any:
    """One task with a store; detector `x` needs the guarantee and the release."""
    one = case(task(store([database()])), **settings)
    return replace(one, silenced={"processing_guarantee": ("x",), "kafka_streams_version": ("x", "y")})


def test_known_settings_are_not_missing():
    """What was given is not asked for."""
    assert judge(ID, dossier()) == []
    assert [x.subject for x in judge(ID, dossier(guarantee=None))] == ["processing_guarantee"]


def test_exact_profile_knows_the_release():
    """A release that the disk or a visible process proves need not be given."""
    one = dossier(release=None)
    verdict = judge(ID, one)[0]
    assert verdict.subject == "kafka_streams_version"
    assert "x, y" in verdict.summary
    exact = dossier(release="4.1.2")
    assert judge(ID, replace(one, profile=exact.profile)) == []


def test_setting_that_no_detector_needs():
    """A setting without a detector that needs it is not asked for."""
    assert judge(ID, replace(dossier(guarantee=None, release=None), silenced={})) == []


def test_release_given_as_a_line():
    """`4.1` was given, even if it leaves the patch open."""
    assert judge(ID, dossier(release="4.1")) == []
