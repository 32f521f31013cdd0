"""Detector `skipped-eos-wipe`: under exactly-once a store with uncommitted data was reopened instead of wiped.

Fires when a session ended uncleanly with data flushed beyond its checkpoint and the next session opened the same
incarnation: suspected. The checkpoint at the end of the restoration decides: if the changelog gave back less than
what had been flushed, the rest was never committed and is in the store: confirmed.
Stays quiet for a clean close, a crash without a flush, a crash in the middle of a restoration, a wipe, and for a
store without a changelog.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from agent.contract.events import Affected, Confidence, Level, Severity
from agent.detectors.base import Case, DetectorMeta, Evidence, Kind, Scope, Verdict
from agent.detectors.puts import (
    ROLE_PROOF_RECORDS,
    base_offset,
    flushed_beyond,
    puts_per_record,
    transaction_markers,
)
from agent.detectors.reopening import reopenings
from agent.detectors.telling import where
from agent.detectors.upstream import KAFKA_7192, KAFKA_9891, KAFKA_10362, KAFKA_20685
from agent.inventory.model import Mark, Session, Store, Task
from agent.layout.facts import Fact
from agent.layout.profile import Truth

META = DetectorMeta(
    id="skipped-eos-wipe",
    title="Store reopened after a crash without the wipe that exactly-once needs",
    level=Level.DAMAGE,
    severity=Severity.CRITICAL,
    kind=Kind.DAMAGE,
    scope=Scope.TASK,
    needs=("processing_guarantee", "num_standby_replicas", "kafka_streams_version"),
    upstream=(KAFKA_20685, KAFKA_10362, KAFKA_9891, KAFKA_7192),
    next_action=(
        "Stop this instance cleanly, keep a copy of the task directory, remove that task directory only, start"
        " again: the task is restored from committed records. Do not delete the other pods' copies first. What"
        " this task wrote to its changelog and output topics since the opening time may rest on uncommitted data"
        " and stays wrong on every pod until it is reprocessed."
    ),
)


@dataclass(frozen=True, slots=True)
class _Reopening:
    """An unclean end and the opening after it."""

    before: Session
    after: Session
    flushed: int


def judge(case: Case) -> Iterable[Verdict]:
    """Judge one task.

    Source:
        ProcessorStateManager.initializeStoreOffsetsFromCheckpoint (an entry suppresses the wipe), 2.0.0
        AbstractStateManager.reinitializeStateStoresForPartitions; recorded as `kafka-20685-*`,
        `kafka-7192-2.0.0`, `kafka-9891-2.5.0`, twin `exposure-20685-crash-committed-4.1.2`.
    """
    task = case.task
    assert task is not None
    if case.settings.exactly_once is not True or task.is_global:
        return
    if case.says(Fact.OFFSETS_IN_STORE) is Truth.YES:
        return
    worst: Verdict | None = None
    for store in task.stores.values():
        for reopening in _reopenings(case, task, store):
            verdict = _judge_reopening(case, task, store, reopening)
            if worst is None or verdict.severity.rank > worst.severity.rank:
                worst = verdict
    if worst is not None:
        yield worst


def _reopenings(case: Case, task: Task, store: Store) -> Iterable[_Reopening]:
    for before, after in reopenings(store, case.now_us):
        flushed = flushed_beyond(before)
        if before.outlived or flushed <= 0 or _was_standby(case, before) or _was_restoring(case, before):
            continue
        if not _needs_reason(case, task, store, after):
            continue
        yield _Reopening(before, after, flushed)


def _needs_reason(case: Case, task: Task, store: Store, session: Session) -> bool:
    """Tell whether an opening without a wipe is anything but normal.

    Since KAFKA-7192 and 9891 were fixed, nothing but an entry keeps a store with a changelog from its wipe: one that is
    opened without an entry, and that no checkpoint ever named, has no changelog.
    """
    if not case.names_changelog_of(store.name):
        return False
    fixed = all(case.affected(issue) is Affected.NO for issue in (KAFKA_7192, KAFKA_9891))
    named = session.offset_at_open is not None or any(store.name in fact.offsets for fact in task.checkpoints)
    return named or not fixed


def _was_restoring(case: Case, session: Session) -> bool:
    """Up to 2.5 a restoration that ended has switched bulk-load mode on and off: an odd number of reopens."""
    return case.says(Fact.BULK_LOAD_REOPEN) is Truth.YES and session.wiped and session.reopens == 1


def _was_standby(case: Case, session: Session) -> bool:
    """Up to 2.5 an active task under exactly-once has no checkpoint while it runs, a standby always has."""
    return case.says(Fact.BULK_LOAD_REOPEN) is Truth.YES and session.last is not None


def _judge_reopening(case: Case, task: Task, store: Store, reopening: _Reopening) -> Verdict:
    before, after = reopening.before, reopening.after
    base = before.last.offset if before.last else None
    why = _proof(case, task, store, reopening, base_offset(base))
    standbys = case.settings.number("num_standby_replicas")
    old = case.says(Fact.BULK_LOAD_REOPEN) is Truth.YES
    is_active = old or standbys == 0 or reopening.flushed > ROLE_PROOF_RECORDS
    proved = why is not None
    released_us = before.released_us or 0
    chain = [
        Evidence(before.opened_us, f"store {store.name} opened", where(task, store)),
        _last_mark(task, before),
        Evidence(
            released_us, f"released with {reopening.flushed} puts flushed beyond that", where(task, store)
        ),
        Evidence(after.opened_us, "the same incarnation opened again, no wipe", where(task, store)),
    ]
    if after.first is not None:
        chain.append(_first_mark(task, after.first, why))
    return Verdict(
        subject=f"crash@{released_us}",
        opened_at_us=after.opened_us,
        summary=_summary(task, store, reopening, proved=proved, is_active=is_active),
        evidence=tuple(chain),
        severity=Severity.CRITICAL if proved else Severity.WARNING if is_active else Severity.INFO,
        confidence=Confidence.CONFIRMED if proved else Confidence.SUSPECTED,
        store=None,
        identity=store.identity,
        upstream=_issues(case),
        affected=_worst(case),
        missing_facts=() if standbys is not None or old else ("num_standby_replicas",),
    )


STANDS_US = 500_000
"""The checkpoint at the end of a restoration stands; one that is written on the way (pause, removal, a standby that
becomes active) is replaced or deleted within milliseconds (seen live: 0.26 s)."""
STANDS_BESIDE_STANDBYS_US = 10_000_000


def _restored_to(case: Case, task: Task, store: Store, after: Session) -> int | None:
    """Tell the offset of the checkpoint with which the restoration of a session ended; None = not known.

    While it restores, a task writes checkpoints, too: by the commit timer when its offsets moved by more than 10,000
    in all, and whenever it is paused, removed or recycled, where a store that was not begun says "unknown". They say
    how far it came, not where the changelog ends.
    """
    alone = case.settings.number("num_standby_replicas") == 0
    stands_us = STANDS_US if alone else STANDS_BESIDE_STANDBYS_US
    end_us = case.now_us if after.released_us is None else after.released_us
    previous: dict[str, int] = {}
    for fact in task.checkpoints:
        moved = sum(
            base_offset(offset) - base_offset(previous.get(name)) for name, offset in fact.offsets.items()
        )
        previous = fact.offsets
        if store.name not in fact.offsets or not after.opened_us <= fact.written_us <= end_us:
            continue
        until_us = end_us if fact.ended_us is None else min(fact.ended_us, end_us)
        if until_us - fact.written_us >= stands_us and moved <= ROLE_PROOF_RECORDS:
            return fact.offsets[store.name]
    return None


def _proof(case: Case, task: Task, store: Store, reopening: _Reopening, base: int) -> str | None:
    """Say what proves that flushed data was never committed; None = not proven."""
    before, after = reopening.before, reopening.after
    needed = reopening.flushed / puts_per_record(store, before)
    mark = after.first
    if case.says(Fact.BULK_LOAD_REOPEN) is Truth.YES and after.reopens >= 2:
        restored = after.restored_puts - before.puts_at_release
        if 0 <= restored < needed and (mark is not None or after.released_us is not None):
            return f"the restoration gave back {restored} puts, {reopening.flushed} had been flushed"
    restored_to = _restored_to(case, task, store, after)
    if restored_to is not None and (moved := base_offset(restored_to) - base) < needed:
        moved = max(moved, 0)
        return f"the offset advanced by {moved}, {reopening.flushed} puts had been flushed beyond it"
    if mark is None or case.says(Fact.VERSIONED_STORES) is not Truth.NO:
        return None  # fewer puts than offsets may be a versioned store's restoration
    advance = mark.offset - base if mark.offset >= 0 else 0
    applied = mark.puts - before.puts_at_release
    markers = transaction_markers(case.settings, mark.at_us - before.opened_us)
    aborted = advance - applied - markers
    if aborted >= needed:
        return f"of {advance} offsets {aborted} were aborted, {reopening.flushed} puts had been flushed"
    return None


def _summary(task: Task, store: Store, reopening: _Reopening, *, proved: bool, is_active: bool) -> str:
    if proved:
        return (
            f"Task {task.id}: store {store.name} holds uncommitted data: {reopening.flushed} puts had been"
            " flushed beyond its checkpoint when it crashed, and it was reopened without a wipe."
        )
    role = "" if is_active else "; role unknown, a standby may do this"
    return (
        f"Task {task.id}: store {store.name} was reopened after an unclean end with {reopening.flushed} puts"
        f" flushed beyond its checkpoint; uncommitted data may be in it (not proven{role})."
    )


_ALL = (KAFKA_20685, KAFKA_10362, KAFKA_9891, KAFKA_7192)
_RANK = (Affected.NO, Affected.POSSIBLY, Affected.YES)


def _issues(case: Case) -> tuple[str, ...]:
    return tuple(x.key for x in _ALL if case.affected(x) is not Affected.NO)


def _worst(case: Case) -> Affected:
    return max((case.affected(x) for x in _ALL), key=_RANK.index)


def _last_mark(task: Task, session: Session) -> Evidence:
    mark = session.last
    if mark is None:
        return Evidence(
            session.opened_us, "no checkpoint was written in this session", f"{task.path}/.checkpoint"
        )
    what = f"last checkpoint: offset {mark.offset}, {mark.puts} puts on disk"
    return Evidence(mark.at_us, what, f"{task.path}/.checkpoint")


def _first_mark(task: Task, mark: Mark, why: str | None) -> Evidence:
    what = f"first checkpoint after the restart: offset {mark.offset}, {mark.puts} puts on disk"
    return Evidence(
        mark.at_us, f"{what}: {why}" if why else f"{what}: not proven", f"{task.path}/.checkpoint"
    )
