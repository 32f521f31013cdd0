"""Detector `missing-fact`: settings that are not on disk were not given, and which detectors that silences.

One finding per application, which lists what is missing; resolved when everything is known.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

from agent.contract.events import Affected, Confidence, Level, Severity
from agent.inventory.settings import KEYS_BY_NAME
from agent.judging.base import (
    ApplicationCase,
    DetectorMeta,
    Evidence,
    Kind,
    Scope,
    Verdict,
)
from agent.layout.profile import Truth

META = DetectorMeta(
    id="missing-fact",
    title="Settings that detectors need were not given",
    level=Level.SELF,
    severity=Severity.INFO,
    kind=Kind.CONDITION,
    scope=Scope.APPLICATION,
    refreshed=True,
    next_action='Configure it with --set KEY=VALUE, or in the file in the table [application."ID"].',
    consequence="Some detectors are silent or unsure for this application.",
    waits_us=(),
)


def judge(case: ApplicationCase) -> Iterable[Verdict]:
    """Judge one application."""
    application = case.application
    if not any(task.stores for task in application.tasks.values()):
        return
    missing = tuple(
        (name, case.silenced[name])
        for name in KEYS_BY_NAME
        if name in case.silenced and case.settings.text(name) is None and not _is_on_disk(case, name)
    )
    if missing:
        yield _verdict(application.id, application.first_seen_us, missing)


def _is_on_disk(case: ApplicationCase, name: str) -> bool:
    if name == "enable_transactional_statestores":
        return case.profile.transactional is not Truth.MAYBE or case.settings.exactly_once is False
    return name == "kafka_streams_version" and case.profile.is_exact


@lru_cache(maxsize=256)  # the same text at every evaluation
def _verdict(application_id: str, since_us: int, missing: tuple[tuple[str, tuple[str, ...]], ...]) -> Verdict:
    names = tuple(name for name, _ in missing)
    undecided = {detector for _, detectors in missing for detector in detectors}
    return Verdict(
        subject="settings",
        opened_at_us=since_us,
        summary=(
            f"{application_id}: not configured: {', '.join(names)};"
            f" {len(undecided)} detectors cannot decide everything."
        ),
        evidence=tuple(
            Evidence(
                since_us,
                f"{name} ({KEYS_BY_NAME[name].kafka_name}) not given: needed by {', '.join(detectors)}",
                "settings",
            )
            for name, detectors in missing
        ),
        severity=Severity.INFO,
        confidence=Confidence.UNKNOWN,
        affected=Affected.NO,
        missing_facts=names,
        next_action="Add " + " ".join(f"--set {application_id}:{name}=VALUE" for name in names) + ".",
    )
