"""Detector `missing-fact`: a setting that is not on disk was not given, and which detectors that silences.

One finding per application and setting, never more; resolved when the setting is known.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

from agent.contract.events import Affected, Confidence, Level, Severity
from agent.inventory.settings import KEYS_BY_NAME
from agent.judging.base import ApplicationCase, DetectorMeta, Evidence, Kind, Scope, Verdict

META = DetectorMeta(
    id="missing-fact",
    title="A setting that detectors need was not given",
    level=Level.SELF,
    severity=Severity.INFO,
    kind=Kind.CONDITION,
    scope=Scope.APPLICATION,
    next_action='Configure it with --set KEY=VALUE, or in the file in the table [application."ID"].',
    consequence="Some detectors are silent or unsure for this application.",
)


def judge(case: ApplicationCase) -> Iterable[Verdict]:
    """Judge one application."""
    application = case.application
    if not any(task.stores for task in application.tasks.values()):
        return
    for name in KEYS_BY_NAME:
        silenced = case.silenced.get(name)
        known = case.settings.text(name) is not None
        if name == "kafka_streams_version":
            known = known or case.profile.is_exact
        if not known and silenced:
            yield _verdict(application.id, application.first_seen_us, name, silenced)


@lru_cache(maxsize=256)  # the same text at every evaluation
def _verdict(application_id: str, since_us: int, name: str, silenced: tuple[str, ...]) -> Verdict:
    kafka_name = KEYS_BY_NAME[name].kafka_name
    return Verdict(
        subject=name,
        opened_at_us=since_us,
        summary=(
            f"{application_id}: {name} ({kafka_name}) is unknown, so {', '.join(silenced)} cannot decide everything."
        ),
        evidence=(Evidence(since_us, f"{name} not given", "settings"),),
        severity=Severity.INFO,
        confidence=Confidence.UNKNOWN,
        affected=Affected.NO,
        missing_facts=(name,),
        next_action=f"Add --set {application_id}:{name}=VALUE (Kafka's {kafka_name}).",
    )
