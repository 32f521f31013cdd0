"""Offsets that a task dropped because one was out of range: at-least-once keeps the files, and reads again.

From 3.8 on only the restore consumer drops offsets, and only where a position is out of range; it drops those of all
stores of the task. What a revived task finds in the files of its process shows when it opens them again.

Source:
    DefaultStateUpdater.removeCheckpointForCorruptedTask is the only caller of markChangelogAsCorrupted (4.3.1; 3.9.2 to
    4.2.1: beside a branch without state updater). StoreChangelogReader.pollRecordsFromRestoreConsumer, where a position
    is out of range, is the only one whose TaskCorruptedException leads there under at-least-once. A corrupted store is
    left out of the checkpoint, or its `offsets` emptied (ProcessorStateManager.checkpoint, 3.9.2; commit, 4.3.1);
    an offset that is only unknown is written as -4. Recorded on 3.9.2 and 4.3.1: opened again 0.1 s later.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from agent.inventory.model import CheckpointFact, Session, Store, Task
from agent.judging.base import TaskCase
from agent.judging.falls import is_above
from agent.judging.reopening import present_sessions
from agent.layout.facts import Fact
from agent.layout.names import CHANGELOG_SUFFIX
from agent.layout.profile import Truth

AT_ONCE_US = 1_000_000
"""No process is started again within a second."""
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
    stores = task.stores.values()
    if any(x.segmented or any(y.by_source_topic for y in x.sessions) for x in stores):
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
