"""Detectors that the operator disabled, each with a reason: they open no finding, and every output says so."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from agent.contract.events import Status
from agent.contract.finding import Finding
from agent.contract.grouping import incident_of
from agent.contract.reporting import DISABLED_PREFIX
from agent.inventory.model import Inventory
from agent.inventory.settings import Setting
from agent.judging.base import Evidence

Disabled = Mapping[str, Setting]  # detector id -> the reason, and where it was given


def closed(finding: Finding, why: Setting | None, at_us: int) -> Finding:
    """Close a finding that an earlier run left open; its last evidence says that the detector no longer runs.

    `why`: why the detector is disabled; None = this version has none of that id. `at_us`: when the agent that
    closes it started.
    """
    if why is None:
        step = Evidence(at_us, "this version has no detector of that id", "docs/compatibility.md")
    else:
        step = Evidence(at_us, f"the detector is disabled: {why.value}", f"detectors.disabled ({why.origin})")
    incident_id = finding.incident_id or incident_of(finding.id)  # of a release that knew none
    ended = replace(finding, status=Status.RESOLVED, resolved_at_us=at_us, incident_id=incident_id)
    return replace(ended, evidence=(*finding.evidence, step))


def is_there(known: Inventory, finding: Finding) -> bool:
    """Return whether the store that a finding is about was not replaced."""
    application = known.applications.get(finding.application_id)
    task = application.tasks.get(finding.task_id or "") if application is not None else None
    return task is not None and finding.identity in task.known_as


def setting_rows(disabled: Disabled) -> list[dict[str, object]]:
    """List them as settings of a `configuration` record."""
    return [
        {"key": f"{DISABLED_PREFIX}{id_}", "value": why.value, "origin": why.origin}
        for id_, why in sorted(disabled.items())
    ]


def in_words(disabled: Disabled) -> str:
    """Name them and why, in one line; empty if there are none."""
    named = ", ".join(f"{id_} ({why.value})" for id_, why in sorted(disabled.items()))
    return f"disabled: {named}" if named else ""
