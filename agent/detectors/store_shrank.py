"""Detector `store-shrank`: a store holds less than it did at a lower offset, and no deletion explains it.

A law: it holds on every release, and no known fault is behind it. A changelog record ends one entry at most, and a
restoration gives back every entry that is live at its end, however the changelog was compacted; segments of a windowed
store go in order of age.
Fires when a store claims an offset as high as an earlier one, or higher, with fewer live entries than there were,
less one for each offset between; when a store that was recreated claims one after fewer puts than there were live
entries, as long as no deletion can have gone from the changelog (`delete.retention.ms`); when a segment is gone
while an older one, made before, is still there; and when one was deleted while no process held the store, which was
opened again with the others and with their offset.
A remark names a store of which RocksDB itself drops entries, as the application configured it.
Clears when the store is gone.
Stays quiet where a detector of a known fault reports the same damage, for an offset that went back, for a store in the
middle of its restoration, for compaction, deletions and expiry, for what was flushed beyond an offset, for what an
owner wiped right after it wrote its offset under exactly-once, for versioned and global stores, and for a source
topic in place of a changelog.
Blind spots: fewer entries than were deleted meanwhile; a plain store on a release that may have versioned ones, which
look the same; entries that were not counted; the oldest segment, and any that went while no agent watched (an older
copy of the volume may have been put back). A changelog that is also cut by time
(`cleanup.policy=compact,delete`, chosen by the application) makes a store shrink: it is never more than suspected.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from agent.contract.events import Affected, Confidence, Level, Severity
from agent.contract.mechanisms import Mechanism
from agent.contract.units import Twin
from agent.inventory.model import Session, Store, Task
from agent.judging import segment_order
from agent.judging.base import DetectorMeta, Evidence, Kind, Scope, TaskCase, Verdict
from agent.judging.reopening import SETTLED_US, is_settled
from agent.judging.segment_order import dropped_segments, removed_segments
from agent.judging.wording import where
from agent.layout.profile import Truth
from agent.quantities.changelog import is_real
from agent.quantities.claims import (
    Knowledge,
    OffsetClaim,
    claim_now,
    claims_before,
    got_too_little,
    has_seen_it_all,
    is_countable,
    lacks_entries,
    puts_since_birth,
)

META = DetectorMeta(
    id="store-shrank",
    title="Store holds less than it did before",
    mechanism=Mechanism.OFFSET_WITHOUT_DATA,
    level=Level.DAMAGE,
    severity=Severity.WARNING,
    kind=Kind.DAMAGE,
    scope=Scope.TASK,
    next_action=(
        "Compare the store with its changelog before anything is removed. If the changelog has the missing keys: stop"
        " this instance cleanly, keep a copy of the task directory, remove that task directory only, start again. If it"
        " has not: another pod's copy may be the only complete one, keep it. No known fault explains it: report it."
    ),
    consequence="Entries are gone from the store: what is computed from it may be wrong.",
    twin=Twin(
        "N8, the cleaner took the directory and the task came back with a full restoration",
        "control-8187-2.2.2",
    ),
    waits_us=(SETTLED_US, segment_order.SETTLED_US),
)


def judge(case: TaskCase) -> Iterable[Verdict]:
    """Judge one task.

    Source:
        docs/state-format.md#puts; LogCleaner keeps the newest record of each key; AbstractSegments.
        cleanupExpiredSegments (2.0.1 to 4.3.1: all that are older than the retention, oldest first).
    """
    task = case.task
    if task.is_global or not task.exists:
        return
    for store in task.stores.values():
        yield from _by_configuration(task, store)
        if store.segmented:
            yield from _out_of_order(case, task, store)
            yield from _left_out(case, task, store)
            continue
        session = store.sessions[-1] if store.sessions else None
        if session is None or not session.is_of(store.identities) or not is_countable(store, case.profile):
            continue
        later = claim_now(store, session, case.inventory.volume)
        if later is not None:
            yield from _fewer(case, task, store, session, later)


def _by_configuration(task: Task, store: Store) -> Iterator[Verdict]:
    """FIFO compaction drops the oldest files, up to 1 GB by default; a filter drops what it wants to."""
    found = next((x for x in store.databases.values() if x.forgets), None)
    if found is None:
        return
    yield Verdict(
        subject=f"drops {store.name}@{task.incarnation}",
        opened_at_us=found.options_written_us or found.seen_us,
        summary=(
            f"Task {task.id}: RocksDB drops entries of store {store.name} by configuration (FIFO compaction, or a"
            " compaction filter of a RocksDBConfigSetter): whether entries are missing is not judged."
        ),
        evidence=(
            Evidence(
                found.options_written_us or found.seen_us,
                "OPTIONS: compaction_style=kCompactionStyleFIFO, or a compaction filter",
                found.path,
            ),
        ),
        severity=Severity.INFO,
        confidence=Confidence.CONFIRMED,
        affected=Affected.NO,
        level=Level.EXPOSURE,
        store=store.name,
        identity=store.identity,
        next_action=(
            "Nothing, if the application wants it so. Else take it out of the RocksDBConfigSetter: the changelog still"
            " has what was dropped, and a restoration (stop, remove that task directory only, start) brings it back."
        ),
    )


def _fewer(
    case: TaskCase, task: Task, store: Store, session: Session, later: OffsetClaim
) -> Iterator[Verdict]:
    for earlier in claims_before(task, store, session, Knowledge(case.settings, case.profile)):
        puts = puts_since_birth(store, session, earlier)
        if puts is not None and has_seen_it_all(later, puts):
            continue
        if lacks_entries(earlier, later) is Truth.YES:
            now = f"{later.entries.high} live entries or fewer"
        elif puts is not None and _keeps_deletions(case, earlier, later):
            if got_too_little(earlier, later, puts) is not Truth.YES:
                continue
            now = f"been recreated since, {puts} puts in all"
        else:
            continue
        yield Verdict(
            subject=f"incarnation {task.incarnation}.{store.incarnation}",
            opened_at_us=later.at_us,
            summary=(
                f"Task {task.id}: store {store.name} held {earlier.entries.low} entries or more at offset"
                f" {earlier.offset}; at offset {later.offset} it has {now}: entries are missing."
            ),
            evidence=(
                Evidence(
                    earlier.at_us,
                    f"offset {earlier.offset}, {earlier.entries.low} live entries or more",
                    where(task, store),
                ),
                Evidence(later.at_us, f"offset {later.offset}, {now}", where(task, store)),
            ),
            severity=Severity.WARNING,
            confidence=Confidence.SUSPECTED,
            store=store.name,
            identity=store.identity,
        )
        return


def _keeps_deletions(case: TaskCase, earlier: OffsetClaim, later: OffsetClaim) -> bool:
    """Return whether the changelog still has every deletion that came after the earlier claim."""
    retention_ms = case.settings.assumed("delete_retention_ms")
    return retention_ms is not None and later.at_us - earlier.at_us < retention_ms * 1_000


def _out_of_order(case: TaskCase, task: Task, store: Store) -> Iterator[Verdict]:
    for gone, older in dropped_segments(case, store):
        yield Verdict(
            subject=f"segment {gone.identity}",
            opened_at_us=gone.ended_us,
            summary=(
                f"Task {task.id}: segment {gone.segment} of store {store.name} is gone, although the older"
                f" {older.segment} is still there: it did not expire."
            ),
            evidence=(
                Evidence(gone.ended_us, "its files were deleted", f"{where(task, store)}/{gone.segment}"),
                Evidence(older.seen_us, "older, made before, and there", older.path),
            ),
            severity=Severity.WARNING,
            confidence=Confidence.SUSPECTED,
            store=store.name,
            identity=older.identity,
        )


def _left_out(case: TaskCase, task: Task, store: Store) -> Iterator[Verdict]:
    """Segments went while no process held the store, and its next opening trusted an offset for what was left."""
    session = store.sessions[-1] if store.sessions else None
    if session is None or not session.is_of(store.identities) or not is_settled(case, session):
        return
    trusted = session.stored_offset_at_open if store.keeps_offsets else session.offset_at_open
    for gone in removed_segments(task, store):
        if session.opened_us < gone.ended_us or not is_real(trusted):
            continue
        yield Verdict(
            subject=f"segment {gone.identity}",
            opened_at_us=session.opened_us,
            summary=(
                f"Task {task.id}: segment {gone.segment} of store {store.name} was deleted while no process held it,"
                f" and the store reads on from offset {trusted}: what the segment held is missing."
            ),
            evidence=(
                Evidence(gone.ended_us, "its files were deleted", f"{where(task, store)}/{gone.segment}"),
                Evidence(session.opened_us, f"opened without it, at offset {trusted}", where(task, store)),
            ),
            severity=Severity.WARNING,
            confidence=Confidence.SUSPECTED,
            store=store.name,
            identity=store.identity,
        )
