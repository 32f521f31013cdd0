"""Detector `auditor-blind`: what it names, and an empty place against a missing one."""

from __future__ import annotations

import pytest

from agent.contract.events import Confidence, Severity
from agent.detectors.auditor_blind import NOTHING_AFTER_US
from agent.inventory.model import BlindInterval, Inventory
from agent.judging.base import AgentCase
from tests.support.scenario_case import at, judge

ID = "auditor-blind"


@pytest.mark.parametrize(
    ("application", "task", "whom"),
    [(None, None, "the whole state directory"), ("app", None, "app"), ("app", "0_0", "app/0_0")],
)
def test_whom_it_was_blind_for(application, task, whom):
    """The place is as small as it is known."""
    inventory = Inventory(started_us=at(0), root_seen=True)
    inventory.blind.append(BlindInterval(at(1), "queue-overflow", at(3), application, task))
    told = [x for x in judge(ID, AgentCase(inventory, at(5))) if "queue-overflow" in x.subject]
    assert [step.where for step in told[0].evidence] == [whom, whom]
    assert f"blind for {whom} (queue-overflow, 2.0 s)" in told[0].summary


@pytest.mark.parametrize(
    ("there", "word", "severity", "confidence"),
    [
        (True, "No application directory", Severity.INFO, Confidence.UNKNOWN),
        (False, "does not exist", Severity.WARNING, Confidence.CONFIRMED),
    ],
)
def test_nothing_to_watch(there, word, severity, confidence):
    """An empty directory may be right, a missing one is not; dated to when the wait was over."""
    inventory = Inventory(started_us=at(0), root_seen=there)
    assert judge(ID, AgentCase(inventory, at(0) + NOTHING_AFTER_US - 1)) == []
    verdict = judge(ID, AgentCase(inventory, at(0) + NOTHING_AFTER_US))[0]
    assert (verdict.severity, verdict.confidence) == (severity, confidence)
    assert word in verdict.summary
    assert verdict.opened_at_us == at(0) + NOTHING_AFTER_US
