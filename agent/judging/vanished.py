"""Stores that a checkpoint names and that are not on disk: what shows that a directory should be there. Pure.

A custom store has no directory of RocksDB, and a windowed one may have no segment. Its neighbours decide: the same
store in another task of the application, a file that only RocksDB's stores have, or what is left of their directories.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from agent.contract.events import Confidence
from agent.inventory.blindness import is_blind
from agent.inventory.model import Application, CheckpointFact, Shape, Store, Task
from agent.judging.base import TaskCase
from agent.layout import names
from agent.quantities.changelog import is_real

_WITHOUT_STORES = frozenset({names.LOCK_FILE, names.CHECKPOINT_FILE})


@dataclass(frozen=True, slots=True)
class Vanished:
    """A store that a checkpoint names and that has no database.

    Args of the dataclass:
        store: Its name; empty for a global store, which a checkpoint names by its topic.
        offset: What the checkpoint says.
        since_us: Since when.
        what: What is in its place, for a sentence.
        confidence: That it was there; UNKNOWN = it may be none of RocksDB's, or have nothing to hold.
        is_seen: Its end was seen.
    """

    store: str
    offset: int
    since_us: int
    what: str
    confidence: Confidence
    is_seen: bool = False


def vanished(case: TaskCase, task: Task, fact: CheckpointFact) -> Iterator[Vanished]:
    """List what a task's checkpoint names without a database, and without remains of one.

    Source:
        RocksDBStore.openDB makes `rocksdb/STORE`, AbstractSegments.openExisting the directory of a windowed store, and
        neither removes it while the checkpoint stays. OffsetCheckpoint.write (3.2 to 4.2) leaves no `STORE.position`
        without a put.
    """
    if task.is_global:
        yield from _of_global(case, task, fact)
        return
    for name, offset in fact.offsets.items():
        store = task.stores.get(name)
        if is_real(offset) and not _is_there(store):
            yield _judged(case, task, fact, name, offset)


def _judged(case: TaskCase, task: Task, fact: CheckpointFact, name: str, offset: int) -> Vanished:
    store, bare_us = task.stores.get(name), task.bare.get(name)
    if store is not None and _was_removed(task, store):
        what = "has no directory" if bare_us is None else "has an empty directory"
        return Vanished(name, offset, store.past[-1].ended_us, what, Confidence.CONFIRMED, is_seen=True)
    if bare_us is not None:
        since_us = max(fact.seen_us, bare_us)
        return Vanished(name, offset, since_us, "has an empty directory", Confidence.CONFIRMED)
    if _is_unread(case, task, name):
        what = "was not read; whether it is there is unknown"
        return Vanished(name, offset, fact.seen_us, what, Confidence.UNKNOWN)
    if f"{name}{names.POSITION_SUFFIX}" in task.names:
        place = "no segment" if name in task.names else "no directory"
        what = f"has {place}, and {name}{names.POSITION_SUFFIX} shows that it was put to"
        return Vanished(name, offset, fact.seen_us, what, Confidence.SUSPECTED)
    other = case.once(_homes, case.application).get(name)
    if other is not None and name in task.names:
        what = f"has no segment, and task {other} has some; unless all of its records have expired"
        return Vanished(name, offset, fact.seen_us, what, Confidence.SUSPECTED)
    if other is not None:
        what = f"has no directory, and task {other} has that store"
        return Vanished(name, offset, fact.seen_us, what, Confidence.SUSPECTED)
    what = "has no directory; unknown: it may be a custom store, or a windowed one whose records have all expired"
    return Vanished(name, offset, fact.seen_us, what, Confidence.UNKNOWN)


def _of_global(case: TaskCase, task: Task, fact: CheckpointFact) -> Iterator[Vanished]:
    """Global stores are named by their topics: which store an entry means, its files show, or nothing does.

    Source:
        GlobalStateManagerImpl.checkpoint writes persistent stores only; each has its own topic.
    """
    offset = max((x.offset for x in fact.foreign), default=0)
    if not is_real(offset):
        return
    suffix = names.POSITION_SUFFIX
    put_to = {x.removesuffix(suffix) for x in task.names if x.endswith(suffix)}
    gone = {name for name, store in task.stores.items() if not _is_there(store)}
    removed = {name for name in gone if _was_removed(task, task.stores[name])} | set(task.bare)
    missed = sorted(
        removed | {x for x in put_to if not _is_there(task.stores.get(x)) and x not in task.names}
    )
    if _is_unread(case, task):
        return
    for name in missed:
        store, is_sure = task.stores.get(name), name in removed
        is_seen = store is not None and bool(store.past)
        seen_us = store.past[-1].ended_us if store is not None and store.past else fact.seen_us
        what = "has an empty directory" if name in task.bare else "has no directory"
        if not is_sure:
            what += f", and {name}{suffix} shows that it was put to"
        sure = Confidence.CONFIRMED if is_sure else Confidence.SUSPECTED
        yield Vanished(name, offset, max(seen_us, task.bare.get(name, 0)), what, sure, is_seen=is_seen)
    if missed or any(_is_there(store) for store in task.stores.values()):
        return
    left = {x for x in task.names if not x.endswith(names.TEMP_SUFFIX)} - _WITHOUT_STORES
    if not left - {names.ROCKSDB_DIRECTORY}:
        what = "is not on disk, and nothing else is"
        yield Vanished("", offset, fact.seen_us, what, Confidence.SUSPECTED)
    else:
        what = "has no directory of RocksDB; unknown: it may be a custom store"
        yield Vanished("", offset, fact.seen_us, what, Confidence.UNKNOWN)


def _is_there(store: Store | None) -> bool:
    return store is not None and bool(store.databases or store.remains)


def _is_unread(case: TaskCase, task: Task, store: str | None = None) -> bool:
    """Return whether a part of the task's directory cannot be read now: what is not seen there may be there."""
    return is_blind(case.inventory, case.application.id, task.id, case.now_us - 1, case.now_us + 1, store)


def _was_removed(task: Task, store: Store) -> bool:
    """Return whether the directory was there and went.

    A key-value store always has one, but a windowed store without live records has no segment: it counts only if
    a cleaner took its last one in this life of the task.
    """
    if not store.past or not store.segmented:
        return bool(store.past)
    before = store.past[-1]
    return before.shape is Shape.CLEANER_WALK and before.task_incarnation == task.incarnation


def _homes(application: Application) -> dict[str, str]:
    """Find for each store on RocksDB a task that has it."""
    return {
        store.name: task.id
        for task in application.tasks.values()
        if task.exists and not task.is_global
        for store in task.stores.values()
        if _is_there(store)
    }
