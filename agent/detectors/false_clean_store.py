"""Detector `false-clean-store`: a store says that it was closed clean, but its close did not write the offset.

From 4.3 on a clean close writes offset, position and status last. A dirty close that is killed before its wipe
flushes uncommitted records and marks the store clean without an offset; Kafka Streams trusts it. Fires when such a
store is opened again: suspected. The next offset decides: if it moved by less than what had been flushed, that was
never committed: confirmed.
Stays quiet for a clean close, for sequences that a compaction zeroed (unknown), under at-least-once, and for a store
that never held an offset (no changelog: nothing to be false to; else the next start wipes it).
"""

from __future__ import annotations

from collections.abc import Iterable

from agent.contract.events import Confidence, Level, Severity
from agent.detectors.base import Case, DetectorMeta, Evidence, Kind, Scope, Verdict
from agent.detectors.puts import ROLE_PROOF_RECORDS, base_offset
from agent.detectors.reopening import reopenings
from agent.detectors.telling import where
from agent.detectors.upstream import FALSE_CLEAN
from agent.inventory.disk import LockState
from agent.inventory.model import Session, Store, Task
from agent.inventory.sessions import is_closed_without_offset
from agent.layout.facts import Fact
from agent.layout.profile import Truth

META = DetectorMeta(
    id="false-clean-store",
    title="Store marked clean by a close that did not write its offset",
    level=Level.DAMAGE,
    severity=Severity.CRITICAL,
    kind=Kind.DAMAGE,
    scope=Scope.TASK,
    needs=("processing_guarantee", "num_standby_replicas", "kafka_streams_version"),
    upstream=(FALSE_CLEAN,),
    next_action=(
        "Stop this instance cleanly, keep a copy of the task directory, remove that task directory only, start"
        " again: the task is restored from committed records. Do not delete the other pods' copies first. What"
        " this task wrote since the opening time may rest on uncommitted data and must be reprocessed."
    ),
)


def judge(case: Case) -> Iterable[Verdict]:
    """Judge one task.

    Source:
        RocksDBStore.close and StreamTask.closeDirty (4.3.0, 4.3.1); design 2.4; recorded as
        `dirty-close-kill-4.3.1`, twins `control-dirty-close-wiped-4.3.1`, `eos-4.3.1-crash-*`.
    """
    task = case.task
    assert task is not None
    if case.settings.exactly_once is not True or case.says(Fact.STATUS_MARKER) is Truth.NO:
        return
    for store in task.stores.values():
        if not store.sessions and store.lock is LockState.FREE and is_closed_without_offset(store):
            yield _at_rest(case, task, store)
        for before, after in reopenings(store, case.now_us):
            if _is_false(before):
                yield _tell(case, task, store, before, after)
                return


def _at_rest(case: Case, task: Task, store: Store) -> Verdict:
    """From one look at a store that nobody holds: its last close wrote no offset."""
    seen_us = max(database.seen_us for database in store.databases.values())
    return Verdict(
        subject="at rest",
        opened_at_us=seen_us,
        summary=(
            f"Task {task.id}: store {store.name} is marked clean, but its last close did not write an offset: the"
            " next start would trust what a dirty close flushed."
        ),
        evidence=(
            Evidence(
                seen_us, "status closed, written after the data, and no offset with it", where(task, store)
            ),
        ),
        severity=Severity.WARNING,
        confidence=Confidence.SUSPECTED,
        store=store.name,
        identity=store.identity,
        level=Level.EXPOSURE,
        affected=case.affected(FALSE_CLEAN),
    )


def _is_false(session: Session) -> bool:
    """The last close wrote the status after new data, and no offset with it."""
    flushed = session.puts_at_release - session.puts_at_open
    return session.closed is True and session.closed_with_offset is False and flushed > 0


def _tell(case: Case, task: Task, store: Store, before: Session, after: Session) -> Verdict:
    flushed = before.puts_at_release - before.puts_at_open
    old, new = base_offset(before.stored_offset_at_open), after.stored_offset
    proved = new is not None and new - old < flushed
    standbys = case.settings.number("num_standby_replicas")
    is_active = standbys == 0 or flushed > ROLE_PROOF_RECORDS
    chain = [
        Evidence(
            before.opened_us, f"opened; stored offset {before.stored_offset_at_open}", where(task, store)
        ),
        Evidence(
            before.released_us or 0,
            f"closed: status clean, {flushed} new puts flushed, no offset written with them",
            where(task, store),
        ),
        Evidence(after.opened_us, "the same incarnation opened again, no wipe", where(task, store)),
    ]
    if new is not None:
        chain.append(
            Evidence(after.released_us or case.now_us, f"next stored offset: {new}", where(task, store))
        )
    return Verdict(
        subject=f"close@{before.released_us}",
        opened_at_us=after.opened_us,
        summary=(
            f"Task {task.id}: store {store.name} was marked clean without its offset and is trusted;"
            f" {flushed} flushed puts were {'never' if proved else 'perhaps never'} committed."
        ),
        evidence=tuple(chain),
        severity=Severity.CRITICAL if proved else Severity.WARNING,
        confidence=Confidence.CONFIRMED if proved else Confidence.SUSPECTED,
        store=store.name,
        identity=store.identity,
        affected=case.affected(FALSE_CLEAN),
        missing_facts=() if is_active else ("num_standby_replicas",),
    )
