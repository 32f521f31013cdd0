"""Detector `torn-store`: files are missing from a store that nobody deletes any more.

Fires when a stable manifest names SST files that are not there, or when data files are left without the files that
make them a database, or a checkpoint speaks of a store whose directory is gone, and no deletion goes on: a deletion
was killed half way, or the volume lost files.
Stays quiet during a running deletion and for a compaction that races with the look.
"""

from __future__ import annotations

from collections.abc import Iterable

from agent.contract.events import Confidence, Level, Severity
from agent.detectors.base import Case, DetectorMeta, Evidence, Kind, Scope, Verdict
from agent.detectors.puts import is_real
from agent.detectors.telling import checkpoint_of, where
from agent.detectors.upstream import TORN_DELETION, TORN_FILES
from agent.inventory.model import Remains, Shape, Store, Task
from agent.layout.facts import Fact
from agent.layout.profile import Truth

META = DetectorMeta(
    id="torn-store",
    title="Files are missing from a store",
    level=Level.EXPOSURE,
    severity=Severity.WARNING,
    kind=Kind.CONDITION,
    scope=Scope.TASK,
    upstream=(TORN_FILES,),
    next_action=(
        "Before the next start: keep a copy, then remove this task directory only, `.checkpoint` included. Up to 4.2"
        " a start would make an empty store and trust the old checkpoint; on 4.3 the start may fail once."
    ),
)

QUIET_US = 5_000_000
"""A slow deletion removes a file at least every second (recorded: 0.3 to 1 s)."""


def judge(case: Case) -> Iterable[Verdict]:
    """Judge one task.

    Source:
        Utils.delete walks in directory order (all releases); state-semantics D8; recorded as `torn-clean-*`.
    """
    task = case.task
    assert task is not None
    if not task.exists or not _is_over(case, task.walk.last_us if task.walk else 0):
        return
    yield from _gone(case, task)
    for store in task.stores.values():
        for remains in store.remains.values():
            if _is_over(case, remains.since_us):
                yield _left(case, task, store, remains)
        for database in store.databases.values():
            if database.missing_files and _is_over(case, database.missing_since_us):
                names = ", ".join(f"{number:06d}.sst" for number in database.missing_files[:3])
                yield _tell(
                    case,
                    task,
                    store,
                    database.seen_us,
                    f"its manifest names {len(database.missing_files)} files that are not there ({names})",
                )


def _gone(case: Case, task: Task) -> Iterable[Verdict]:
    """A checkpoint that speaks of a store without a directory: the next start makes it empty and trusts the entry.

    On 4.3 such a file is one that 4.2 left: the first start moves its offsets into the stores. Nobody has run that on
    a torn directory, so it is a suspicion.
    """
    fact = task.checkpoint
    if fact is None or task.held:
        return
    moved = case.says(Fact.OFFSETS_IN_STORE) is Truth.YES
    for name, offset in fact.offsets.items():
        store = task.stores.get(name)
        if not is_real(offset) or (store is not None and (store.databases or store.remains)):
            continue
        known = store is not None and _was_taken(task, store)
        yield Verdict(
            subject=f"gone@{task.incarnation}",
            opened_at_us=store.past[-1].ended_us if store is not None and store.past else fact.seen_us,
            summary=f"Task {task.id}: its checkpoint says offset {offset} for store {name}, which has no directory"
            + (
                f": the next start would {'move it into' if moved else 'trust it on'} an empty store."
                if known
                else "; unknown, it may be a custom store, or a windowed one whose records have all expired."
            ),
            evidence=(Evidence(fact.written_us, f"offset {offset} of {name}", checkpoint_of(task)),),
            severity=Severity.WARNING if known else Severity.INFO,
            confidence=_sure(known, moved),
            store=name,
            affected=case.affected(TORN_FILES if moved else TORN_DELETION),
        )


def _was_taken(task: Task, store: Store) -> bool:
    """Tell whether the directory was there and went.

    A key-value store always has one, but a windowed store without live records has no segment: it counts only if
    a cleaner took its last one in this life of the task.
    """
    if not store.past or not store.segmented:
        return bool(store.past)
    before = store.past[-1]
    return before.shape is Shape.CLEANER_WALK and before.task_incarnation == task.incarnation


def _sure(known: bool, moved: bool) -> Confidence:
    if not known:
        return Confidence.UNKNOWN
    return Confidence.SUSPECTED if moved else Confidence.CONFIRMED


def _is_over(case: Case, last_us: int) -> bool:
    """Tell whether no deletion can be going on: nothing happened for a while, or who was at it is dead."""
    application, task = case.application, case.task
    assert application is not None
    assert task is not None
    last_us = max(last_us, task.walk.last_us if task.walk else 0)
    ended_us = application.lives[-1].ended_us if application.lives else None
    died_at_it = ended_us is not None and task.walk is not None and task.walk.last_us <= ended_us
    return died_at_it or case.now_us - last_us >= QUIET_US


def _left(case: Case, task: Task, store: Store, remains: Remains) -> Verdict:
    what = f"{remains.files} data files are left without the files that make them a database"
    return _tell(case, task, store, remains.since_us, what)


def _tell(case: Case, task: Task, store: Store, at_us: int, what: str) -> Verdict:
    return Verdict(
        subject=f"incarnation {task.incarnation}",
        opened_at_us=at_us,
        summary=f"Task {task.id}: store {store.name} is torn: {what}.",
        evidence=(Evidence(at_us, what, where(task, store)),),
        severity=Severity.WARNING,
        confidence=Confidence.CONFIRMED,
        store=store.name,
        identity=store.identity,
        affected=case.affected(TORN_FILES),
    )
