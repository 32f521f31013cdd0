"""Detector `data-beyond-changelog`: a store holds more than its changelog gave it.

A law: it holds on every release, and no known fault is behind it. What is on disk beyond an offset is either in the
changelog behind that offset, where the next opening reads it again, or was never committed, and then the store must
be wiped.
Fires when a store was opened again, the same incarnation, and the offset at which its restoration ended is too low
for what had been flushed beyond the last one; or when a replay from the very start gave back fewer puts than the store
had live entries. Confirmed where that offset is known to be the end. Under either guarantee, up to 4.2, when a store
that was made empty took more puts, in its first opening, than its checkpoint counts records.
Clears when the store is gone.
Stays quiet where a detector of a known fault reports the same damage, after a crash under at-least-once (what was not
acknowledged may stay), after a wipe, for a crash without a flush, where everything was committed, up to 2.4, where
standbys read the same records again, and for a new store while no file's time shows whether it took them before its
checkpoint.
Blind spots: fewer puts than offsets that carry none (markers, aborted records); a close that wrote its offset after
records that were never committed; stores that put more than once per record; transactional stores (4.4+), where
standbys and restorations write ahead of the offset.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from agent.contract.events import Confidence, Level, Severity
from agent.contract.mechanisms import Mechanism
from agent.contract.units import UNCOMMITTED_RESULTS, Twin
from agent.inventory.model import Database, Session, Store, Task
from agent.inventory.sessions import OPENED_TWICE_WITHIN_US
from agent.judging.base import DetectorMeta, Evidence, Kind, Scope, TaskCase, Verdict
from agent.judging.reopening import encloses_restoration, present_sessions, reopenings
from agent.judging.restoration_end import restoration_end
from agent.judging.wording import checkpoint_of, where
from agent.layout.facts import Fact
from agent.layout.profile import Truth
from agent.quantities.changelog import is_real, records_between
from agent.quantities.flushed import dirty_puts, dirty_since, flushed_beyond
from agent.quantities.verdicts import holds_uncommitted, replay_fell_short

META = DetectorMeta(
    id="data-beyond-changelog",
    title="Store holds records that its changelog does not",
    mechanism=Mechanism.UNCOMMITTED_DATA,
    level=Level.DAMAGE,
    severity=Severity.CRITICAL,
    kind=Kind.DAMAGE,
    scope=Scope.TASK,
    needs=("processing_guarantee",),
    next_action=(
        "Stop this instance cleanly, keep a copy of the task directory, remove that task directory only, start again:"
        " the task is restored from committed records. Do not delete the other pods' copies first. What this task wrote"
        " since the opening may rest on uncommitted data. No known fault explains it: keep the copy, and report it."
    ),
    consequence=UNCOMMITTED_RESULTS,
    twin=Twin(
        "killed with flushes beyond the checkpoint, and everything was committed",
        "exposure-20685-crash-committed-4.1.2",
    ),
)


@dataclass(frozen=True, slots=True)
class _Excess:
    """What a store holds too much: how it shows, where, and whether nothing else can look like it."""

    why: str
    at_us: int
    place: str
    certain: bool


def judge(case: TaskCase) -> Iterable[Verdict]:
    """Judge one task.

    Source:
        docs/state-format.md#wipes (exactly-once wipes what may hold uncommitted records); ProcessorStateManager.restore
        applies what is behind the trusted offset, up to the end of the changelog.
    """
    task = case.task
    if task.is_global:
        return
    for store in task.stores.values():
        yield from _overfilled(case, task, store)
        if case.settings.exactly_once is not True:
            continue
        for before, after in reopenings(case, store):
            excess = _stored(case, task, store, before, after) if store.keeps_offsets else None
            excess = excess or _replayed(case, task, store, before, after)
            excess = excess or _checkpointed(case, task, store, before, after)
            if excess is not None:
                yield _verdict(task, store, before, after, excess)
                break


def _overfilled(case: TaskCase, task: Task, store: Store) -> Iterable[Verdict]:
    """Up to 4.2, in the only opening of a store that was made empty: its changelog gave, or got, all that it took.

    From 4.3 on offsets take sequence numbers, too.
    """
    if store.segmented:
        return
    sessions = case.once(present_sessions, store)
    session = sessions[0] if len(sessions) == 1 else None
    if session is None or session.last is None or store.keeps_offsets:
        return
    once = session.created and not (session.attached or session.wiped or store.forgotten_us)
    never_again = store.all_reopens and not any(_is_reopened(x) for x in store.databases.values())
    if not once or not never_again or case.says(Fact.STANDBY_READS_AGAIN) is not Truth.NO:
        return
    mark = session.last
    took_more = holds_uncommitted(store, case.profile, mark.puts, None, mark.offset)
    if mark.unsure or not is_real(mark.offset) or took_more is not Truth.YES:
        return
    why = (
        f"{mark.puts} puts since it was made, from {records_between(None, mark.offset).high} records at most"
    )
    place = where(task, store)
    yield Verdict(
        subject=f"made@{session.opened_us}",
        opened_at_us=mark.at_us,
        summary=f"Task {task.id}: store {store.name} took more than its changelog gave it: {why}.",
        evidence=(
            Evidence(session.opened_us, "made empty, and not opened again since", place),
            Evidence(mark.at_us, why, checkpoint_of(task)),
        ),
        severity=Severity.WARNING,
        confidence=Confidence.SUSPECTED,
        store=store.name,
        identity=store.identity,
    )


def _is_reopened(database: Database) -> bool:
    """Return whether it was opened again after it was made; up to 3.7 a timestamped store is made by two openings."""
    return any(x > database.born_us + OPENED_TWICE_WITHIN_US for x in database.reopened_us)


def _checkpointed(
    case: TaskCase, task: Task, store: Store, before: Session, after: Session
) -> _Excess | None:
    flushed = flushed_beyond(before)
    if store.keeps_offsets or flushed <= 0 or case.says(Fact.STANDBY_READS_AGAIN) is not Truth.NO:
        return None
    end = restoration_end(case, task, store, after)
    base = before.last.offset if before.last is not None else None
    if end is None or holds_uncommitted(store, case.profile, flushed, base, end.offset) is not Truth.YES:
        return None
    at_us = max((x.at_us for x in (after.first, after.last) if x is not None), default=after.opened_us)
    since = "without an offset" if base is None else f"beyond offset {base}"
    why = f"{flushed} puts had been flushed {since}, and the restoration ended at {end.offset}"
    return _Excess(why, at_us, checkpoint_of(task), end.certain)


def _replayed(case: TaskCase, task: Task, store: Store, before: Session, after: Session) -> _Excess | None:
    """Up to 2.5 a pair of reopens encloses a whole restoration, so what it put is known."""
    whole = case.says(Fact.BULK_LOAD_REOPEN) is Truth.YES and encloses_restoration(store, after)
    if not whole or flushed_beyond(before) <= 0 or _had_offset(task, store, before, after):
        return None
    restored = max(after.restored_puts - before.puts_at_release, 0)
    if replay_fell_short(before.entries_at_release, restored) is not Truth.YES:
        return None
    why = (
        f"{before.entries_at_release} live entries or more, and the whole changelog gave back {restored} puts"
    )
    return _Excess(why, after.opened_us, where(task, store), certain=True)


def _had_offset(task: Task, store: Store, before: Session, after: Session) -> bool:
    """Return whether an offset may have been trusted: up to 2.5 it is read, and deleted, before the lock is free."""
    return is_real(after.offset_at_open) or any(
        is_real(fact.offsets.get(store.name))
        and fact.written_us <= after.opened_us
        and (fact.ended_us is None or fact.ended_us > before.opened_us)
        for fact in task.checkpoints
    )


def _stored(case: TaskCase, task: Task, store: Store, before: Session, after: Session) -> _Excess | None:
    """4.3+: what is on disk behind the newest stored offset must come back with the next one; segments differ.

    Transactional stores differ, too: what they read from the changelog goes past their buffer, and ahead of the offset.

    Source:
        RocksDBStore.restoreBatch (4.4.0).
    """
    is_known = before.transactional is False or case.profile.transactional is Truth.NO
    if before.transactional or not is_known or not before.kept_offsets:
        return None
    least, base, end = dirty_puts(store, before, case.settings), dirty_since(before), after.stored_offset
    if store.segmented or least <= 0 or end is None or after.released_us is None:
        return None
    if holds_uncommitted(store, case.profile, least, base, end) is not Truth.YES:
        return None
    since = "since it was made" if base is None else f"behind stored offset {base}"
    why = f"{least} puts or more were flushed {since}, and the next one is {end}"
    return _Excess(why, after.released_us, where(task, store), certain=False)


def _verdict(task: Task, store: Store, before: Session, after: Session, excess: _Excess) -> Verdict:
    place, released_us = where(task, store), before.released_us or before.opened_us
    return Verdict(
        subject=f"opening@{after.opened_us}",
        opened_at_us=after.opened_us,
        summary=f"Task {task.id}: store {store.name} holds records that were never committed: {excess.why}.",
        evidence=(
            Evidence(released_us, f"let go with {before.puts_at_release} puts on disk", place),
            Evidence(after.opened_us, "the same incarnation opened again, no wipe", place),
            Evidence(max(excess.at_us, after.opened_us), excess.why, excess.place),
        ),
        severity=Severity.CRITICAL if excess.certain else Severity.WARNING,
        confidence=Confidence.CONFIRMED if excess.certain else Confidence.SUSPECTED,
        store=store.name,
        identity=store.identity,
    )
