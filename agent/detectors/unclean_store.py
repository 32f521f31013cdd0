"""Detector `unclean-store`: a store says that it is open, and no process holds it.

From 4.3 on every store carries a status. Left open after a flush it means an unclean end: under exactly-once the
next assignment wipes the task and restores it, under at-least-once it is ignored. Info: the status alone harms nothing;
what a windowed store loses by such an end is reported by `lost-segment`. A warning where the next start has
transactional stores (4.4+): they refuse such a store at every opening, and never wipe it. Global stores are not wiped:
under exactly-once the application fails at every start until their directory is removed. Stays quiet for a task that is
refused again and again: `unopenable-task` says so.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from agent.contract.events import Confidence, Level, Severity
from agent.contract.mechanisms import Mechanism
from agent.contract.units import Twin
from agent.inventory.disk import LockState
from agent.inventory.model import Database, Store, Task
from agent.judging.base import DetectorMeta, Evidence, Kind, Scope, TaskCase, Verdict
from agent.judging.changelogs import caution_about
from agent.judging.refused import refusal
from agent.judging.upstream import KAFKA_21034, KIP_1035, REFUSED_OPEN
from agent.judging.wording import where
from agent.layout.facts import Fact
from agent.layout.profile import Truth

META = DetectorMeta(
    id="unclean-store",
    title="Store left open by an unclean end",
    mechanism=Mechanism.LOST_SEGMENT,
    level=Level.EXPOSURE,
    severity=Severity.WARNING,
    kind=Kind.CONDITION,
    scope=Scope.TASK,
    needs=("processing_guarantee", "enable_transactional_statestores"),
    upstream=(KIP_1035, REFUSED_OPEN, KAFKA_21034),
    next_action=(
        "Nothing to do, unless `lost-segment` names the store: do what it says first. Under exactly-once expect a wipe"
        " and a full restoration at the next assignment. Do not switch enable.transactional.statestores on before that."
    ),
    consequence=(
        "Under exactly-once the next assignment wipes the store and restores it in full; with transactional stores, and"
        " with a global store, the application does not start."
    ),
    twin=Twin("N5, every close was clean", "benign-close-after-writes-alos-4.3.1"),
    waits_us=(),
)

_THEN = {
    True: "the next assignment wipes the task and restores it",
    False: "the next assignment goes on with it",
    None: "under exactly-once the next assignment wipes it",
}
_UNLESS = "; with enable.transactional.statestores no start would get past it"
_REFUSED = (
    "transactional stores refuse it at every opening and never wipe it: the instance that is assigned the task does not"
    " start"
)
_FAILS = "the application fails at every start until the directory of the global stores is removed"
_THEN_GLOBAL = _THEN | {True: _FAILS, None: f"under exactly-once {_FAILS}"}
_REMOVE = (
    "If the instance does not start (*Tasks [-1_-1] are corrupted*): stop it, keep a copy of the directory `global`,"
    " remove that directory only; the start reads the stores from their topics again."
)
_BEFORE_THE_SWITCH = (
    "Start once with enable.transactional.statestores=false: the task is wiped and restored in full; after an orderly"
    " stop switch it on. Or, with the instance stopped, keep a copy of {path} and remove that directory only."
)


def judge(case: TaskCase) -> Iterable[Verdict]:
    """Judge one task.

    Source:
        AbstractColumnFamilyAccessor.open and close (4.3.0+); GlobalStateManagerImpl.initialize (4.3.1) removes the
        directory for a ProcessorStateException only, RocksDBStore.openDB throws a TaskCorruptedException; with
        transactional stores a store that is refused is not registered, so that nothing is marked as corrupted and
        nothing wiped (StateManagerUtil.closeStateManager, 4.4.0).
    """
    task = case.task
    if any(refusal(case, store) is not None for store in task.stores.values()):
        return
    for store in task.stores.values():
        for database in store.databases.values():
            if _is_open(database) and database.lock is LockState.FREE:
                found = _verdict(case, task, store, database)
                is_refused = case.profile.transactional is Truth.YES and case.settings.exactly_once is True
                yield _refused(case, store, found) if is_refused and not task.is_global else found
                break


def _is_open(database: Database) -> bool:
    return database.offsets is not None and database.offsets.status == 1


def _verdict(case: TaskCase, task: Task, store: Store, database: Database) -> Verdict:
    assert database.offsets is not None
    then = (_THEN_GLOBAL if task.is_global else _THEN)[case.settings.exactly_once]
    fails = task.is_global and case.settings.exactly_once is not False
    may_be = _may_be_switched_on(case) and case.settings.exactly_once is not False
    unless = _UNLESS if may_be and not task.is_global else ""
    sequence = database.offsets.status_sequence
    return Verdict(
        subject=f"{database.identity}@{sequence}",
        opened_at_us=database.lock_since_us or database.seen_us,
        summary=f"Task {task.id}: store {store.name} was left open by an unclean end; {then}{unless}.",
        evidence=(
            Evidence(database.seen_us, f"status open (sequence {sequence})", where(task, store)),
            Evidence(database.lock_since_us or database.seen_us, "LOCK is free", where(task, store)),
        ),
        severity=Severity.INFO,
        confidence=Confidence.CONFIRMED,
        store=store.name,
        identity=database.identity,
        affected=case.affected(KAFKA_21034 if fails else KIP_1035),
        missing_facts=("enable_transactional_statestores",) if unless else (),
        next_action=_REMOVE if fails else "",
    )


def _may_be_switched_on(case: TaskCase) -> bool:
    """Nothing is said of the next start, whatever wrote the disk."""
    is_known = case.says(Fact.TRANSACTIONAL_STORES) is not Truth.NO
    return is_known and case.settings.transactional_stores is None


def _refused(case: TaskCase, store: Store, found: Verdict) -> Verdict:
    """Say what transactional stores make of it: they are configured, or other stores show them."""
    task = case.task
    return replace(
        found,
        summary=f"Task {task.id}: store {store.name} was left open by an unclean end; {_REFUSED}.",
        severity=Severity.WARNING,
        upstream=(REFUSED_OPEN.key,),
        mechanism=Mechanism.REFUSED_TASK,
        next_action=_BEFORE_THE_SWITCH.format(path=task.path) + caution_about(case.application, task),
    )
