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
from agent.inventory.model import Application, Inventory
from agent.judging.base import ApplicationCase, DetectorMeta, Evidence, Kind, Mechanism, Scope, Twin, Verdict
from agent.judging.upstream import KAFKA_6647, KIP_1035
from agent.judging.wording import concerned
from agent.layout import names

META = DetectorMeta(
    id="setup",
    title="Setup that puts state at risk",
    level=Level.EXPOSURE,
    kind=Kind.CONDITION,
    scope=Scope.APPLICATION,
    needs=("kafka_streams_version",),
    upstream=(KAFKA_6647, KIP_1035),
    next_action=(
        "Do what the finding asks for: the agent's page has it. Of two processes on one directory stop the one that"
        " started later, cleanly. Do not start a release before 4.3 on stores of 4.3 or later. Remove nothing before."
    ),
    consequence=(
        "One of these, see the incident: two processes damage each other's state, a downgrade from 4.3 fails at every"
        " start, or the pod restores all its state at every start."
    ),
    lowers_risk=(
        "The state is deleted with the pod, and every start restores all of it. Mount a persistent volume at"
        " state.dir, or keep standbys on other pods."
    ),
    twin=Twin("two applications side by side in one directory", "benign-two-apps-one-dir-3.9.2"),
)
STOP_ONE = (
    "Stop one of the two processes cleanly; give every instance its own state.dir. Then treat the tasks that"
    " both held as damaged: copy those task directories, remove them and no others, and let them restore."
)
CORRECT = (
    "Correct kafka_streams_version for this application. If it is right, do not start a release older than 4.3 on these"
    " stores: it cannot open them. Or, one pod at a time: stop, copy the application directory, remove it, start and"
    " let it restore."
)
UNOPENABLE = (
    "If the setting is wrong, correct kafka_streams_version. If it is right, go back to 4.3 or later: nothing is lost."
    " To stay on the older release: one pod at a time, stop it, keep a copy of the application directory, remove it,"
    " start, and wait until it is restored."
)
MOUNT = "Mount a persistent volume at state.dir, or accept a full restoration at every start."
Said = tuple[str, int, str, tuple[Evidence, ...], Severity, Confidence]
_WORDS = {"memory": "in memory (tmpfs)", "overlay": "on the container's own layer"}


def judge(case: ApplicationCase) -> Iterable[Verdict]:
    """Judge one application.

    Source:
        KAFKA-6647 (up to 2.4 the cleaner unlinks `.lock` while it holds it); StateDirectory.initializeProcessId.
    """
    yield from _shared(case)
    application, life = case.application, case.application.life
    began_us = life.started_us if life is not None else None
    wrote = began_us is not None and application.offsets_family_us > began_us
    if case.profile.unopenable is not None and not wrote:
        yield _unopenable(case, application)
    elif case.profile.conflicts and case.settings.release is not None:
        yield _disagree(case, application, began_us)
    if case.inventory.volume in _WORDS and application.exists:
        yield _ephemeral(case.inventory)


def _shared(case: ApplicationCase) -> Iterable[Verdict]:
    application, processes = case.application, case.application.processes
    if len(processes) > 1:
        started = tuple(
            Evidence(x.started_at_us, f"process {x.pid} started", application.id) for x in processes
        )
        pids = ", ".join(str(x.pid) for x in processes)
        says = f"{application.id}: {len(processes)} processes work on its directory (pids {pids})."
        at_us = max(x.started_at_us for x in processes)
        yield _of_two(case, ("processes", at_us, says, started, Severity.CRITICAL, Confidence.CONFIRMED))
    says = f"{application.id}: its lock file was replaced while it was held; a second process can start."
    for at_us in application.lock_replaced_us:
        what = "another inode under the same name, lock held before"
        seen = (Evidence(at_us, what, f"{application.id}/{names.LOCK_FILE}"),)
        yield _of_two(case, (f"lock@{at_us}", at_us, says, seen, Severity.WARNING, Confidence.SUSPECTED))


def _of_two(case: ApplicationCase, said: Said) -> Verdict:
    return Verdict(
        *said,
        level=Level.DAMAGE,
        upstream=concerned(case, (KAFKA_6647,)),
        affected=case.affected(KAFKA_6647),
        next_action=STOP_ONE,
        mechanism=Mechanism.SHARED_STATE,
    )


def _unopenable(case: ApplicationCase, application: Application) -> Verdict:
    release, at_us = str(case.profile.unopenable), application.offsets_family_us
    confidence = Confidence.CONFIRMED if application.process_version == release else Confidence.SUSPECTED
    says = (
        f"{application.id}: its stores were written by 4.3.0 or later, and {release} cannot open"
        " them: it fails at every start."
    )
    said = "stores of a later release", at_us, says, _conflicts(case, at_us), Severity.WARNING, confidence
    return _of_release(case, said, UNOPENABLE)


def _disagree(case: ApplicationCase, application: Application, began_us: int | None) -> Verdict:
    newest_us = max(application.rocksdb_versions.values(), default=0)
    at_us, says = newest_us or application.first_seen_us, f"{application.id}: {case.profile.conflicts[0]}."
    severity = Severity.WARNING if began_us is not None and newest_us > began_us else Severity.INFO
    said = "release", at_us, says, _conflicts(case, at_us), severity, Confidence.SUSPECTED
    return _of_release(case, said, CORRECT)


def _conflicts(case: ApplicationCase, at_us: int) -> tuple[Evidence, ...]:
    return tuple(Evidence(at_us, text, case.application.id) for text in case.profile.conflicts)


def _of_release(case: ApplicationCase, said: Said, step: str) -> Verdict:
    return Verdict(
        *said,
        upstream=concerned(case, (KIP_1035,)),
        affected=case.affected(KIP_1035),
        next_action=step,
        mechanism=Mechanism.OTHER_RELEASE,
    )


def _ephemeral(inventory: Inventory) -> Verdict:
    volume, at_us = inventory.volume, inventory.started_us
    return Verdict(
        volume,
        at_us,
        f"The state directory is {_WORDS[volume]}: it is gone with the pod, and every start restores everything.",
        (Evidence(at_us, f"file system: {volume}", "state directory"),),
        Severity.WARNING if volume == "memory" else Severity.INFO,
        Confidence.CONFIRMED,
        affected=Affected.NO,
        next_action=MOUNT,
        mechanism=Mechanism.SHORT_LIVED,
        lasting=True,
    )
