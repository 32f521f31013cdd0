"""Incidents of recorded faults: one per pod and cause, however many findings there are."""

from __future__ import annotations

import pytest

from agent.contract.events import Level, Severity, Status
from agent.contract.incidents import Incident, gather
from agent.contract.units import Remedy
from tests.evaluate.run import TRACES, evaluate


def severe(scenario: str) -> dict[str, list[Incident]]:
    """Give the incidents above a remark, by pod."""
    found: dict[str, list] = {}
    for pod, finding in evaluate(TRACES / scenario).found:
        if finding.level is not Level.SELF:
            found.setdefault(pod, []).append(finding)
    incidents = {
        pod: [x for x in gather(findings) if x.severity is not Severity.INFO]
        for pod, findings in found.items()
    }
    return {pod: listed for pod, listed in incidents.items() if listed}


@pytest.mark.parametrize(
    ("scenario", "lead", "tasks", "findings"),
    [
        ("kafka-8187-stage2-2.0.1", "resurrected-checkpoint", 4, 12),
        ("kafka-20685-4.1.2", "skipped-eos-wipe", 1, 2),
        ("lost-segment-4.3.1", "lost-segment", 1, 3),
        ("torn-clean-3.9.2", "resurrected-checkpoint", 1, 2),
        ("changelog-truncated-3.9.2", "changelog-truncated", 2, 8),
        ("kafka-9891-2.5.0", "skipped-eos-wipe", 3, 3),
    ],
)
def test_one_fault_is_one_incident(scenario, lead, tasks, findings):
    """From the first exposure to the damage, over all its tasks."""
    ((one,),) = severe(scenario).values()
    assert (one.lead.detector, len(one.tasks), len(one.findings)) == (lead, tasks, findings)
    assert one.status is Status.OPEN
    assert one.next_action.endswith(one.lead.next_action)
    removes = tasks > 1 and one.remedy is not Remedy.KEEP
    assert ("remove all, and only then start" in one.next_action) is removes
    assert ("If more than one must be removed: copy all" in one.next_action) is (
        removes and one.remedy is Remedy.CHECK_FIRST
    )
