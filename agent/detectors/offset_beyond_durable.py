"""Detector `offset-beyond-durable`: a store reads on from an offset that not every database of it held durably.

A law: it holds on every release, and no known fault is behind it. What an opening trusts, without a wipe, was written
for the database that is there, and each database had flushed everything up to it; a replay from there never brings
back the rest.
Fires when a key-value store was made by the very opening that trusts an offset: confirmed, nothing can be in it. When
it was there, and held fewer entries than when it last claimed an offset as high, less one for each offset since. From
2.6 on also when its offset moves though nothing is put, or nothing ever was. When a segment of a windowed store (4.3
and later) claims, after an opening, the offset of another one, although it was not flushed since it last took records,
and nothing was flushed to it since.
Clears when the store or segment is gone.
Stays quiet where a detector of a known fault reports the same damage, for a store that its owner wiped, for a copy that
kept no file times, for segments made after the offset was stored, after an orderly close, for versioned stores, and for
global ones.
Blind spots: an offset in memory that no file shows (`store-shrank` sees what came of it); a store of which the agent
knows no earlier state; windowed stores up to 4.2.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from agent.contract.codec import rfc3339
from agent.contract.events import Affected, Confidence, Level, Severity
from agent.contract.mechanisms import Mechanism
from agent.contract.units import WRONG_RESULTS, Twin
from agent.inventory.copied import is_copied
from agent.inventory.model import Database, Session, Store, Task
from agent.inventory.openings import is_read_since
from agent.inventory.segments import Opening
from agent.inventory.sessions import SEEN_BEFORE_BORN_US
from agent.judging.base import DetectorMeta, Evidence, Kind, Scope, TaskCase, Verdict
from agent.judging.reopening import SETTLED_US, is_settled, present_sessions
from agent.judging.segment_loss import Grade, Loss, changelog_of, losses, weigh
from agent.judging.wording import checkpoint_of, where
from agent.layout.facts import Fact
from agent.layout.profile import Truth
from agent.quantities.claims import (
    Knowledge,
    OffsetClaim,
    claim_of_opening,
    claims_before,
    is_countable,
    lacks_entries,
)
from agent.quantities.unmoved import jump_without_put

META = DetectorMeta(
    id="offset-beyond-durable",
    title="Store reads on from an offset that it did not hold",
    mechanism=Mechanism.OFFSET_WITHOUT_DATA,
    level=Level.DAMAGE,
    severity=Severity.CRITICAL,
    kind=Kind.DAMAGE,
    scope=Scope.TASK,
    next_action=(
        "Stop this instance cleanly, keep a copy of the task directory, remove that task directory only, start again"
        " and watch the restoration begin at the log start. Do not delete the other pods' copies first. What the task"
        " wrote since the opening was computed on missing state. No known fault explains it: keep the copy, and report"
        " it."
    ),
    consequence=WRONG_RESULTS,
    twin=Twin(
        "the second owner wiped and restored beside the old checkpoint, and finished",
        "benign-8574-finished-2.1.1",
    ),
    waits_us=(SETTLED_US,),
)


def judge(case: TaskCase) -> Iterable[Verdict]:
    """Judge one task.

    Source:
        ProcessorStateManager.initializeStoreOffsetsFromCheckpoint (2.6.0 to 4.2.1) and initializeStoreOffsets (4.3.0):
        a restoration begins behind the offset that is found; docs/state-format.md#rocksdb-files (durability).
    """
    task = case.task
    if task.is_global:
        return
    for store in task.stores.values():
        if store.segmented:
            yield from _segments(case, task, store)
        elif not any(is_copied(x) for x in store.databases.values()):
            verdict = _of_key_value(case, task, store)
            if verdict is not None:
                yield verdict


def _of_key_value(case: TaskCase, task: Task, store: Store) -> Verdict | None:
    """Judge a key-value store: one verdict per incarnation, the surest."""
    sessions = case.once(present_sessions, store)
    for session in sessions:
        trusted = claim_of_opening(session)
        if trusted is not None and session.created:
            return _made_for_it(case, task, store, session, trusted)
    jump = _jump(case, task, store)
    if jump is not None or not sessions:
        return jump
    trusted = claim_of_opening(sessions[-1])
    if trusted is None or not is_countable(store, case.profile) or not is_settled(case, sessions[-1]):
        return None
    return _held_less(case, task, store, sessions[-1], trusted)


def _jump(case: TaskCase, task: Task, store: Store) -> Verdict | None:
    born_us = min((x.born_us for x in store.databases.values()), default=0)
    birth_seen = born_us >= task.first_seen_us - SEEN_BEFORE_BORN_US
    jump = jump_without_put(store, case.profile, case.inventory.volume, birth_seen=birth_seen)
    if jump is None:
        return None
    if jump.start is None:
        what, before = "but nothing was ever put into it", "made empty"
    else:
        what, before = f"but nothing was put into it since offset {jump.start}", f"offset {jump.start}"
    return Verdict(
        subject=store.identity or "",
        opened_at_us=jump.end_us,
        summary=f"Task {task.id}: store {store.name} says offset {jump.end}, {what}; records may be missing.",
        evidence=(
            Evidence(jump.start_us, before, where(task, store)),
            Evidence(jump.end_us, f"offset {jump.end}, and no put since", where(task, store)),
        ),
        severity=Severity.WARNING,
        confidence=Confidence.SUSPECTED,
        store=store.name,
        identity=store.identity,
    )


def _made_for_it(case: TaskCase, task: Task, store: Store, session: Session, trusted: OffsetClaim) -> Verdict:
    sure = not _may_be_wiped(case, task, store, session)
    fact = task.checkpoint_at(session.opened_us)
    written_us = session.opened_us if fact is None else fact.written_us
    return Verdict(
        subject=store.identity or "",
        opened_at_us=session.opened_us,
        summary=(
            f"Task {task.id}: store {store.name} reads on from offset {trusted.offset}, but was made empty by that"
            " opening; what is below that offset is missing."
        ),
        evidence=(
            Evidence(written_us, f"offset {trusted.offset} of {store.name}", checkpoint_of(task)),
            Evidence(session.opened_us, "a new, empty store was made for it", where(task, store)),
        ),
        severity=Severity.CRITICAL if sure else Severity.WARNING,
        confidence=Confidence.CONFIRMED if sure else Confidence.SUSPECTED,
        store=store.name,
        identity=store.identity,
        affected=Affected.POSSIBLY,
    )


def _may_be_wiped(case: TaskCase, task: Task, store: Store, session: Session) -> bool:
    """Up to 2.5 the owner wipes single stores and leaves the checkpoint: one that was not seen looks the same."""
    seen = bool(store.past) and case.inventory.started_us < session.opened_us
    return not seen and case.settings.exactly_once is not False and case.says(Fact.WIPE_STORE) is not Truth.NO


def _held_less(
    case: TaskCase, task: Task, store: Store, session: Session, trusted: OffsetClaim
) -> Verdict | None:
    known = claims_before(task, store, session, Knowledge(case.settings, case.profile))
    before = next((x for x in known if lacks_entries(x, trusted) is Truth.YES), None)
    if before is None:
        return None
    least, most = before.entries.low, trusted.entries.high
    place = where(task, store)
    return Verdict(
        subject=store.identity or "",
        opened_at_us=session.opened_us,
        summary=(
            f"Task {task.id}: store {store.name} reads on from offset {trusted.offset} with {most} entries at most;"
            f" at offset {before.offset} it held {least} at least."
        ),
        evidence=(
            Evidence(before.at_us, f"offset {before.offset}, {least} live entries or more", place),
            Evidence(
                trusted.at_us, f"opened at offset {trusted.offset}, {most} live entries or fewer", place
            ),
        ),
        severity=Severity.WARNING,
        confidence=Confidence.SUSPECTED,
        store=store.name,
        identity=store.identity,
    )


def _segments(case: TaskCase, task: Task, store: Store) -> Iterator[Verdict]:
    now = {x.identity: x for x in store.databases.values()}
    for opening in store.openings:
        changelog = changelog_of(opening.segments, task.application, store.name)
        if changelog is None or not is_read_since(store, opening):
            continue
        for oldest in (False, True):
            found = losses(weigh(opening.segments, changelog, oldest=oldest)).values()
            lost = [
                loss
                for loss in found
                if loss.grade > Grade.POSSIBLE
                and _claims_it_all(now.get(loss.segment.identity), changelog, loss, opening)
            ]
            if lost:
                yield _segment_verdict(task, store, opening, lost)
                break


def _claims_it_all(database: Database | None, changelog: str, loss: Loss, opening: Opening) -> bool:
    """Return whether a segment says the offset of the one that answers, and nothing was flushed to it since.

    Its offset reaches the disk together with its data, so no replay has brought it anything.
    """
    if database is None or database.offsets is None or database.offsets_unread:
        return False
    stored = next((offset for name, offset, _ in database.offsets.offsets if name == changelog), -1)
    flushed_us = database.flushed[-1][1] if database.flushed else 0
    return stored >= loss.offset and flushed_us <= opening.at_us


def _segment_verdict(task: Task, store: Store, opening: Opening, lost: list[Loss]) -> Verdict:
    worst = max(lost, key=lambda loss: (loss.grade, loss.segment.starts))
    chain = [
        Evidence(
            opening.at_us,
            f"last flushed {rfc3339(loss.segment.flushed_us)}"
            if loss.segment.has_data
            else "no record on disk",
            loss.segment.path,
        )
        for loss in lost
    ]
    return Verdict(
        subject=f"opening@{opening.at_us}",
        opened_at_us=opening.at_us,
        summary=(
            f"Task {task.id}: store {store.name} reads on from offset {worst.offset} of segment {worst.speaker.name};"
            f" {', '.join(loss.segment.name for loss in lost)} had not been flushed up to it, and got nothing since."
        ),
        evidence=(
            *chain,
            Evidence(opening.at_us, f"opened without a wipe at offset {worst.offset}", worst.speaker.path),
        ),
        severity=Severity.WARNING,
        confidence=Confidence.SUSPECTED,
        store=store.name,
        identity=worst.segment.identity,
    )
