"""Detector `ephemeral-state-dir`: the state directory does not outlive the pod.

Fires when the state directory is on tmpfs, or on a container's own layer: every restart of the pod restores
everything, and without standbys there is no other copy but the changelog.
"""

from __future__ import annotations

from collections.abc import Iterable

from agent.contract.events import Affected, Confidence, Level, Severity
from agent.judging.base import AgentCase, DetectorMeta, Evidence, Kind, Scope, Verdict

META = DetectorMeta(
    id="ephemeral-state-dir",
    title="State directory on a volume that does not last",
    level=Level.EXPOSURE,
    severity=Severity.WARNING,
    kind=Kind.CONDITION,
    scope=Scope.AGENT,
    next_action="Mount a persistent volume at state.dir, or accept a full restoration at every start.",
    consequence="Every start of the pod restores all its state in full.",
    lowers_risk="Mount a persistent volume at state.dir, or keep standbys on other pods.",
)

_WORDS = {"memory": "in memory (tmpfs)", "overlay": "on the container's own layer"}


def judge(case: AgentCase) -> Iterable[Verdict]:
    """Judge the state directory's volume."""
    inventory = case.inventory
    word = _WORDS.get(inventory.volume)
    if word is None or not any(x.exists for x in inventory.applications.values()):
        return
    yield Verdict(
        subject=inventory.volume,
        opened_at_us=inventory.started_us,
        summary=f"The state directory is {word}: it is gone with the pod, and every start restores everything.",
        evidence=(Evidence(inventory.started_us, f"file system: {inventory.volume}", "state directory"),),
        severity=Severity.WARNING if inventory.volume == "memory" else Severity.INFO,
        confidence=Confidence.CONFIRMED,
        affected=Affected.NO,
        lasting=True,
    )
