"""Stores that say that they are open while no process holds them, where the next start may not get past that (4.3+).

A start under exactly-once wipes such a store and restores it. It does not where the stores are transactional (4.4+),
nor with global stores.
"""

from __future__ import annotations

from collections.abc import Iterator

from agent.contract.events import Confidence, Severity
from agent.inventory.disk import LockState
from agent.inventory.model import Database, Store
from agent.inventory.segments import OPEN
from agent.judging.base import Evidence, TaskCase, Verdict
from agent.judging.changelogs import caution_about
from agent.judging.upstream import KAFKA_21034, REFUSED_OPEN
from agent.judging.wording import where
from agent.layout.facts import Fact
from agent.layout.profile import Truth

_REFUSED = (
    "transactional stores refuse it at every opening and never wipe it: the instance that is assigned the task does not"
    " start"
)
_UNTOLD = "with enable.transactional.statestores no start would get past it"
_GLOBAL = "the application fails at every start until the directory of the global stores is removed"
_REMOVE = (
    "If the instance does not start (*Tasks [-1_-1] are corrupted*): stop it, keep a copy of the directory `global`,"
    " remove that directory only; the start reads the stores from their topics again."
)
_BEFORE_THE_SWITCH = (
    "Start once with enable.transactional.statestores=false: the task is wiped and restored in full; after an orderly"
    " stop switch it on. Or, with the instance stopped, keep a copy of {path} and remove that directory only."
)


def left_open(case: TaskCase) -> Iterator[Verdict]:
    """Say which stores of a task the next start may not get past.

    Source:
        AbstractColumnFamilyAccessor.open and close (4.3.0+); GlobalStateManagerImpl.initialize (4.3.1) removes the
        directory for a ProcessorStateException only, RocksDBStore.openDB throws a TaskCorruptedException; with
        transactional stores a store that is refused is not registered, so that nothing is marked as corrupted and
        nothing wiped (StateManagerUtil.closeStateManager, 4.4.0).
    """
    if case.settings.exactly_once is False:
        return
    for store in case.task.stores.values():
        for database in store.databases.values():
            is_open = database.offsets is not None and database.offsets.status == OPEN
            if is_open and database.lock is LockState.FREE:
                yield from (
                    _of_global(case, store, database)
                    if case.task.is_global
                    else _of_task(case, store, database)
                )
                break


def _of_task(case: TaskCase, store: Store, database: Database) -> Iterator[Verdict]:
    """A warning where the stores are known to be transactional; info where that, or the guarantee, is not known."""
    steps = _BEFORE_THE_SWITCH.format(path=case.task.path) + caution_about(case.application, case.task)
    if case.profile.transactional is Truth.YES and case.settings.exactly_once:
        yield _verdict(case, store, database, _REFUSED, steps, severity=Severity.WARNING)
    elif case.profile.transactional is Truth.YES:
        then = f"under exactly-once {_REFUSED}"
        yield _verdict(case, store, database, then, steps, missing=("processing_guarantee",))
    elif case.says(Fact.TRANSACTIONAL_STORES) is not Truth.NO and case.settings.transactional_stores is None:
        wiped = "the next assignment wipes it" if case.settings.exactly_once else "exactly-once wipes it"
        missing = ("enable_transactional_statestores",)
        yield _verdict(case, store, database, f"{wiped}; {_UNTOLD}", steps, missing=missing)


def _of_global(case: TaskCase, store: Store, database: Database) -> Iterator[Verdict]:
    then = _GLOBAL if case.settings.exactly_once else f"under exactly-once {_GLOBAL}"
    yield _verdict(case, store, database, then, _REMOVE)


def _verdict(
    case: TaskCase,
    store: Store,
    database: Database,
    then: str,
    next_action: str,
    *,
    severity: Severity = Severity.INFO,
    missing: tuple[str, ...] = (),
) -> Verdict:
    task, at = case.task, where(case.task, store)
    assert database.offsets is not None
    sequence = database.offsets.status_sequence
    free_us = database.lock_since_us or database.seen_us
    issue = KAFKA_21034 if task.is_global else REFUSED_OPEN
    return Verdict(
        subject=f"{database.identity}@{sequence}",
        opened_at_us=free_us,
        summary=f"Task {task.id}: store {store.name} was left open by an unclean end; {then}.",
        evidence=(
            Evidence(database.seen_us, f"status open (sequence {sequence})", at),
            Evidence(free_us, "LOCK is free", at),
        ),
        severity=severity,
        confidence=Confidence.CONFIRMED,
        store=store.name,
        identity=database.identity,
        upstream=(issue.key,),
        affected=case.affected(issue),
        missing_facts=missing,
        next_action=next_action,
    )
