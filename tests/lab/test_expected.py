"""A written play is judged by what must and may be said of it; one bug is one page and one action, of the fleet too."""

from __future__ import annotations

import dataclasses
from typing import Any

from agent.contract.audited import FleetIncident, gather
from tests.lab.expected import judge_written, wrong_incidents
from tests.lab.plan import EOS, Plan
from tests.lab.plays import PLAYS
from tests.lab.said import Said
from tests.lab.scenario import Scenario, releases

ID = "0123456789abcdef"
INCIDENT = f"i-{ID[:12]}"


def said(
    task: str = "0_0", agent: str = "a-told", incident: str = INCIDENT, severity: str = "critical"
) -> Said:
    return Said(agent, "torn-store", task, "-", severity, "confirmed", "yes", "Broken.", "", 0, incident)


def fleet(*ids: str, **more: Any) -> list[FleetIncident]:
    """What the fleet makes of agents' findings with these ids, each an incident by itself."""
    row = {
        "detector": "torn-store", "level": "damage", "severity": "critical", "confidence": "confirmed",
        "status": "open", "namespace": "", "application_id": "orders", "task_id": "0_0", "store": None, "pod": "a-told",
        "pods": ["a-told"], "opened_at": "2026-11-20T10:00:00Z", "resolved_at": None, "summary": "Broken.",
        "affected": "yes", "upstream": [], "next_action": "Restore 0_0.", "mechanism": "offset-without-data",
        "local_incidents": [], "lineage": [], "reported_by": "agent",
    }  # fmt: skip
    return gather([{**row, "id": id_, "incident_id": f"i-{id_[:12]}", **more} for id_ in ids])


def test_one_crash_of_two_tasks_is_one_incident():
    """The untold agent's incidents, and remarks, are not counted."""
    told = [said(), said("0_1"), said("0_2", severity="info", incident="i-other")]
    assert wrong_incidents([*told, said(agent="a-untold", incident="i-else")], fleet(ID)) == ()


def test_a_second_incident_of_an_agent_is_a_second_page():
    """It is named with what was said in each."""
    (problem,) = wrong_incidents(
        [said(), said("0_1", incident="i-fedcba987654")], fleet(ID, "fedcba9876543210")
    )
    assert problem == f"a-told has 2 incidents: {INCIDENT} (torn-store 0_0); i-fedcba987654 (torn-store 0_1)"


def test_an_incident_that_no_agent_has_is_a_second_page():
    """The agent's alert keeps back the fleet's under the same id only; what is a remark raises none."""
    assert wrong_incidents([said()], [*fleet(ID), *fleet("f" * 16, severity="info")]) == ()
    (problem,) = wrong_incidents([said()], fleet(ID, "f" * 16))
    assert problem.startswith("the fleet pages again, i-ffffffffffff is of no agent")


def test_an_audit_need_not_have_what_is_over():
    """What happened at a moment, such as a deletion, pages by its agent; if the audit has it, then once."""
    over = dataclasses.replace(said(), is_open=False)
    assert wrong_incidents([over], []) == ()
    assert wrong_incidents([over], fleet(ID)) == ()
    assert wrong_incidents([over, said("0_1")], []) != ()


def test_what_the_fleet_does_not_say_is_missing():
    """An audit that is silent about a page of an agent, and one without a next step."""
    assert wrong_incidents([said()], []) == (f"{INCIDENT} of a-told is in 0 incidents of the fleet",)
    assert wrong_incidents([said()], fleet(ID, next_action="")) == (
        f"the fleet's {INCIDENT} has no next step",
    )


PLAN = Plan("4.3.1", EOS)


def kinds(scenario: Scenario, *words: Said, plan: Plan = PLAN) -> list[str]:
    """What a written play is judged for."""
    return [one.kind for one in judge_written(scenario, plan, words, [(0, "a is killed")])]


def test_of_a_bug_the_told_agent_must_say_one_thing_and_may_say_others():
    """At the severity that is asked for; on a release that is not affected the same words are false."""
    bug = Scenario(
        PLAYS["lost-segment"],
        affected=releases(("4.3.0", "")),
        find=("torn-store", "lost-segment"),
        severity="critical",
        allow=("setup",),
    )
    assert kinds(bug, said()) == ["excused"]
    assert kinds(bug, said(), said(agent="a-untold", severity="warning")) == ["excused", "excused"]
    assert kinds(bug, said(severity="warning")) == ["miss", "excused"]
    assert kinds(bug, said(agent="a-untold")) == ["miss", "excused"]
    assert kinds(bug, said(severity="info")) == ["miss"]
    assert kinds(bug, said(), plan=Plan("4.2.2", EOS)) == ["false_alarm"]
    assert kinds(bug, plan=Plan("4.2.2", EOS)) == []


def test_of_a_benign_life_nothing_loud_may_be_said_but_what_is_always_true():
    benign, hazard = Scenario(PLAYS["life"]), Scenario(PLAYS["life"], always=("torn-store",))
    assert kinds(benign, said(severity="info")) == []
    assert kinds(benign, said(severity="warning")) == ["false_alarm"]
    assert kinds(hazard, said(severity="warning")) == ["excused"]


def test_an_exposed_application_is_told_so():
    """KAFKA-20685: after a crash, under exactly-once, on the release before or after an upgrade."""
    word = dataclasses.replace(said(severity="warning"), detector="skipped-eos-wipe")
    benign = Scenario(PLAYS["life"])
    assert kinds(benign, word) == ["false_alarm"]
    assert kinds(benign, word, plan=Plan("4.2.1", EOS)) == ["excused"]
    assert kinds(benign, word, plan=Plan("4.2.1")) == ["false_alarm"]
    assert kinds(benign, word, plan=Plan("4.3.1", EOS, before="4.2.1")) == ["excused"]
