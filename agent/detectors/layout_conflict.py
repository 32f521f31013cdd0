"""Detector `layout-conflict`: the disk and the release that was configured disagree.

Fires when something on disk can only have been written by another release than the one that was given, and the
process that lives now wrote after it started: the setting is wrong. Info where only older files say so.
Fires, too, when stores have the column family `offsets`, and the release that is configured, or runs, is older than
4.3, and has written nothing since it started: it cannot open them, and fails at every start. Confirmed where the
process is visible, and its own jar says so.
Clears when the setting is corrected, or the older release has recreated the stores.
Stays quiet for a downgrade among releases with one layout, and for a RocksDB version alone: users replace that library.
Source: RocksDBStore.openRocksDB (4.2.1): opens the families that it knows, and RocksDB refuses a database of which
another one is left out (`Column families not opened: offsets`, seen live); docs/state-format.md#n17.
"""

from __future__ import annotations

from collections.abc import Iterable

from agent.contract.events import Confidence, Level, Severity
from agent.contract.units import Twin
from agent.inventory.model import Application
from agent.judging.base import (
    ApplicationCase,
    DetectorMeta,
    Evidence,
    Kind,
    Scope,
    Verdict,
)
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
    consequence="A downgrade from 4.3 onto this directory fails at every start.",
    alert_after_m=30,
    twin=Twin("N17, an orderly upgrade to offsets in the store", "benign-upgrade-chain-2.8.2-to-4.3.1"),
    waits_us=(),
)
UNOPENABLE = (
    "If the setting is wrong, correct kafka_streams_version. If it is right, go back to 4.3 or later: nothing is lost."
    " To stay on the older release: one pod at a time, stop it, keep a copy of the application directory, remove it,"
    " start, and wait until it is restored."
)


def judge(case: ApplicationCase) -> Iterable[Verdict]:
    """Judge one application."""
    application, life = case.application, case.application.life
    began_us = life.started_us if life is not None else None
    if case.profile.unopenable is not None and not (
        began_us is not None and application.offsets_family_us > began_us
    ):
        yield _unopenable(case, application)
    elif case.profile.conflicts and case.settings.release is not None:
        yield _disagree(case, application, began_us)


def _unopenable(case: ApplicationCase, application: Application) -> Verdict:
    written_us, release = application.offsets_family_us, str(case.profile.unopenable)
    return Verdict(
        subject="stores of a later release",
        opened_at_us=written_us,
        summary=(
            f"{application.id}: its stores were written by 4.3.0 or later, and {release} cannot open"
            " them: it fails at every start."
        ),
        evidence=tuple(Evidence(written_us, text, application.id) for text in case.profile.conflicts),
        severity=Severity.WARNING,
        confidence=Confidence.CONFIRMED if application.process_version == release else Confidence.SUSPECTED,
        affected=case.affected(KIP_1035),
        next_action=UNOPENABLE,
    )


def _disagree(case: ApplicationCase, application: Application, began_us: int | None) -> Verdict:
    newest_us = max(application.rocksdb_versions.values(), default=0)
    at_us = newest_us or application.first_seen_us
    recent = began_us is not None and newest_us > began_us
    return Verdict(
        subject="release",
        opened_at_us=at_us,
        summary=f"{application.id}: {case.profile.conflicts[0]}.",
        evidence=tuple(Evidence(at_us, text, application.id) for text in case.profile.conflicts),
        severity=Severity.WARNING if recent else Severity.INFO,
        confidence=Confidence.SUSPECTED,
        affected=case.affected(KIP_1035),
    )
