"""Detector `false-clean-store`: a store says that it was closed clean, but its close did not write the offset.

From 4.3 on a clean close writes offset, position and status last. A dirty close that is killed before its wipe
flushes uncommitted records and marks the store clean without an offset; Kafka Streams trusts it. Fires when such a
store is opened again: suspected. The next offset decides: if it moved by less than what had been flushed, that was
never committed: confirmed.
Stays quiet for a clean close, for sequences that a compaction zeroed (unknown), under at-least-once, and for a store
that never held an offset (no changelog: there is no changelog to disagree with; otherwise the next start wipes it).
"""

from __future__ import annotations

from collections.abc import Iterable

from agent.contract.events import Affected, Confidence, Level, Severity
from agent.contract.mechanisms import Mechanism
from agent.contract.units import UNCOMMITTED_RESULTS, Twin
from agent.inventory.disk import LockState
from agent.inventory.model import Database, Session, Store, Task
from agent.inventory.sessions import is_closed_without_offset, uncovered_puts
from agent.judging.base import DetectorMeta, Evidence, Kind, Scope, TaskCase, Verdict
from agent.judging.reopening import DEAD_US, reopenings
from agent.judging.upstream import FALSE_CLEAN
from agent.judging.wording import assumptions, where
from agent.layout.facts import Fact
from agent.layout.profile import Truth
from agent.quantities.flushed import commits_passed, dirty_puts, dirty_since, is_more_than_ten_thousand
from agent.quantities.verdicts import holds_uncommitted

META = DetectorMeta(
    id="false-clean-store",
    title="Store marked clean by a close that did not write its offset",
    mechanism=Mechanism.UNCOMMITTED_DATA,
    level=Level.DAMAGE,
    severity=Severity.CRITICAL,
    kind=Kind.DAMAGE,
    scope=Scope.TASK,
    needs=("processing_guarantee", "num_standby_replicas", "kafka_streams_version"),
    upstream=(FALSE_CLEAN,),
    exactly_once=True,
    next_action=(
        "Stop this instance cleanly, keep a copy of the task directory, remove that task directory only, start"
        " again: the task is restored from committed records. Do not delete the other pods' copies first. What"
        " this task wrote since the opening time may rest on uncommitted data and must be reprocessed."
    ),
    consequence=UNCOMMITTED_RESULTS,
    twin=Twin("a dirty close whose wipe was not prevented", "control-dirty-close-wiped-4.3.1"),
    silent_where=((Fact.STATUS_MARKER, Truth.NO),),
)


def judge(case: TaskCase) -> Iterable[Verdict]:
    """Judge one task.

    Source:
        RocksDBStore.close and StreamTask.closeDirty (4.3.0, 4.3.1); docs/state-format.md#what-the-last-close-wrote and
        docs/state-format.md#d1; recorded as
        `dirty-close-kill-4.3.1`, twins `control-dirty-close-wiped-4.3.1`, `eos-4.3.1-crash-*`.
    """
    task = case.task
    if case.is_silent(META):
        return
    for store in task.stores.values():
        ended_us = _dead_since(case, store)
        if ended_us is not None and is_closed_without_offset(store):
            yield _at_rest(case, task, store, ended_us)
        for before, after in reopenings(case, store):
            if _is_false(before):
                yield _verdict(case, task, store, before, after)
                return


def _dead_since(case: TaskCase, store: Store) -> int | None:
    """When a store was released that no process has held since; None = it is held, or was until a minute ago."""
    if store.lock is not LockState.FREE:
        return None
    if not store.sessions:
        return max(_flushed_us(database) for database in store.databases.values())
    session = store.sessions[-1]
    if session.released_us is None or not _is_false(session):
        return None
    return session.released_us if case.waited_us(session.released_us) >= DEAD_US else None


def _flushed_us(database: Database) -> int:
    """The time of what its last close flushed: the same whenever it is read."""
    return database.flushed[-1][1] if database.flushed else database.born_us


def _at_rest(case: TaskCase, task: Task, store: Store, ended_us: int) -> Verdict:
    """No process holds it, its last close wrote no offset, and the next start would trust it."""
    beyond = uncovered_puts(store)
    role = _role(case, store, beyond or 0, store.sessions[-1] if store.sessions else None)
    critical = role is Truth.YES and case.affected(FALSE_CLEAN) is Affected.YES
    how_much = (
        "what a dirty close flushed" if not beyond else f"about {beyond} puts that a dirty close flushed"
    )
    return Verdict(
        subject="at rest",
        opened_at_us=ended_us,
        summary=(
            f"Task {task.id}: store {store.name} is marked clean, but its last close did not write an offset: no"
            f" process holds it, and the next start would trust {how_much}."
        ),
        evidence=(
            Evidence(
                ended_us, "status closed, written after the data, and no offset with it", where(task, store)
            ),
            *(assumptions(case, ended_us, "num_standby_replicas") if role is Truth.MAYBE else ()),
        ),
        severity=Severity.CRITICAL if critical else Severity.WARNING,
        confidence=Confidence.SUSPECTED,
        store=store.name,
        identity=store.identity,
        level=Level.EXPOSURE,
        affected=case.affected(FALSE_CLEAN),
        missing_facts=("num_standby_replicas",) if role is Truth.MAYBE else (),
        next_action=(
            f"BEFORE the next start: keep a copy of the task directory {task.path}, remove that directory only, then"
            " start: the task is restored from committed records, and nothing is lost."
        ),
    )


def _role(case: TaskCase, store: Store, flushed: int, session: Session | None) -> Truth:
    """Return whether it was an active task: configured so, or a standby would have stored an offset at a commit."""
    lasted_us = (
        0 if session is None else case.passed_us(session.opened_us, session.released_us or case.now_us)
    )
    standbys = case.settings.number("num_standby_replicas")
    due = is_more_than_ten_thousand(flushed, store, case.profile) and commits_passed(case.settings, lasted_us)
    if standbys == 0 or due:
        return Truth.YES
    return Truth.MAYBE


def _is_false(session: Session) -> bool:
    """The last close wrote the status after new data, and no offset with it."""
    flushed = session.puts_at_release - session.puts_at_open
    return session.closed is True and session.closed_with_offset is False and flushed > 0


def _verdict(case: TaskCase, task: Task, store: Store, before: Session, after: Session) -> Verdict:
    flushed, least = before.puts_at_release - before.puts_at_open, dirty_puts(store, before, case.settings)
    new = after.stored_offset
    proved = _is_uncommitted(case, store, least, dirty_since(before), new)
    role = Truth.YES if proved else _role(case, store, flushed, before)
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
    elif role is Truth.MAYBE:
        chain += assumptions(case, after.opened_us, "num_standby_replicas")
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
        missing_facts=("num_standby_replicas",) if role is Truth.MAYBE else (),
    )


def _is_uncommitted(case: TaskCase, store: Store, flushed: int, covered: int | None, new: int | None) -> bool:
    return new is not None and holds_uncommitted(store, case.profile, flushed, covered, new) is Truth.YES
