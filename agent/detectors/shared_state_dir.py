"""Detector `shared-state-dir`: two processes work on one application directory.

Fires when two processes are seen on it, or when the application's lock file is replaced while it is held: from then
on two processes can each hold a lock of the same name.
"""

from __future__ import annotations

from collections.abc import Iterable

from agent.contract.events import Confidence, Level, Severity
from agent.contract.mechanisms import Mechanism
from agent.contract.units import Twin
from agent.judging.base import (
    ApplicationCase,
    DetectorMeta,
    Evidence,
    Kind,
    Scope,
    Verdict,
)
from agent.judging.upstream import KAFKA_6647
from agent.layout import names

META = DetectorMeta(
    id="shared-state-dir",
    title="Two processes on one application directory",
    mechanism=Mechanism.SHARED_STATE,
    level=Level.DAMAGE,
    severity=Severity.CRITICAL,
    kind=Kind.CONDITION,
    scope=Scope.APPLICATION,
    upstream=(KAFKA_6647,),
    next_action=(
        "Stop one of the two processes cleanly; give every instance its own state.dir. Then treat the tasks that"
        " both held as damaged: remove those task directories only and let them restore."
    ),
    consequence="Two processes write the same stores: they destroy each other's state.",
    twin=Twin("two applications side by side in one directory", "benign-two-apps-one-dir-3.9.2"),
    waits_us=(),
)


def judge(case: ApplicationCase) -> Iterable[Verdict]:
    """Judge one application.

    Source:
        KAFKA-6647 (up to 2.4 the cleaner unlinks `.lock` while it holds it); StateDirectory.initializeProcessId.
    """
    application = case.application
    if len(application.processes) > 1:
        pids = ", ".join(str(x.pid) for x in application.processes)
        yield Verdict(
            subject="processes",
            opened_at_us=max(x.started_at_us for x in application.processes),
            summary=f"{application.id}: {len(application.processes)} processes work on its directory (pids {pids}).",
            evidence=tuple(
                Evidence(x.started_at_us, f"process {x.pid} started", application.id)
                for x in application.processes
            ),
            severity=Severity.CRITICAL,
            confidence=Confidence.CONFIRMED,
            affected=case.affected(KAFKA_6647),
        )
    for at_us in application.lock_replaced_us:
        yield Verdict(
            subject=f"lock@{at_us}",
            opened_at_us=at_us,
            summary=f"{application.id}: its lock file was replaced while it was held; a second process can start.",
            evidence=(
                Evidence(
                    at_us,
                    "another inode under the same name, lock held before",
                    f"{application.id}/{names.LOCK_FILE}",
                ),
            ),
            severity=Severity.WARNING,
            confidence=Confidence.SUSPECTED,
            affected=case.affected(KAFKA_6647),
        )
