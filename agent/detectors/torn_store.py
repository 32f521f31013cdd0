"""Detector `torn-store`: files of a store are missing or damaged, and no deletion is going on.

Fires when a stable manifest names SST or blob files that are not there, or when data files are left without the files
that make them a database, or a checkpoint names a store whose directory is gone or empty, or (4.3 and later) single
segments of a windowed store were deleted while no process held it, and no deletion goes on: a deletion was killed half
way, or the volume lost files. A store that no agent saw is missed where its neighbours show that RocksDB kept it: the
same store in another task, its `.position`, its empty directory; a global store, where nothing else is on disk.
Fires when `CURRENT`, the manifest, an SST file or a blob file is damaged, or the manifest that `CURRENT` names is
missing, at two readings five seconds apart: the next start fails, or opens the store without what was lost. While a
process holds the store that is `suspected`, and reported after a minute.
Critical where no process has taken the task for a minute and the next start, up to 4.2, would trust the checkpoint that
still names the store.
A whole database without IDENTITY is a remark: CURRENT, the manifest and the files that it names decide.
Stays quiet during a running deletion, for a compaction that races with the reading, for a manifest that is being
written, and for files that the application keeps on another path (`db_paths`), as far as that is known.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from agent.contract.events import Affected, Confidence, Level, Severity
from agent.contract.mechanisms import Mechanism
from agent.contract.units import Twin
from agent.inventory.disk import LockState
from agent.inventory.model import Database, Remains, Store, Task
from agent.inventory.observations import CUT, DAMAGE, ELSEWHERE, problem_kind
from agent.inventory.openings import segments_of
from agent.inventory.segments import OPEN
from agent.inventory.sessions import stored_offset
from agent.judging.base import DetectorMeta, Evidence, Kind, Scope, TaskCase, Verdict
from agent.judging.reopening import DEAD_US
from agent.judging.segment_order import removed_segments
from agent.judging.upstream import TORN_DELETION, TORN_FILES
from agent.judging.vanished import vanished
from agent.judging.wording import checkpoint_of, where
from agent.layout.facts import Fact
from agent.layout.profile import Truth
from agent.quantities.changelog import is_real

QUIET_US = 5_000_000
"""A slow deletion removes a file at least every second (recorded: 0.3 to 1 s)."""

HELD_FOR_US = 60_000_000
"""A volume may show what a holder writes late: a network file system's attributes after up to a minute."""

META = DetectorMeta(
    id="torn-store",
    title="Files of a store are missing or damaged",
    mechanism=Mechanism.OFFSET_WITHOUT_DATA,
    level=Level.EXPOSURE,
    severity=Severity.CRITICAL,
    kind=Kind.CONDITION,
    scope=Scope.TASK,
    upstream=(TORN_FILES,),
    next_action=(
        "BEFORE the next start: keep a copy, then remove this task directory only, `.checkpoint` included: the start"
        " restores it in full."
    ),
    consequence="The store cannot be opened whole; up to 4.2 a start makes an empty one.",
    twin=Twin("N12, `cleanUp()` took everything within seconds", "benign-cleanup-call-3.9.2"),
)

_DAMAGED = (
    "Before the next start: check the volume (`dmesg`), keep a copy, then remove this task directory only,"
    " `.checkpoint` included; the start restores it in full."
)
_STOP_FIRST = "A process holds it: stop this instance first. " + _DAMAGED


def judge(case: TaskCase) -> Iterable[Verdict]:
    """Judge one task.

    Source:
        Utils.delete walks in directory order (all releases); docs/state-format.md#d8; recorded as `torn-clean-*`.
    """
    task = case.task
    if not task.exists or not _is_over(case, 0):
        return
    yield from _gone(case, task)
    for store in task.stores.values():
        if store.session is None and store.keeps_offsets:
            yield from _incomplete(case, task, store)
        for remains in store.remains.values():
            if not remains.expired and _is_over(case, remains.since_us):
                yield _left(case, task, store, remains)
        for database in store.databases.values():
            if database.missing and _is_over(case, database.missing_since_us):
                yield from _missing(case, task, store, database)
            if database.problems:
                yield from _damaged(case, task, store, database)
                yield from _elsewhere(task, store, database)
            elif database.unnamed and not database.missing:
                yield _unnamed(task, store, database)


def _missing(case: TaskCase, task: Task, store: Store, database: Database) -> Iterable[Verdict]:
    """Files that are named and not there; where none was ever seen, they may all lie on another path (`db_paths`)."""
    if database.is_elsewhere:
        return
    count, names = len(database.missing), ", ".join(database.missing[:3])
    what = f"its manifest names {'a file that is' if count == 1 else f'{count} files that are'} not there ({names})"
    if database.has_had_files:
        yield _verdict(case, task, store, database.seen_us, what)
        return
    what += "; unless a RocksDBConfigSetter puts all of them on another path"
    found = _verdict(case, task, store, database.seen_us, what)
    yield replace(found, severity=Severity.WARNING, confidence=Confidence.SUSPECTED)


def _elsewhere(task: Task, store: Store, database: Database) -> Iterable[Verdict]:
    """A remark: what is on another path is not read, so nothing that rests on its files is said."""
    away = [x for x in database.problems if problem_kind(x) == ELSEWHERE]
    if away:
        yield Verdict(
            subject=f"elsewhere {store.name}{'/' + database.segment if database.segment else ''}",
            opened_at_us=database.problem_since_us.get(away[0], database.seen_us),
            summary=(
                f"Task {task.id}: {len(away)} files of store {store.name} are on another path, as a RocksDBConfigSetter"
                f" wants it; they are not read, the first: {away[0]}."
            ),
            evidence=(Evidence(database.seen_us, away[0], database.path),),
            severity=Severity.INFO,
            confidence=Confidence.CONFIRMED,
            store=store.name,
            identity=store.identity,
            level=Level.EXPOSURE,
            affected=Affected.NO,
            next_action="Nothing: it is so by configuration. A loss in these files is not seen.",
        )


def _damaged(case: TaskCase, task: Task, store: Store, database: Database) -> Iterable[Verdict]:
    """Files that RocksDB refuses, or a manifest whose end is lost: RocksDB opens that one, at an earlier state.

    A record that is cut off may also be what a crash of the node left in the middle of a write. Nothing that Kafka
    Streams does leaves such files, so no issue of it is named.

    Source:
        VersionSet::Recover, log::Reader, BlockBasedTable::Open; each case tried with RocksDB 10.1.
    """
    lasting = database.lasting_problems(database.seen_us, for_us=QUIET_US)
    damage = [x for x in lasting if problem_kind(x) in DAMAGE]
    if not damage:
        return
    since_us = min(database.problem_since_us[x] for x in damage)
    is_held = database.lock in (LockState.HELD, LockState.UNKNOWN) or task.held is True
    if is_held and case.waited_us(since_us) < HELD_FOR_US:
        return
    is_refused = any(problem_kind(x) != CUT for x in damage)
    more = f" and {len(damage) - 1} more" if len(damage) > 1 else ""
    what = f"{damage[0]}{more}"
    if is_refused:
        means = "RocksDB refuses to open it or fails when it reads there"
    else:
        means = "a start opens it without what the lost end named, and up to 4.2 trusts the checkpoint all the same"
    yield Verdict(
        subject=f"damaged {store.name}{'/' + database.segment if database.segment else ''}@{task.incarnation}",
        opened_at_us=since_us,
        summary=f"Task {task.id}: store {store.name} is damaged: {what}; {means}.",
        evidence=tuple(Evidence(since_us, x, database.path) for x in damage[:3]),
        severity=Severity.WARNING,
        confidence=Confidence.CONFIRMED if is_refused and not is_held else Confidence.SUSPECTED,
        store=store.name,
        identity=store.identity,
        affected=Affected.NO,
        mechanism=Mechanism.DAMAGED_FILES if is_refused else Mechanism.OFFSET_WITHOUT_DATA,
        next_action=_STOP_FIRST if is_held else _DAMAGED,
    )


def _unnamed(task: Task, store: Store, database: Database) -> Verdict:
    """A whole database without IDENTITY: CURRENT, the manifest and the files that it names decide."""
    what = "IDENTITY is missing or says nothing, and everything that makes it a database is there"
    return Verdict(
        subject=f"unnamed {database.path}@{task.incarnation}",
        opened_at_us=database.found_us,
        summary=f"Task {task.id}: of store {store.name} {what}: RocksDB opens it and makes a new IDENTITY.",
        evidence=(Evidence(database.found_us, what, database.path),),
        severity=Severity.INFO,
        confidence=Confidence.CONFIRMED,
        store=store.name,
        identity=store.identity,
        affected=Affected.NO,
        mechanism=Mechanism.DAMAGED_FILES,
        next_action="Nothing: no data is missing. Verdicts that rest on when the store was made are less sure.",
    )


def _gone(case: TaskCase, task: Task) -> Iterable[Verdict]:
    """A checkpoint that names a store without files: the next start makes it empty and trusts the entry.

    On 4.3 such a file is one that 4.2 left: the first start moves its offsets into the stores. That was not run on
    a torn directory, so it is a suspicion.
    """
    fact = task.checkpoint
    if fact is None or task.held:
        return
    moved = case.says(Fact.OFFSETS_IN_STORE) is Truth.YES
    for one in vanished(case, task, fact):
        known = one.confidence is not Confidence.UNKNOWN
        if known and not one.is_seen and not _is_over(case, one.since_us):
            continue  # it may be about to be made, or copied to its place
        whom = f"store {one.store}" if one.store else "a global store"
        then = f": the next start would {'move it into' if moved else 'trust it for'} an empty store."
        yield Verdict(
            subject=f"gone@{task.incarnation}",
            opened_at_us=one.since_us,
            summary=f"Task {task.id}: its checkpoint says offset {one.offset} for {whom}, which {one.what}"
            + (then if known else "."),
            evidence=(Evidence(fact.written_us, f"offset {one.offset} of {whom}", checkpoint_of(task)),),
            severity=_severity(case, task, one.since_us, is_trusted=True) if known else Severity.INFO,
            confidence=Confidence.SUSPECTED if moved and known else one.confidence,
            store=one.store or None,
            affected=case.affected(TORN_FILES if moved else TORN_DELETION),
            next_action=_before_the_start(task),
        )


def _incomplete(case: TaskCase, task: Task, store: Store) -> Iterable[Verdict]:
    """4.3+: some segments went, and the offset of those that are left is trusted for all of them.

    Source:
        AbstractSegments.committedOffset and openExisting (4.3.0, 4.3.1): a segment that is not there is not missed.
    """
    gone, offset = list(removed_segments(task, store)), stored_offset(store)
    opened = [one.status == OPEN for one in segments_of(store) or ()]
    is_wiped = case.settings.exactly_once is not False and True in opened
    if not gone or not is_real(offset) or is_wiped:
        return
    names = " and ".join(sorted(str(x.segment) for x in gone))
    what = f"{names} went while no process held it; a start would read on from offset {offset} of those that are left"
    found = _verdict(case, task, store, max(x.ended_us for x in gone), what)
    yield replace(
        found,
        subject=f"segments@{task.incarnation}",
        severity=Severity.WARNING,
        confidence=Confidence.SUSPECTED,
    )


def _severity(case: TaskCase, task: Task, since_us: int, *, is_trusted: bool) -> Severity:
    """Grade it: critical once no process has held it for a minute and the next start would trust its offset.

    Source:
        ProcessorStateManager.initializeStoreOffsetsFromCheckpoint, GlobalStateManagerImpl.restoreState, up to 4.2: an
        entry is trusted whatever is there.
    """
    waits = task.held is not True and case.waited_us(since_us) >= DEAD_US
    old = case.says(Fact.OFFSETS_IN_STORE) is Truth.NO
    return Severity.CRITICAL if is_trusted and waits and old else Severity.WARNING


def _before_the_start(task: Task) -> str:
    return (
        f"BEFORE the next start: keep a copy of the task directory {task.path}, then remove that directory only,"
        " `.checkpoint` included: the start restores it in full. Up to 4.2 a start as it is makes an empty store and"
        " trusts the old checkpoint; on 4.3 it may fail once."
    )


def _is_over(case: TaskCase, last_us: int) -> bool:
    """Return whether no deletion can be going on: nothing happened for a while, or who was at it is dead.

    A deletion that an earlier agent saw may have gone on until this one began: its quiet counts from there.
    """
    walk = case.task.walk
    if walk is not None:
        if any(x.ended_us is not None and walk.last_us <= x.ended_us for x in case.application.lives):
            return True
        last_us = max(last_us, walk.last_us, case.inventory.started_us)
    return not last_us or case.waited_us(last_us) >= QUIET_US


def _left(case: TaskCase, task: Task, store: Store, remains: Remains) -> Verdict:
    left = "1 data file is left" if remains.files == 1 else f"{remains.files} data files are left"
    what = f"{left} without the files that make {'it' if remains.files == 1 else 'them'} a database"
    return _verdict(case, task, store, remains.since_us, what)


def _verdict(case: TaskCase, task: Task, store: Store, at_us: int, what: str) -> Verdict:
    fact = task.checkpoint
    entries = (
        []
        if fact is None
        else [*(x.offset for x in fact.foreign if task.is_global), fact.offsets.get(store.name)]
    )
    return Verdict(
        subject=f"incarnation {task.incarnation}",
        opened_at_us=at_us,
        summary=f"Task {task.id}: store {store.name} is torn: {what}.",
        evidence=(Evidence(at_us, what, where(task, store)),),
        severity=_severity(case, task, at_us, is_trusted=any(map(is_real, entries))),
        confidence=Confidence.CONFIRMED,
        store=store.name,
        identity=store.identity,
        affected=case.affected(TORN_FILES),
        next_action=_before_the_start(task),
    )
