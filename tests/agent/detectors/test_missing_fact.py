"""Detector `missing-fact`: one finding per application, which lists the settings that were not given."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from agent.contract.events import Level, Severity, Status
from tests.support.scenario import Scenario
from tests.support.scenario_case import case, database, judge, store, task

ID = "missing-fact"


def test_names_the_setting_and_whom_it_silences():
    """One info finding lists each setting that is not given, and the detectors concerned."""
    run = Scenario("4.1.2", "exactly_once_v2", hidden=("processing_guarantee",))
    app = run.start()
    app.opens("0_0")
    app.opens("0_1")
    run.wait(5)
    (one,) = run.findings(ID)
    assert (one.level, one.severity, one.status) == (Level.SELF, Severity.INFO, Status.OPEN)
    assert one.task_id is None
    assert "processing_guarantee" in one.missing_facts
    assert "num_standby_replicas" not in one.missing_facts
    (step,) = [x.what for x in one.evidence if "processing.guarantee" in x.what]
    assert "skipped-eos-wipe" in step
    assert "stale-eos-checkpoint" in step


def test_nothing_given_is_still_one_finding():
    """With no setting at all one finding names them all, and one line to add."""
    run = Scenario("4.1.2", hidden=("*",))
    app = run.start()
    for number in range(3):
        app.opens(f"0_{number}")
    run.wait(120)
    (one,) = run.findings(ID)
    assert len(one.missing_facts) > 3
    assert all(f":{name}=VALUE" in one.next_action for name in one.missing_facts)


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
    assert [x.missing_facts for x in judge(ID, dossier(guarantee=None))] == [("processing_guarantee",)]


def test_exact_profile_knows_the_release():
    """A release that the disk or a visible process proves need not be given."""
    one = dossier(release=None)
    verdict = judge(ID, one)[0]
    assert verdict.missing_facts == ("kafka_streams_version",)
    assert "2 detectors" in verdict.summary
    assert "x, y" in verdict.evidence[0].what
    exact = dossier(release="4.1.2")
    assert judge(ID, replace(one, profile=exact.profile)) == []


def test_setting_that_no_detector_needs():
    """A setting without a detector that needs it is not asked for."""
    assert judge(ID, replace(dossier(guarantee=None, release=None), silenced={})) == []


def test_release_given_as_a_line():
    """`4.1` was given, even if it leaves the patch open."""
    assert judge(ID, dossier(release="4.1")) == []
