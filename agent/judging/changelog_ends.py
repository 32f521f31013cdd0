"""Where the changelog of a store ends before what the store holds, by what its replay gave back.

An offset out of range is dropped, and the changelog read again from its start (2.6 and later, at-least-once); what
that ends with, or what no longer moves, is compared with what the store had. From 3.8 on only the restore consumer
drops offsets, and only where a position is out of range; it drops those of all stores of the task. What a revived task
finds in the files of its process shows when it opens them again.

Source:
    DefaultStateUpdater.removeCheckpointForCorruptedTask is the only caller of markChangelogAsCorrupted (4.3.1; 3.9.2 to
    4.2.1: beside a branch without state updater). StoreChangelogReader.pollRecordsFromRestoreConsumer, where a position
    is out of range, is the only one whose TaskCorruptedException leads there under at-least-once. A corrupted store is
    left out of the checkpoint, or its `offsets` emptied (ProcessorStateManager.checkpoint, 3.9.2; commit, 4.3.1);
    an offset that is only unknown is written as -4. Recorded on 3.9.2 and 4.3.1: opened again 0.1 s later.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from itertools import pairwise

from agent.inventory.model import CheckpointFact, Session, Store, Task
from agent.inventory.settings import COMMIT_INTERVAL_MS
from agent.judging.base import Fact, TaskCase, Truth
from agent.judging.falls import (
    Short,
    evidence,
    is_above,
    is_one_opening,
    is_same_store,
    loudness,
    lower_entries,
    session_at,
    summary,
)
from agent.judging.reopening import present_sessions
from agent.judging.rule import Docket, Proof, Rule
from agent.judging.wording import checkpoint_of, where
from agent.layout.checkpoint import UNKNOWN_OFFSET
from agent.layout.names import CHANGELOG_SUFFIX
from agent.quantities.verdicts import holds_uncommitted

UNCHANGED_US = 60_000_000
"""A replay writes a checkpoint at the commit interval while it moves by 10,000 records; one that has not moved for two
intervals, and a minute, is not on its way."""
ENDS_TWICE_WITHIN_US = 1_000_000
"""From 3.9 on the end of a restoration writes the same checkpoint twice (recorded: 30 to 110 ms apart)."""
DROPPED_WITHIN_US = 10_000_000
"""The stores of a revived task are opened one after the other. No source for the number: far more than that takes."""
GOES_ON_US = 10_000_000
"""A task that is let go or handed over while it is read writes a checkpoint, too, and is closed right after it. No
source for the number: far more than a close takes."""
LATE_PUTS = 100
"""No source: what is flushed while a checkpoint is written counts as before it; so few decide nothing."""


class LeftBehind(Short):
    """A checkpoint below an earlier one of the same incarnation, after an opening that trusted none."""

    fact: CheckpointFact

    @cached_property
    def ends_replay(self) -> bool:
        """It was written at the end of a restoration, and the task went on."""
        return _ends_replay(self.case, self.task, self.store, self.fact)


class Dropped(Short):
    """4.3+: an offset out of range was removed from the store, and the store opened again without one.

    A changelog of a key-value store is compacted: its beginning does not move, so only its end can have. How far it has
    grown since says nothing.
    """

    after: Session

    @property
    def others(self) -> tuple[str, ...]:
        """Stores of which the same can be true instead: offsets are dropped task by task."""
        return tuple(
            x.name
            for x in self.task.stores.values()
            if x is not self.store
            and any(abs(y.opened_us - self.ends_us) <= DROPPED_WITHIN_US for _, y in drops_from_store(x))
        )


class Outrun(Short):
    """An empty changelog that counted as restored, and has grown past the old offset since (up to 4.2)."""

    session: Session

    @property
    def compares(self) -> bool:
        """The opening trusted an offset, and the checkpoint says one."""
        trusted = self.session.offset_at_open
        return trusted is not None and trusted >= 0 and self.ends >= 0

    @cached_property
    def outruns(self) -> Truth:
        """Whether more was put since than the changelog grew by; every put since is a record beyond the old offset.

        YES: even if every offset since was a record of the largest kind. MAYBE where some may have been flushed late.
        """
        mark, began = self.session.last, self.session.puts_at_open
        if mark is None or mark.unsure:
            return Truth.MAYBE
        puts = max(mark.puts - began - LATE_PUTS, 0)
        return holds_uncommitted(self.store, self.case.profile, puts, self.held, self.ends)


AT_ONCE_US = 1_000_000  # no process is started again within a second
REVIVED_WITHIN_US = 30_000_000
"""A task is revived at the next poll, after the other corrupted ones; a rebalance gives one back later. No source for
the number: between the 0.1 s that were recorded and a rebalance."""


def is_revived(before: Session, after: Session) -> bool:
    """Return whether one process closed a store and opened it again at once, as it does with a corrupted task."""
    if before.released_us is None:
        return False
    gap_us = after.opened_us - before.released_us
    return gap_us <= AT_ONCE_US or (before.outlived is True and gap_us <= REVIVED_WITHIN_US)


def begins_fixed(task: Task) -> bool:
    """Return whether no changelog of a task, as far as disk shows, loses its beginning to retention.

    Those of windowed stores do, and so do source topics that stand in for a changelog.
    """
    if any(x.segmented or any(y.by_source_topic for y in x.sessions) for x in task.stores.values()):
        return False
    return not any(
        task.partition in (None, entry.partition) and not entry.topic.endswith(CHANGELOG_SUFFIX)
        for fact in task.checkpoints
        for entry in fact.foreign
    )


def drops_from_store(store: Store) -> Iterator[tuple[Session, Session]]:
    """4.3+: list (session, the next one) where the first found an offset in the store and emptied its family."""
    for before, after in pairwise(present_sessions(store)):
        held = before.stored_offset_at_open or 0
        emptied = before.closed_with_offset is None and after.stored_offset_at_open is None
        if held > 0 and emptied and is_revived(before, after):
            yield before, after


def is_dropped_with_checkpoint(case: TaskCase, task: Task, store: Store, fact: CheckpointFact) -> bool:
    """Return whether a checkpoint follows a drop that only a changelog that ends too early explains (3.8+)."""
    by_restoring_only = case.says(Fact.STATE_UPDATER) is Truth.YES and case.settings.exactly_once is False
    if not by_restoring_only or not begins_fixed(task):
        return False
    return any(
        after.opened_us <= fact.written_us
        and (after.released_us is None or fact.written_us <= after.released_us)
        and after.offset_at_open is None
        and is_revived(before, after)
        and _lost_checkpoint_above(task, store, before, fact)
        for before, after in pairwise(case.once(present_sessions, store))
    )


def _lost_checkpoint_above(task: Task, store: Store, before: Session, fact: CheckpointFact) -> bool:
    """Return whether the checkpoint was deleted while a session held the store, and was above a later one."""
    return any(
        x.deleted
        and x.incarnation == fact.incarnation
        and before.opened_us <= (x.ended_us or 0) <= (before.released_us or 0)
        and is_above(x.offsets.get(store.name), max(fact.offsets[store.name], 0))
        for x in task.checkpoints
    )


def _keeps_files(case: TaskCase) -> bool:
    """Return whether an offset out of range is dropped, and the files kept."""
    return not case.task.is_global and case.says(Fact.WIPE_UNDER_ALOS) is Truth.NO


def _left_behind(case: TaskCase) -> Iterator[LeftBehind]:
    task = case.task
    if not _keeps_files(case) or case.settings.exactly_once is True:
        return
    lower = case.once(lower_entries, task)
    for store in task.stores.values():
        for fact in task.checkpoints if store.name in lower else ():
            ends = fact.offsets.get(store.name)
            held = _held_before(task, store, fact) if ends is not None else None
            if ends is not None and held is not None and fact.incarnation == task.incarnation:
                said = held.offsets[store.name], held.written_us, ends, fact.written_us, checkpoint_of(task)
                yield LeftBehind(case, store, *said, fact)


def _dropped(case: TaskCase) -> Iterator[Dropped]:
    task = case.task
    if _keeps_files(case) and case.settings.exactly_once is False and begins_fixed(task):
        for store in task.stores.values():
            for before, after in drops_from_store(store):
                held, place = before.stored_offset_at_open or 0, where(task, store)
                said = held, before.opened_us, UNKNOWN_OFFSET, after.opened_us, place
                yield Dropped(case, store, *said, after)


def _outrun(case: TaskCase) -> Iterator[Outrun]:
    if _keeps_files(case) and case.says(Fact.OFFSETS_IN_STORE) is Truth.NO:
        for store in case.task.stores.values():
            for x in case.once(present_sessions, store):
                if x.last is not None:
                    held, place = x.offset_at_open or 0, checkpoint_of(case.task)
                    yield Outrun(case, store, held, x.opened_us, x.last.offset, x.last.at_us, place, x)


def _unmoved_us(case: TaskCase, store: Store, fact: CheckpointFact) -> int:
    """Return for how long a session's checkpoint was its last one: a replay would have written more."""
    left_us = _held_on_us(case, store, fact)
    return left_us if fact.ended_us is None else min(left_us, fact.ended_us - fact.written_us)


def _held_on_us(case: TaskCase, store: Store, fact: CheckpointFact) -> int:
    """Return how long the store was held after a checkpoint; 0 if it was not, or is not known for the same store."""
    session = session_at(store, fact.written_us)
    if session is None or session.created or session.wiped:
        return 0
    return max((case.now_us if session.released_us is None else session.released_us) - fact.written_us, 0)


def _went_on(case: TaskCase, task: Task, store: Store, fact: CheckpointFact) -> bool:
    """Return whether the task was kept after a checkpoint: for long enough, or until its offset had moved further."""
    held_us = _held_on_us(case, store, fact)
    further = any(
        0 < x.written_us - fact.written_us <= held_us
        and x.offsets.get(store.name, 0) > fact.offsets[store.name]
        for x in task.checkpoints
    )
    return held_us >= GOES_ON_US or (held_us > 0 and further)


def _ends_replay(case: TaskCase, task: Task, store: Store, fact: CheckpointFact) -> bool:
    """Return whether a checkpoint was written at the end of a restoration, and the task went on.

    Before the first batch there is nothing to write about, so "unknown" is the end of an empty changelog.
    """
    if not _went_on(case, task, store, fact):
        return False
    if fact.offsets[store.name] < 0:
        return case.says(Fact.CHECKPOINT_AT_RESTORE_END_ALOS) is Truth.YES
    return any(
        x.offsets == fact.offsets and 0 < x.written_us - fact.written_us <= ENDS_TWICE_WITHIN_US
        for x in task.checkpoints
    )


def _held_before(task: Task, store: Store, fact: CheckpointFact) -> CheckpointFact | None:
    """The checkpoint of this incarnation with the highest offset before another one."""
    known = [
        x
        for x in task.checkpoints
        if x.written_us < fact.written_us
        and x.incarnation == fact.incarnation
        and x.offsets.get(store.name, 0) > 0
        and is_same_store(store, x)
    ]
    return max(known, key=lambda x: x.offsets[store.name], default=None)


def _may_be_on_its_way(x: LeftBehind) -> bool:
    """A replay that goes on would have written more by now."""
    interval_ms = x.case.settings.number("commit_interval_ms") or COMMIT_INTERVAL_MS[False]
    return not x.ends_replay and _unmoved_us(x.case, x.store, x.fact) < max(
        UNCHANGED_US, 2 * interval_ms * 1_000
    )


def _was_dropped(x: LeftBehind) -> Proof | None:
    """The process itself had dropped the offset, and the replay ended below it (3.8+)."""
    proven = x.ends_replay and is_dropped_with_checkpoint(x.case, x.task, x.store, x.fact)
    return Proof("the replay of a dropped offset ended below it") if proven else None


_WAS_OUT_OF_RANGE = (
    "which then was out of range: the offset was removed, and the changelog is read again from its start over what the"
    " store holds"
)

LEFT_BEHIND = Rule[LeftBehind](
    "a replay from the start of the changelog ended below what the store had",
    innocents={
        "the replay came as far as the store was": lambda x: not is_above(x.held, max(x.ends, 0)),
        "all records of a windowed store have expired from its changelog": lambda x: (
            x.store.segmented and x.ends < 0
        ),
    },
    unknowns={"the replay may be on its way": _may_be_on_its_way},
    proofs=(_was_dropped,),
    loudness=loudness,
    summary=lambda x, _: summary(
        x, f"and after it was read again from its start the changelog gave {x.gave}"
    ),
    evidence=evidence,
)

DROPPED = Rule[Dropped](
    "an offset that was out of range was removed from the store",
    unknowns={
        "the store may be let go at once": lambda x: (
            x.after.released_us is None and x.case.waited_us(x.after.opened_us) < GOES_ON_US
        )
    },
    loudness=loudness,
    summary=lambda x, _: summary(x, _WAS_OUT_OF_RANGE),
    evidence=evidence,
)

OUTRUN = Rule[Outrun](
    "far more was put since than the offset advanced",
    innocents={
        "the store was made by that opening": lambda x: x.session.created,
        "the store was opened again since, and is replayed": lambda x: (
            not is_one_opening(x.store, x.session, x.ends_us)
        ),
        "no offset was trusted, or none is said": lambda x: not x.compares,
        "hardly anything was put since": lambda x: x.outruns is Truth.NO,
    },
    unknowns={
        "before a clean close a flush seems to have come earlier": lambda x: x.session.closed is not True,
        "the changelog may have given as much": lambda x: x.outruns is Truth.MAYBE,
    },
    loudness=loudness,
    summary=lambda x, _: summary(x, f"and with far more puts since than offsets the changelog gave {x.gave}"),
    evidence=evidence,
)

DOCKETS = (Docket(_left_behind, (LEFT_BEHIND,)), Docket(_dropped, (DROPPED,)), Docket(_outrun, (OUTRUN,)))
