"""Detector `torn-store`: files of a store are missing or damaged, and no deletion is going on.

Fires when a stable manifest names SST or blob files that are not there, or when data files are left without the files
that make them a database, or a checkpoint names a store whose directory is gone or empty, or (4.3 and later) single
segments of a windowed store were deleted while no process held it, and no deletion goes on: a deletion was killed half
way, or the volume lost files. A store that no agent saw is missed where its neighbours show that RocksDB kept it: the
same store in another task, its `.position`, its empty directory; a global store, where nothing else is on disk.
Fires when `CURRENT`, the manifest, an SST file or a blob file is damaged, or the manifest that `CURRENT` names is
missing, at two readings five seconds apart: the next start fails, or opens the store without what was lost. While a
process holds the store that is `suspected`, and reported after a minute.
Fires when the manifest is of an earlier time than `.checkpoint` (up to 4.2, at rest): a backup was put over it.
Critical where no process has taken the task for a minute and the next start would trust the checkpoint that still names
the store; from 4.3 on suspected, as a kill before the first flush loses the offset that is moved into the new store.
A whole database without IDENTITY is a remark: CURRENT, the manifest and the files that it names decide.
Stays quiet during a running deletion, for a compaction that races with the reading, for a manifest that is being
written, and for files that the application keeps on another path (`db_paths`), as far as that is known.

Source:
    Utils.delete walks in directory order (all releases); docs/state-format.md#d8; recorded as `torn-clean-*`.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property

from agent.contract.events import Affected, Confidence, Level, Severity
from agent.inventory.copied import times_are_copied
from agent.inventory.disk import LockState
from agent.inventory.model import CheckpointFact, Database, Remains, Store
from agent.inventory.observations import CUT, DAMAGE, ELSEWHERE, LaterFile, problem_kind
from agent.inventory.openings import segments_of
from agent.inventory.segments import OPEN
from agent.inventory.sessions import stored_offset
from agent.judging.base import DetectorMeta, Evidence, Fact, Kind, Mechanism, Remedy, TaskCase, Truth, Twin
from agent.judging.rule import Docket, Loudness, NamedStoreStory, Proof, Rule, derived, detector
from agent.judging.segment_loss import removed_segments
from agent.judging.upstream import TORN_FILES
from agent.judging.vanished import (
    COPYING,
    DELETING,
    QUIET_US,
    before_the_start,
    is_over,
    may_be_copied,
    severity_of,
)
from agent.judging.vanished import DOCKET as VANISHED
from agent.judging.wording import checkpoint_of
from agent.quantities.changelog import is_real

HELD_FOR_US = 60_000_000
"""A volume may show what a holder writes late: a network file system's attributes after up to a minute."""

META = DetectorMeta(
    id="torn-store",
    title="Files of a store are missing or damaged",
    mechanism=Mechanism.OFFSET_WITHOUT_DATA,
    level=Level.EXPOSURE,
    kind=Kind.CONDITION,
    upstream=(TORN_FILES,),
    remedy=Remedy.RESTORE,
    next_action=(
        "BEFORE the next start: keep a copy, then remove this task directory only, `.checkpoint` included: the start"
        " restores it in full."
    ),
    consequence="The store cannot be opened whole: a start makes an empty one, or fails.",
    twin=Twin("N12, `cleanUp()` took everything within seconds", "benign-cleanup-call-3.9.2"),
)

_OLD_DATA = "RocksDB opens the store as the backup had it, and the start trusts the newer offset"
_REFUSED = "RocksDB refuses the store at every start"
_UNTRUSTED = "a start may fail before one restores the task in full"
_DAMAGED = (
    "Before the next start: check the volume (`dmesg`), keep a copy, then remove this task directory only,"
    " `.checkpoint` included; the start restores it in full."
)
_STOP_FIRST = "A process holds it: stop this instance first. " + _DAMAGED
_NOT_SEEN = "Nothing: it is so by configuration. A loss in these files is not seen."
_LESS_SURE = "Nothing: no data is missing. Verdicts that rest on when the store was made are less sure."


class Flaw(NamedStoreStory):
    """Something is wrong with the files of a store: which episode it is, since when, and what."""

    episode: str
    since_us: int
    what: str
    subject = derived(lambda x: x.episode)
    opened_at_us = derived(lambda x: x.since_us)

    @property
    def offset(self) -> int | None:
        """What the checkpoint says of it; that of the global stores names their topics. None = nothing to trust."""
        fact = self.task.checkpoint
        offsets = [] if fact is None else [fact.offsets.get(self.store.name)]
        offsets += [x.offset for x in fact.foreign] if fact is not None and self.task.is_global else []
        return max((x for x in offsets if x is not None and is_real(x)), default=None)


class Torn(Flaw):
    """Files are missing: data files are left without the others, a manifest names some, or segments went."""

    quiet_us: int  # since when the deletion that may have taken them would be quiet; 0 = it is over
    # where it shows: what is left, a database, or nothing of the segments that went
    cause: Remains | Database | None
    affected = derived(lambda x: x.case.affected(TORN_FILES))

    @property
    def is_sure(self) -> bool:
        """Nothing else looks like it: what is left, or a file that was seen there before."""
        seen = isinstance(self.cause, Database) and self.cause.has_had_files
        return isinstance(self.cause, Remains) or seen

    @property
    def is_moved(self) -> bool:
        """From 4.3 on only the first start trusts a checkpoint of a file."""
        return self.severity is Severity.CRITICAL and self.case.says(Fact.OFFSETS_IN_STORE) is not Truth.NO

    @property
    def severity(self) -> Severity:
        """By what the checkpoint says of it."""
        return severity_of(self.case, self.since_us, is_trusted=self.offset is not None)


class Damaged(Flaw):
    """Files that RocksDB refuses, or a manifest whose end is lost: RocksDB opens that one, at an earlier state.

    A record that is cut off may also be what a crash of the node left in the middle of a write. Nothing that Kafka
    Streams does leaves such files, so no issue of it is named.

    Source:
        VersionSet::Recover, log::Reader, BlockBasedTable::Open; each case tried with RocksDB 10.1.
    """

    database: Database
    affected = Affected.NO
    opened_at_us = derived(
        lambda x: min((x.database.problem_since_us[y] for y in x.damage), default=x.since_us)
    )
    # What is lost at the end of a manifest was on disk, and an offset may say so.
    mechanism = derived(lambda x: Mechanism.DAMAGED_FILES if x.is_refused else Mechanism.OFFSET_WITHOUT_DATA)

    @cached_property
    def damage(self) -> list[str]:
        """What was damaged at two readings."""
        lasting = self.database.lasting_problems(self.database.seen_us, for_us=QUIET_US)
        return [x for x in lasting if problem_kind(x) in DAMAGE]

    @property
    def is_refused(self) -> bool:
        """RocksDB refuses it, or fails when it reads there."""
        return any(problem_kind(x) != CUT for x in self.damage)

    @property
    def is_held(self) -> bool:
        """A process has it open, or may have."""
        return self.database.lock in (LockState.HELD, LockState.UNKNOWN) or self.task.held is True


class Outdated(Flaw):
    """A backup of a running instance was put over a newer directory: its manifest is older than the checkpoint.

    Up to 4.2 a checkpoint is written when flush() has returned, so the manifest of that time knew what `later_file`
    finds; a first start on 4.3 moves its offset into the store. No margin is needed: a kill leaves what is younger,
    and rounding keeps the order of times.

    Source:
        ProcessorStateManager.flush before checkpoint in AbstractTask.maybeWriteCheckpoint, up to 2.5 in
        StreamTask.commit and StandbyTask.commit, in GlobalStateUpdateTask.flushState; RocksDBStore.flush waits.
    """

    database: Database
    later: LaterFile
    fact: CheckpointFact
    affected = Affected.NO
    opened_at_us = derived(lambda x: x.fact.written_us)
    mechanism = derived(lambda _: Mechanism.OFFSET_WITHOUT_DATA)


class Remark(Flaw):
    """Files that are on another path and so are not read, or a whole database without IDENTITY."""

    database: Database
    seen: Evidence
    step: str
    mechanism: Mechanism | None = None
    affected = Affected.NO


def _stores(case: TaskCase) -> Iterator[Store]:
    return iter(case.task.stores.values() if case.task.exists else ())


def _databases(case: TaskCase) -> Iterator[tuple[Store, Database]]:
    return ((store, x) for store in _stores(case) for x in store.databases.values())


def _torn(case: TaskCase) -> Iterator[Torn]:
    episode = f"incarnation {case.task.incarnation}"
    for store in _stores(case):
        yield from _incomplete(case, store)
        for x in store.remains.values():
            left = "1 data file is left" if x.files == 1 else f"{x.files} data files are left"
            what = f"{left}, the files that RocksDB needs to open it are gone"
            yield Torn(case, store, episode, x.since_us, what, x.since_us, x)
        for y in [one for one in store.databases.values() if one.missing]:
            many = "a file that is" if len(y.missing) == 1 else f"{len(y.missing)} files that are"
            unless = "; unless a RocksDBConfigSetter puts all of them on another path"
            what = f"its manifest names {many} not there ({', '.join(y.missing[:3])}){unless * (not y.has_had_files)}"
            yield Torn(case, store, episode, y.seen_us, what, y.missing_since_us, y)


def _incomplete(case: TaskCase, store: Store) -> Iterator[Torn]:
    """4.3+: some segments went, and the offset of those that are left is trusted for all of them.

    Source:
        AbstractSegments.committedOffset and openExisting (4.3.0, 4.3.1): a segment that is not there is not missed.
    """
    gone = list(removed_segments(case.task, store)) if store.keeps_offsets and store.session is None else []
    if gone:
        names, since_us = " and ".join(sorted(str(x.segment) for x in gone)), max(x.ended_us for x in gone)
        left = f"a start would read on from offset {stored_offset(store)} of those that are left"
        what = f"{names} went while no process held it; {left}"
        yield Torn(case, store, f"segments@{case.task.incarnation}", since_us, what, 0, None)


def _damaged(case: TaskCase) -> Iterator[Damaged]:
    for store, x in _databases(case):
        if any(problem_kind(y) in DAMAGE for y in x.problems):
            episode = f"damaged {_label(store, x)}@{case.task.incarnation}"
            yield Damaged(case, store, episode, x.seen_us, "", x)


def _outdated(case: TaskCase) -> Iterator[Outdated]:
    fact = case.task.checkpoint
    for store, x in _databases(case):
        if x.later is not None and fact is not None:
            episode = f"outdated {_label(store, x)}@{case.task.incarnation}"
            yield Outdated(case, store, episode, x.later.found_us, "", x, x.later, fact)


def _remarks(case: TaskCase) -> Iterator[Remark]:
    task = case.task
    for store, x in _databases(case):
        away = [y for y in x.problems if problem_kind(y) == ELSEWHERE]
        if away:
            says = (
                f"Task {task.id}: {len(away)} files of store {store.name} are on another path, as a RocksDBConfigSetter"
                f" wants it; they are not read, the first: {away[0]}."
            )
            seen, since_us = Evidence(x.seen_us, away[0], x.path), x.problem_since_us.get(away[0], x.seen_us)
            yield Remark(case, store, f"elsewhere {_label(store, x)}", since_us, says, x, seen, _NOT_SEEN)
        if x.unnamed and not x.problems:
            what = "IDENTITY is missing or says nothing, and everything that makes it a database is there"
            says = f"Task {task.id}: of store {store.name} {what}: RocksDB opens it and makes a new IDENTITY."
            seen, episode = Evidence(x.found_us, what, x.path), f"unnamed {x.path}@{task.incarnation}"
            yield Remark(case, store, episode, x.found_us, says, x, seen, _LESS_SURE, Mechanism.DAMAGED_FILES)


def _label(store: Store, database: Database) -> str:
    return f"{store.name}{'/' + database.segment if database.segment else ''}"


def _loudness_of_damage(x: Damaged, _: Proof | None) -> Loudness:
    confidence = Confidence.CONFIRMED if (x.is_refused and not x.is_held) else Confidence.SUSPECTED
    return Loudness(
        Severity.WARNING,
        confidence,
        next_action=_STOP_FIRST if x.is_held else _DAMAGED,
        remedy=Remedy.CHECK_FIRST,
    )


# What it says


def _summary_of_damage(x: Damaged, _: Proof | None) -> str:
    more = f" and {len(x.damage) - 1} more" if len(x.damage) > 1 else ""
    means = (
        "a start opens it without what the lost end named, and up to 4.2 trusts the checkpoint all the same"
    )
    if x.is_refused:
        means = "RocksDB refuses to open it or fails when it reads there"
    return f"{x.named} is damaged: {x.damage[0]}{more}; {means}."


def _otherwise(x: Torn) -> list[str]:
    """Say what a start does that finds it."""
    if isinstance(x.cause, Database):
        return [_REFUSED]
    # of the segments that are left, from 4.3 on
    is_trusted = x.offset is not None or is_real(stored_offset(x.store))
    return [] if is_trusted else [_UNTRUSTED]


TORN = Rule[Torn](
    "files of a store are missing",
    innocents={
        "the segment had expired": lambda x: isinstance(x.cause, Remains) and x.cause.expired,
        "all of its files lie on another path": lambda x: (
            isinstance(x.cause, Database) and x.cause.is_elsewhere
        ),
        "no offset of the segments that are left is trusted": lambda x: (
            x.cause is None and not is_real(stored_offset(x.store))
        ),
        "exactly-once wipes the segments that say open": lambda x: (
            x.cause is None
            and x.case.settings.exactly_once is not False
            and any(one.status == OPEN for one in segments_of(x.store) or ())
        ),
    },
    unknowns={DELETING: lambda x: not is_over(x.case, x.quiet_us)},
    loudness=lambda x, _: Loudness(
        x.severity if x.is_sure else Severity.WARNING,
        Confidence.CONFIRMED
        if x.is_sure and not (x.is_moved or may_be_copied(x.task, x.store, x.cause))
        else Confidence.SUSPECTED,
        next_action=before_the_start(x, *_otherwise(x)),
        remedy=Remedy.RESTORE,
    ),
    summary=lambda x, _: (
        f"{x.named} is torn: {x.what}.{COPYING if may_be_copied(x.task, x.store, x.cause) else ''}"
    ),
    evidence=lambda x, _: (Evidence(x.since_us, x.what, x.place),),
)

DAMAGED = Rule[Damaged](
    "files of a store are damaged",
    unknowns={
        DELETING: lambda x: not is_over(x.case, 0),
        "no two readings five seconds apart found it": lambda x: not x.damage,
        "a process is at it, and a volume may show late what it writes": lambda x: (
            x.is_held and x.case.waited_us(x.opened_at_us) < HELD_FOR_US
        ),
        "a copy of it is being made": lambda x: (
            x.database.heard
            and may_be_copied(x.task, x.store, x.database)
            and x.case.waited_us(x.database.touched_us) < HELD_FOR_US
        ),
    },
    loudness=_loudness_of_damage,
    summary=_summary_of_damage,
    evidence=lambda x, _: (Evidence(x.opened_at_us, y, x.database.path) for y in x.damage[:3]),
)

OUTDATED = Rule[Outdated](
    "the manifest of a store is of an earlier time than its checkpoint",
    innocents={
        "the offset is in the store (4.3 and later), and as old as its manifest": lambda x: (
            x.store.keeps_offsets
        ),
        "no offset of the store is trusted": lambda x: x.offset is None,
        "a kill left it: it is no older than the checkpoint": lambda x: (
            x.later.written_us >= x.fact.written_us
        ),
    },
    unknowns={
        "file times are those of a copy": lambda x: times_are_copied(x.task, x.fact.written_us),
        "a process may have it open": lambda x: x.task.held is True or x.database.lock is not LockState.FREE,
        DELETING: lambda x: not is_over(x.case, x.since_us),
    },
    loudness=lambda x, _: Loudness(
        severity_of(x.case, x.since_us, is_trusted=True),
        Confidence.SUSPECTED,
        next_action=before_the_start(x, _OLD_DATA),
        remedy=Remedy.RESTORE,
    ),
    summary=lambda x, _: (
        f"{x.named} is older than its checkpoint (offset {x.offset}): its manifest does not know"
        f" {x.later.name}, which is older than the checkpoint; a backup was probably put over a newer directory."
    ),
    evidence=lambda x, _: (
        Evidence(x.later.written_us, f"{x.later.name}, which its manifest does not know", x.database.path),
        Evidence(x.fact.written_us, f"checkpoint with offset {x.offset}", checkpoint_of(x.task)),
    ),
)

REMARK = Rule[Remark](
    "what is missing of a store is known, and harmless",
    innocents={
        "beside IDENTITY other files are missing: the store is torn": lambda x: (
            x.mechanism is not None and bool(x.database.missing)
        )
    },
    unknowns={DELETING: lambda x: not is_over(x.case, 0)},
    loudness=lambda x, _: Loudness(Severity.INFO, Confidence.CONFIRMED, next_action=x.step),
    summary=lambda x, _: x.what,
    evidence=lambda x, _: (x.seen,),
)

DETECTOR = detector(
    META,
    VANISHED,
    Docket(_torn, (TORN,)),
    Docket(_damaged, (DAMAGED,)),
    Docket(_outdated, (OUTDATED,)),
    Docket(_remarks, (REMARK,)),
)
