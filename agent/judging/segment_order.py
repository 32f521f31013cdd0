"""Segments of a windowed store that went before their time.

A running store drops all that are older than the retention, oldest first; one that no process has open drops none.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from agent.inventory.disk import LockState
from agent.inventory.model import Database, PastDatabase, Shape, Store, Task
from agent.judging.base import AgentCase

SETTLED_US = 10_000_000
"""A deletion of the whole store removes its segments in any order, one after the other (recorded: up to 1 s a file)."""

REPLACED_WITHIN_US = 100_000
"""Both times are that of the new database's first file; half made, the old one was read once at most."""

_OF_ANOTHER_HAND = (Shape.CLEANER_WALK, Shape.VANISHED_UNSEEN)
"""No running store dropped these: no process held it, or no agent watched, and an older copy may have been put back."""

_STARTS = re.compile(r"\.(\d+)\Z", re.ASCII)


def dropped_segments(case: AgentCase, store: Store) -> Iterator[tuple[PastDatabase, Database]]:
    """List (segment that is gone, an older one that was there and stayed) of a store that a process has open again.

    Segments with an older spelling of their names are left out: an opening renames them. So is an older one that was
    first read when the other was gone: a volume that was replaced brings it.

    Source:
        AbstractSegments.cleanupExpiredSegments (3.9.2, 4.3.1), Segments.cleanupEarlierThan (2.0.1).
    """
    if not store.segmented or store.lock is not LockState.HELD:
        return
    for gone in store.past:
        starts = _start(gone.segment)
        if starts is None or case.waited_us(gone.ended_us) < SETTLED_US or gone.identity in store.identities:
            continue
        if gone.shape in _OF_ANOTHER_HAND or _was_half_made(store, gone):
            continue
        older = [
            x
            for x in store.databases.values()
            if (begins := _start(x.segment)) is not None and begins < starts and 0 < x.born_us < gone.ended_us
        ]
        older = [x for x in older if x.found_us < gone.ended_us]
        older = [x for x in older if not _was_replaced(store, x, gone.ended_us)]
        if older:
            yield gone, max(older, key=lambda x: _start(x.segment) or 0)


def _was_half_made(store: Store, gone: PastDatabase) -> bool:
    """Return whether an opening replaced a database that a kill had left half made: nothing was ever flushed to it.

    Source: RocksDB's DB::Open makes a new one where there is no CURRENT; seen live on 4.3.1.
    """
    if gone.puts or gone.unread or (gone.released_us or 0) <= gone.born_us:
        return False  # data, or the process that made it took it away itself
    return any(
        x.segment == gone.segment and abs(x.born_us - gone.ended_us) <= REPLACED_WITHIN_US
        for x in store.databases.values()
    )


def _was_replaced(store: Store, database: Database, at_us: int) -> bool:
    """Return whether another segment of that name was there until then: a copy that took its place keeps its times."""
    return any(x.segment == database.segment and x.ended_us >= at_us - SETTLED_US for x in store.past)


def removed_segments(task: Task, store: Store) -> Iterator[PastDatabase]:
    """List segments that were deleted while no process held the store, and others of it were left.

    A recursive deletion did that, of which the rest did not come: it was killed, or another hand took only these.
    """
    if not store.segmented or not store.databases:
        return
    for gone in store.past:
        is_removed = gone.shape is Shape.CLEANER_WALK and gone.task_incarnation == task.incarnation
        is_there = gone.segment in store.databases
        left = any(0 < x.born_us < gone.ended_us for x in store.databases.values())
        if gone.segment is not None and is_removed and left and not is_there:
            yield gone


def _start(segment: str | None) -> int | None:
    match = _STARTS.search(segment or "")
    return None if match is None else int(match[1])
