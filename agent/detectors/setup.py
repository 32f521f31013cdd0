"""Detector `setup`: the way in which an application is set up does not keep its state safe.

Fires when two processes are seen on one application directory, or when the application's lock file is replaced while it
is held: from then on two processes can each hold a lock of the same name.
Fires when something on disk can only have been written by another release than the one that was given, and the
process that lives now wrote after it started: the setting is wrong. Info where only older files say so.
Fires, too, when stores have the column family `offsets`, and the release that is configured, or runs, is older than
4.3, and has written nothing since it started: it cannot open them, and fails at every start. Confirmed where the
process is visible, and its own jar says so.
Fires when the state directory is on tmpfs, or (info) on a container's own layer: every restart of the pod restores
everything, and without standbys there is no other copy but the changelog.
Clears when one process is gone, the setting is corrected, or the older release has recreated the stores.
Stays quiet for a downgrade among releases with one layout, and for a RocksDB version alone: users replace that library.
Source: RocksDBStore.openRocksDB (4.2.1): opens the families that it knows, and RocksDB refuses a database of which
another one is left out (`Column families not opened: offsets`, seen live); docs/state-format.md#n17.
"""

from __future__ import annotations

from collections.abc import Iterable

from agent.contract.events import Affected, Confidence, Level, Severity
from agent.contract.mechanisms import Mechanism
from agent.contract.units import Twin
from agent.inventory.model import Application
from agent.judging.base import ApplicationCase, DetectorMeta, Evidence, Kind, Scope, Verdict
from agent.judging.upstream import KAFKA_6647, KIP_1035
from agent.judging.wording import concerned
from agent.layout import names

META = DetectorMeta(
    id="setup",
    title="Set-up that does not keep state safe",
    level=Level.EXPOSURE,
    severity=Severity.CRITICAL,
    kind=Kind.CONDITION,
    scope=Scope.APPLICATION,
    needs=("kafka_streams_version",),
    upstream=(KAFKA_6647, KIP_1035),
    next_action=(
        "Do what the finding asks for: the agent's page has it. Of two processes on one directory stop the one that"
        " started later, cleanly. Do not start a release before 4.3 on stores of 4.3 or later. Remove nothing before."
    ),
    consequence=(
        "Two processes destroy each other's state; a downgrade from 4.3 fails at every start; on a volume that does not"
        " last every start of the pod restores all its state in full."
    ),
    lowers_risk="Mount a persistent volume at state.dir, or keep standbys on other pods.",
    twin=Twin("two applications side by side in one directory", "benign-two-apps-one-dir-3.9.2"),
    waits_us=(),
)
STOP_ONE = (
    "Stop one of the two processes cleanly; give every instance its own state.dir. Then treat the tasks that"
    " both held as damaged: remove those task directories only and let them restore."
)
CORRECT = (
    "Correct kafka_streams_version for this application. If the setting is right, do not start an older release"
    " than 4.3 on these stores, it cannot open them; remove the state directory first and let it restore."
)
UNOPENABLE = (
    "If the setting is wrong, correct kafka_streams_version. If it is right, go back to 4.3 or later: nothing is lost."
    " To stay on the older release: one pod at a time, stop it, keep a copy of the application directory, remove it,"
    " start, and wait until it is restored."
)
MOUNT = "Mount a persistent volume at state.dir, or accept a full restoration at every start."
_WORDS = {"memory": "in memory (tmpfs)", "overlay": "on the container's own layer"}


def judge(case: ApplicationCase) -> Iterable[Verdict]:
    """Judge one application.

    Source:
        KAFKA-6647 (up to 2.4 the cleaner unlinks `.lock` while it holds it); StateDirectory.initializeProcessId.
    """
    yield from _shared(case)
    yield from _conflicting(case)
    yield from _ephemeral(case)


def _shared(case: ApplicationCase) -> Iterable[Verdict]:
    application = case.application
    if len(application.processes) > 1:
        pids = ", ".join(str(x.pid) for x in application.processes)
        evidence = [
            Evidence(x.started_at_us, f"process {x.pid} started", application.id)
            for x in application.processes
        ]
        yield _of_two(
            case,
            subject="processes",
            at_us=max(x.started_at_us for x in application.processes),
            says=f"{len(application.processes)} processes work on its directory (pids {pids})",
            evidence=tuple(evidence),
            severity=Severity.CRITICAL,
        )
    for at_us in application.lock_replaced_us:
        what = "another inode under the same name, lock held before"
        yield _of_two(
            case,
            subject=f"lock@{at_us}",
            at_us=at_us,
            says="its lock file was replaced while it was held; a second process can start",
            evidence=(Evidence(at_us, what, f"{application.id}/{names.LOCK_FILE}"),),
            severity=Severity.WARNING,
        )


def _of_two(
    case: ApplicationCase,
    *,
    subject: str,
    at_us: int,
    says: str,
    evidence: tuple[Evidence, ...],
    severity: Severity,
) -> Verdict:
    return Verdict(
        subject=subject,
        opened_at_us=at_us,
        summary=f"{case.application.id}: {says}.",
        evidence=evidence,
        severity=severity,
        confidence=Confidence.CONFIRMED if severity is Severity.CRITICAL else Confidence.SUSPECTED,
        level=Level.DAMAGE,
        upstream=concerned(case, (KAFKA_6647,)),
        affected=case.affected(KAFKA_6647),
        next_action=STOP_ONE,
        mechanism=Mechanism.SHARED_STATE,
    )


def _conflicting(case: ApplicationCase) -> Iterable[Verdict]:
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
        upstream=concerned(case, (KIP_1035,)),
        affected=case.affected(KIP_1035),
        next_action=UNOPENABLE,
        mechanism=Mechanism.OTHER_RELEASE,
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
        upstream=concerned(case, (KIP_1035,)),
        affected=case.affected(KIP_1035),
        next_action=CORRECT,
        mechanism=Mechanism.OTHER_RELEASE,
    )


def _ephemeral(case: ApplicationCase) -> Iterable[Verdict]:
    inventory = case.inventory
    word = _WORDS.get(inventory.volume)
    if word is None or not case.application.exists:
        return
    yield Verdict(
        subject=inventory.volume,
        opened_at_us=inventory.started_us,
        summary=f"The state directory is {word}: it is gone with the pod, and every start restores everything.",
        evidence=(Evidence(inventory.started_us, f"file system: {inventory.volume}", "state directory"),),
        severity=Severity.WARNING if inventory.volume == "memory" else Severity.INFO,
        confidence=Confidence.CONFIRMED,
        affected=Affected.NO,
        next_action=MOUNT,
        mechanism=Mechanism.SHORT_LIVED,
        lasting=True,
    )
