"""Detector `unclean-store`: a store says that it is open, and no process holds it.

From 4.3 on every store carries a status. Left open after a flush it means an unclean end: under exactly-once the
next assignment wipes the task and restores it, under at-least-once it is ignored. Info: the status alone harms nothing;
what a windowed store loses by such an end is reported by `lost-segment`. Global stores are not wiped: under
exactly-once the application fails at every start until their directory is removed. Stays quiet for a task that is
refused again and again: `unopenable-task` says so.
"""

from __future__ import annotations

from collections.abc import Iterable

from agent.contract.events import Confidence, Level, Severity
from agent.contract.mechanisms import Mechanism
from agent.contract.units import Twin
from agent.inventory.disk import LockState
from agent.judging.base import CHECKPOINT_CHANGES, DetectorMeta, Evidence, Kind, Scope, TaskCase, Verdict
from agent.judging.refused import refusal
from agent.judging.upstream import KAFKA_21034, KIP_1035
from agent.judging.wording import where

META = DetectorMeta(
    id="unclean-store",
    title="Store left open by an unclean end",
    mechanism=Mechanism.LOST_SEGMENT,
    level=Level.EXPOSURE,
    severity=Severity.INFO,
    kind=Kind.CONDITION,
    scope=Scope.TASK,
    needs=("processing_guarantee",),
    upstream=(KIP_1035, KAFKA_21034),
    next_action=(
        "Nothing to do, unless `lost-segment` names the store: do what it says first. Under exactly-once expect a wipe"
        " and a full restoration at the next assignment."
    ),
    consequence=(
        "Under exactly-once the next assignment wipes the store and restores it in full; a global store keeps the"
        " application from starting."
    ),
    twin=Twin("N5, every close was clean", "benign-close-after-writes-alos-4.3.1"),
    waits_us=(),
    unmoved_by=CHECKPOINT_CHANGES,
)

_THEN = {
    True: "the next assignment wipes the task and restores it",
    False: "the next assignment goes on with it",
    None: "under exactly-once the next assignment wipes it",
}
_FAILS = "the application fails at every start until the directory of the global stores is removed"
_THEN_GLOBAL = _THEN | {True: _FAILS, None: f"under exactly-once {_FAILS}"}
_REMOVE = (
    "If the instance does not start (*Tasks [-1_-1] are corrupted*): stop it, keep a copy of the directory `global`,"
    " remove that directory only; the start reads the stores from their topics again."
)


def judge(case: TaskCase) -> Iterable[Verdict]:
    """Judge one task.

    Source:
        AbstractColumnFamilyAccessor.open and close (4.3.0+); GlobalStateManagerImpl.initialize (4.3.1) removes the
        directory for a ProcessorStateException only, RocksDBStore.openDB throws a TaskCorruptedException.
    """
    task = case.task
    then = (_THEN_GLOBAL if task.is_global else _THEN)[case.settings.exactly_once]
    fails = task.is_global and case.settings.exactly_once is not False
    if any(refusal(case, store) is not None for store in task.stores.values()):
        return
    for store in task.stores.values():
        for database in store.databases.values():
            facts = database.offsets
            if facts is None or facts.status != 1 or database.lock is not LockState.FREE:
                continue
            yield Verdict(
                subject=f"{database.identity}@{facts.status_sequence}",
                opened_at_us=database.lock_since_us or database.seen_us,
                summary=f"Task {task.id}: store {store.name} was left open by an unclean end; {then}.",
                evidence=(
                    Evidence(
                        database.seen_us,
                        f"status open (sequence {facts.status_sequence})",
                        where(task, store),
                    ),
                    Evidence(database.lock_since_us or database.seen_us, "LOCK is free", where(task, store)),
                ),
                severity=Severity.INFO,
                confidence=Confidence.CONFIRMED,
                store=store.name,
                identity=database.identity,
                affected=case.affected(KAFKA_21034 if fails else KIP_1035),
                next_action=_REMOVE if fails else "",
            )
            break
