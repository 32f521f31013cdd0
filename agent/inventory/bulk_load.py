"""Up to 2.5 a restoration opens its store in another mode, and again when it ends: what was written in between.

Source:
    RocksDBStore.toggleDbForBulkLoading, StreamTask.commit and close, AssignedTasks.commit, suspend and close,
    AbstractStateManager.reinitializeStateStoresForPartitions (2.0.1, 2.1.1).
"""

from __future__ import annotations

from agent.inventory.model import CHECKPOINTS_KEPT, CheckpointFact, Session, Store, Task

COMMITS_COUNTED = 4
APART_US = 10_000_000
"""What ends a restoring task writes, too: a revocation, the next one, the close, each up to three times within a
second (recorded: three in 0.14 s). Four that are so far apart are of a task that runs."""


def note_bulk_load(store: Store) -> None:
    """Take the mode that the store was opened in last; what is counted begins again with each opening.

    A windowed store is in it as long as all of its segments are.
    """
    session = store.session
    if session is None:
        return
    databases = store.databases.values()
    is_loading = all(x.bulk_loading and x.reopened_us for x in databases)
    since_us = max((x.reopened_us[-1] for x in databases), default=0) if is_loading else 0
    if since_us != session.bulk_load_us:
        session.bulk_load_us, session.bulk_load_commits = since_us, ()


def note_commit(task: Task, fact: CheckpointFact) -> None:
    """Count a checkpoint for every store that is open for a restoration.

    The wipe of another store of the task writes what the opening read, or less: that is no commit. Up to 2.5.0 new
    segments of a standby are opened in that mode, too, and nothing ends it: it commits on (getWriteBatches, 2.1.1).
    """
    for store in task.stores.values():
        session = store.session
        if session is None or store.segmented or not 0 < session.bulk_load_us <= fact.written_us:
            continue
        counted = session.bulk_load_commits
        is_apart = not counted or fact.written_us - counted[-1] >= APART_US
        if len(counted) < COMMITS_COUNTED and is_apart and _is_news(task, session, fact):
            session.bulk_load_commits += (fact.written_us,)


def _is_news(task: Task, session: Session, fact: CheckpointFact) -> bool:
    """Return whether it holds an entry that was not there when the store was opened; not known: it does not."""
    before = [x for x in task.checkpoints if x is not fact and x.written_us < session.opened_us]
    if not before and len(task.checkpoints) >= CHECKPOINTS_KEPT:
        return False
    is_read = bool(before) and before[-1].incarnation == fact.incarnation
    read = _entries(before[-1]) if is_read else set()
    return not _entries(fact) <= read


def _entries(fact: CheckpointFact) -> set[tuple[object, int]]:
    own: set[tuple[object, int]] = set(fact.offsets.items())
    return own | {((x.topic, x.partition), x.offset) for x in fact.foreign}
