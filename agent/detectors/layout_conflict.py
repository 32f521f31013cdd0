"""Detector `layout-conflict`: the disk and the release that was configured disagree.

Fires when something on disk can only have been written by another release than the one that was given, and the
process that lives now wrote after it started. From 4.3 on stores cannot be opened by an older release: a downgrade
needs the state directory removed.
Never from a RocksDB version alone: users replace that library.
"""

from __future__ import annotations

from collections.abc import Iterable

from agent.contract.events import Confidence, Level, Severity
from agent.contract.units import Twin
from agent.judging.base import ApplicationCase, DetectorMeta, Evidence, Kind, Scope, Verdict
from agent.judging.upstream import KIP_1035

META = DetectorMeta(
    id="layout-conflict",
    title="Disk and configured release disagree",
    level=Level.EXPOSURE,
    severity=Severity.WARNING,
    kind=Kind.CONDITION,
    scope=Scope.APPLICATION,
    needs=("kafka_streams_version",),
    upstream=(KIP_1035,),
    next_action=(
        "Correct kafka_streams_version for this application. If the setting is right, do not start an older release"
        " than 4.3 on these stores, it cannot open them; remove the state directory first and let it restore."
    ),
    consequence="A downgrade onto this directory fails, or loses the stored offsets.",
    alert_after_m=30,
    twin=Twin("N17, an orderly upgrade to offsets in the store", "benign-upgrade-chain-2.8.2-to-4.3.1"),
)


def judge(case: ApplicationCase) -> Iterable[Verdict]:
    """Judge one application."""
    application = case.application
    if not case.profile.conflicts or case.settings.release is None:
        return
    written_us = max(application.rocksdb_versions.values(), default=0)
    life = application.life
    recent = life is not None and written_us > life.started_us
    yield Verdict(
        subject="release",
        opened_at_us=written_us or application.first_seen_us,
        summary=f"{application.id}: {case.profile.conflicts[0]}.",
        evidence=tuple(
            Evidence(written_us or application.first_seen_us, text, application.id)
            for text in case.profile.conflicts
        ),
        severity=Severity.WARNING if recent else Severity.INFO,
        confidence=Confidence.SUSPECTED,
        affected=case.affected(KIP_1035),
    )
