"""Detector `missing-fact`: a setting that is not on disk was not given, and which detectors that silences.

One finding per application and setting, never more; resolved when the setting is known.
"""

from __future__ import annotations

from collections.abc import Iterable

from agent.contract.events import Affected, Confidence, Level, Severity
from agent.detectors.base import Case, DetectorMeta, Evidence, Kind, Scope, Verdict
from agent.inventory.settings import KEYS_BY_NAME

META = DetectorMeta(
    id="missing-fact",
    title="A setting that detectors need was not given",
    level=Level.SELF,
    severity=Severity.INFO,
    kind=Kind.CONDITION,
    scope=Scope.APPLICATION,
    next_action='Give the setting with --set KEY=VALUE, or in the file below [application."ID"].',
)


def judge(case: Case) -> Iterable[Verdict]:
    """Judge one application."""
    application = case.application
    assert application is not None
    if not any(task.stores for task in application.tasks.values()):
        return
    for name, key in KEYS_BY_NAME.items():
        silenced = sorted(detector for detector, needs in case.needs.items() if name in needs)
        known = case.settings.text(name) is not None
        if name == "kafka_streams_version":
            known = known or case.profile.is_exact
        if known or not silenced:
            continue
        yield Verdict(
            subject=name,
            opened_at_us=application.first_seen_us,
            summary=(
                f"{application.id}: {name} ({key.kafka_name}) is unknown, so {', '.join(silenced)} cannot decide"
                " everything."
            ),
            evidence=(Evidence(application.first_seen_us, f"{name} not given", "settings"),),
            severity=Severity.INFO,
            confidence=Confidence.UNKNOWN,
            affected=Affected.NO,
            missing_facts=(name,),
            next_action=f"Add --set {application.id}:{name}=VALUE (Kafka's {key.kafka_name}).",
        )
