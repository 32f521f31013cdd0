"""What `unopenable-task` says of openings; what it says before a start is tested in test_unopenable_task_before.py."""

from __future__ import annotations

from agent.contract.finding import Finding
from tests.support.scenario import Scenario

ID = "unopenable-task"
LEFT_OPEN = "left open by an unclean end"


def said(run: Scenario) -> list[Finding]:
    """Take what is said of openings."""
    return [x for x in run.findings(ID) if LEFT_OPEN not in x.summary]


def only(run: Scenario) -> Finding:
    """Take it where there is one."""
    (finding,) = said(run)
    return finding
