"""Detector `zombie-state`: state that was unused for longer than tombstones live was used again.

Fires when a store was free, from a seen release to a seen open, for longer than `delete.retention.ms` and its old
offset was trusted: keys that were deleted meanwhile are still in it, and their tombstones are gone. A hazard: a
store whose keys are never deleted looks the same, and so does one whose task no other instance had meanwhile.
Where no agent watched, the newest time below the application bounds the pause: of a volume at rest, before the
start, and of one that was opened as it was. Info where file times are those of a copy (unknown), and before a start
where `delete.retention.ms` is assumed.
Blind spots: without a watch, a process that held its stores for so long, wrote nothing and was killed looks the same;
4.3 and later, and exactly-once up to 3.7, leave no time of their last close once they are open again.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from agent.contract.events import Confidence, Level, Severity
from agent.contract.units import Twin
from agent.inventory.copied import times_are_copied
from agent.inventory.model import Session, Store, Task
from agent.inventory.segments import OPEN
from agent.inventory.sessions import offset_in_force, stored_offset
from agent.judging.base import DetectorMeta, Evidence, Kind, Scope, TaskCase, Verdict, seconds
from agent.judging.reopening import SETTLED_US, is_settled, reopenings
from agent.judging.unused import unused_until_opened, unused_until_read
from agent.judging.upstream import KAFKA_19943
from agent.judging.wording import assumptions, where
from agent.layout.facts import Fact
from agent.layout.profile import Truth
from agent.quantities.changelog import is_real

META = DetectorMeta(
    id="zombie-state",
    title="State reused after its tombstones expired",
    level=Level.EXPOSURE,
    severity=Severity.WARNING,
    kind=Kind.DAMAGE,
    scope=Scope.TASK,
    needs=("delete_retention_ms",),
    upstream=(KAFKA_19943,),
    next_action=(
        "If keys of this store are ever deleted: stop, keep a copy, remove this task directory only, start again and"
        " let it restore in full. From 4.3 on state.cleanup.dir.max.age.ms purges such directories at start."
    ),
    consequence="Keys that were deleted while the directory was idle are back.",
    twin=Twin("N6, a quiet store was restarted soon", "benign-restart-eos-4.1.2"),
    refreshed=True,
    waits_us=(SETTLED_US,),
)
BEFORE_THE_START = (
    "Before the next start: if keys of this store are ever deleted, and another instance worked on this task meanwhile,"
    " keep a copy, remove this task directory only, then start and let it restore in full. From 4.3 on"
    " state.cleanup.dir.max.age.ms purges such directories at start."
)


def judge(case: TaskCase) -> Iterable[Verdict]:
    """Judge one task.

    Source:
        KAFKA-19943, KIP-1259; docs/state-format.md#kafka-19943.
    """
    task = case.task
    retention_ms = case.settings.assumed("delete_retention_ms")
    if retention_ms is None:
        return
    # the changelog of a windowed store is deleted by time, and has no tombstones to lose
    stores = [store for store in task.stores.values() if not store.segmented and store.databases]
    for store in stores:
        for before, after in reopenings(case, store):
            released_us = before.released_us or 0
            if _is_zombie(case, after, after.opened_us - released_us, retention_ms):
                yield _verdict(case, task, store, released_us, after, retention_ms)
                return
    for store in stores:
        found = _unwatched(case, task, store, retention_ms)
        if found is not None:
            yield found
            return


def _is_zombie(case: TaskCase, after: Session, unused_us: int, retention_ms: int) -> bool:
    return _trusted(case, after) is not None and not after.created and unused_us > retention_ms * 1_000


def _trusted(case: TaskCase, after: Session) -> int | None:
    in_store = case.says(Fact.OFFSETS_IN_STORE) is Truth.YES
    offsets = (after.offset_at_open, after.stored_offset_at_open if in_store else None)
    return next((x for x in offsets if is_real(x)), None)


def _unwatched(case: TaskCase, task: Task, store: Store, retention_ms: int) -> Verdict | None:
    """Judge a store of which the end before the pause was not seen."""
    opened = unused_until_opened(case, store)
    if opened is not None:
        (since_us, until_us), after = opened, store.sessions[0]
        if after.offset_at_open is None:  # the first reading meets the stores before the checkpoint
            after = replace(after, offset_at_open=offset_in_force(task, store.name, after.opened_us, 0))
        if not is_settled(case, after) or times_are_copied(task, since_us):
            return None
        if not _is_zombie(case, after, until_us - since_us, retention_ms):
            return None
        return replace(
            _verdict(case, task, store, since_us, after, retention_ms, "last written"), subject=_unseen(store)
        )
    at_rest = unused_until_read(case, store)
    if at_rest is None or not _would_be_trusted(case, task, store):
        return None
    since_us, until_us = at_rest
    is_old = until_us - since_us > retention_ms * 1_000
    if is_old or times_are_copied(task, since_us):
        return _at_rest(case, task, store, since_us, until_us if is_old else None, retention_ms)
    return None


def _would_be_trusted(case: TaskCase, task: Task, store: Store) -> bool:
    """Return whether a start would go on with a store at its old offset: exactly-once wipes what has none."""
    fact = task.checkpoint
    if fact is not None and is_real(fact.offsets.get(store.name)):
        return True
    is_open = any(x.offsets is not None and x.offsets.status == OPEN for x in store.databases.values())
    return is_real(stored_offset(store)) and not (is_open and case.settings.exactly_once is not False)


def _unseen(store: Store) -> str:
    return f"{store.identity}, unwatched"


def _at_rest(
    case: TaskCase, task: Task, store: Store, since_us: int, until_us: int | None, retention_ms: int
) -> Verdict:
    """Say for how long nothing was written to a store at rest; `until_us` None = its times are a copy's."""
    known = until_us is not None and case.settings.is_configured("delete_retention_ms")
    lives = f"longer than tombstones live ({retention_ms / 1000:g} s)"
    what = (
        f"nothing of this application was written for {seconds(until_us - since_us)}, {lives}"
        if until_us is not None
        else f"it may have been unused for {lives}: its file times are those of a copy"
    )
    return Verdict(
        subject=_unseen(store),
        opened_at_us=since_us,
        summary=(
            f"Task {task.id}: {what}; a start goes on with store {store.name} at its old offset, and keys that other"
            " instances deleted meanwhile would be back."
        ),
        evidence=(
            Evidence(since_us, "last written" if until_us is not None else "copied", where(task, store)),
            *assumptions(case, since_us, "delete_retention_ms"),
        ),
        severity=Severity.WARNING if known else Severity.INFO,
        confidence=Confidence.SUSPECTED if known else Confidence.UNKNOWN,
        store=store.name,
        identity=store.identity,
        affected=case.affected(KAFKA_19943),
        missing_facts=() if known or until_us is None else ("delete_retention_ms",),
        next_action=BEFORE_THE_START,
    )


def _verdict(
    case: TaskCase,
    task: Task,
    store: Store,
    released_us: int,
    after: Session,
    retention_ms: int,
    ended: str = "released",
) -> Verdict:
    return Verdict(
        subject=f"{store.identity}@{after.opened_us}",
        opened_at_us=after.opened_us,
        summary=(
            f"Task {task.id}: store {store.name} was unused for {seconds(after.opened_us - released_us)}, longer than"
            f" tombstones live ({retention_ms / 1000:g} s), and is used again: keys deleted meanwhile are back."
        ),
        evidence=(
            Evidence(released_us, ended, where(task, store)),
            Evidence(
                after.opened_us, f"opened again at its old offset {_trusted(case, after)}", where(task, store)
            ),
            *assumptions(case, after.opened_us, "delete_retention_ms"),
        ),
        severity=Severity.WARNING,
        confidence=Confidence.SUSPECTED,
        store=store.name,
        identity=store.identity,
        affected=case.affected(KAFKA_19943),
    )
