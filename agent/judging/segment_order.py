"""Segments of a windowed store that went before their time, while no process held it."""

from __future__ import annotations

from collections.abc import Iterator

from agent.inventory.model import PastDatabase, Shape, Store, Task


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
