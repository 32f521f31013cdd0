"""Stores that a checkpoint names and that are not on disk: what shows that a directory should be there. Pure.

A custom store has no directory of RocksDB, and a windowed one may have no segment. Its neighbours decide: the same
store in another task of the application, a file that only RocksDB's stores have, or what is left of their directories.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from agent.contract.events import Confidence, Severity
from agent.inventory.blindness import is_blind
from agent.inventory.copied import NOT_OVER_US
from agent.inventory.model import Application, CheckpointFact, Database, Remains, Shape, Store, Task
from agent.judging.base import Evidence, Fact, Remedy, TaskCase, Truth
from agent.judging.reopening import DEAD_US
from agent.judging.rule import Docket, Loudness, Proof, Rule, TaskStory, derived
from agent.judging.upstream import TORN_DELETION, TORN_FILES
from agent.judging.wording import checkpoint_of
from agent.layout import names
from agent.quantities.changelog import is_real

QUIET_US = 5_000_000  # a slow deletion removes a file at least every second (recorded: 0.3 to 1 s)
_WITHOUT_STORES = frozenset({names.LOCK_FILE, names.CHECKPOINT_FILE})
_BEFORE_THE_START = (
    "BEFORE the next start: keep a copy of the task directory {path}, then remove that directory only,"
    " `.checkpoint` included: the start restores it in full. Without that, {otherwise}."
)
_TRUSTED = "the start makes an empty store and trusts the old offset"
_UNREAD = "was not read; whether it is there is unknown"
_LOOK_AGAIN = "Make its directory readable. Until then nothing is decided."
_ANOTHER_KIND = (
    "Find out what kind of store it is. A custom store, or a windowed store without live records, has no directory of"
    " RocksDB: then there is nothing to do. If it is a key-value store of RocksDB, its files are lost. "
)
COPYING = " Its directory was changed less than a minute before: if a copy is being made, look again when it is done."


class Vanished(TaskStory):
    """A store that a checkpoint names and that has no database."""

    fact: CheckpointFact  # the checkpoint
    store: str  # its name; empty for a global store, which a checkpoint names by its topic
    offset: int  # what the checkpoint says
    since_us: int  # since when
    what: str  # what is in its place, for a sentence
    # that it was there; UNKNOWN = it may be none of RocksDB's, or have nothing to hold
    confidence: Confidence
    is_seen: bool = False  # its end was seen
    may_be_copied: bool = False  # its directory is empty, and a copy of the task may still be made
    subject = derived(lambda x: f"gone@{x.task.incarnation}")
    opened_at_us = derived(lambda x: x.since_us)
    names_store = derived(lambda x: x.store or None)
    # Two faults make the same of it.
    affected = derived(lambda x: x.case.affected(TORN_FILES if x.is_moved else TORN_DELETION))

    @property
    def is_moved(self) -> bool:
        """On 4.3 such a file is one that 4.2 left: the first start moves its offsets into the stores."""
        return self.case.says(Fact.OFFSETS_IN_STORE) is Truth.YES

    @property
    def is_known(self) -> bool:
        """It is one of RocksDB's."""
        return self.confidence is not Confidence.UNKNOWN


def vanished(case: TaskCase) -> Iterator[Vanished]:
    """List what a task's checkpoint names without a database, and without remains of one.

    Source:
        RocksDBStore.openDB makes `rocksdb/STORE`, AbstractSegments.openExisting the directory of a windowed store, and
        neither removes it while the checkpoint stays. OffsetCheckpoint.write (3.2 to 4.2) leaves no `STORE.position`
        without a put.
    """
    task, fact = case.task, case.task.checkpoint
    if fact is None or not task.exists:
        return
    if task.is_global:
        yield from _of_global(case, task, fact)
        return
    for name, offset in fact.offsets.items():
        if not _is_there(task.stores.get(name)):
            yield _judged(case, task, fact, name, offset)


def _judged(case: TaskCase, task: Task, fact: CheckpointFact, name: str, offset: int) -> Vanished:
    store, bare_us = task.stores.get(name), task.bare.get(name)
    other = case.once(_homes, case.application).get(name)
    since_us, sure = fact.seen_us, Confidence.SUSPECTED
    if store is not None and _was_removed(task, store):
        what = "has no directory" if bare_us is None else "has an empty directory"
        seen = store.past[-1].ended_us, what, Confidence.CONFIRMED
        return Vanished(case, fact, name, offset, *seen, is_seen=True)
    if bare_us is not None:
        since_us = max(since_us, bare_us)
        may_be_copied = _may_be_copied(task, since_us)
        sure = Confidence.SUSPECTED if may_be_copied else Confidence.CONFIRMED
        what = "has an empty directory"
        return Vanished(case, fact, name, offset, since_us, what, sure, may_be_copied=may_be_copied)
    if _is_unread(case, task, name):
        sure, what = Confidence.UNKNOWN, _UNREAD
    elif f"{name}{names.POSITION_SUFFIX}" in task.names:
        place = "no segment" if name in task.names else "no directory"
        what = f"has {place}, and {name}{names.POSITION_SUFFIX} shows that records were put into it"
    elif store is not None and store.past and not store.segmented:
        what = "has no directory, and had one before its task's was made anew"
    elif other is not None and name in task.names:
        what = f"has no segment, and task {other} has some; unless all of its records have expired"
    elif other is not None:
        what = f"has no directory, and task {other} has that store"
    else:
        sure = Confidence.UNKNOWN
        what = "has no directory; unknown: it may be a custom store, or a windowed one whose records have all expired"
    return Vanished(case, fact, name, offset, since_us, what, sure)


def _of_global(case: TaskCase, task: Task, fact: CheckpointFact) -> Iterator[Vanished]:
    """Global stores are named by their topics: which store an entry means, its files show, or nothing does.

    Source:
        GlobalStateManagerImpl.checkpoint writes persistent stores only; each has its own topic.
    """
    offset = max((x.offset for x in fact.foreign), default=0)
    suffix = names.POSITION_SUFFIX
    put_to = {x.removesuffix(suffix) for x in task.names if x.endswith(suffix)}
    gone = {name for name, store in task.stores.items() if not _is_there(store)}
    removed = {name for name in gone if _was_removed(task, task.stores[name])} | set(task.bare)
    missed = sorted(
        removed | {x for x in put_to if not _is_there(task.stores.get(x)) and x not in task.names}
    )
    for name in missed:
        store, is_sure = task.stores.get(name), name in removed
        is_seen = store is not None and bool(store.past)
        seen_us = store.past[-1].ended_us if store is not None and store.past else fact.seen_us
        what = "has an empty directory" if name in task.bare else "has no directory"
        if not is_sure:
            what += f", and {name}{suffix} shows that records were put into it"
        since_us = max(seen_us, task.bare.get(name, 0))
        may_be_copied = is_sure and not is_seen and _may_be_copied(task, since_us)
        sure = Confidence.CONFIRMED if is_sure and not may_be_copied else Confidence.SUSPECTED
        yield Vanished(
            case, fact, name, offset, since_us, what, sure, is_seen=is_seen, may_be_copied=may_be_copied
        )
    if missed or any(_is_there(store) for store in task.stores.values()):
        return
    left = {x for x in task.names if not x.endswith(names.TEMP_SUFFIX)} - _WITHOUT_STORES
    if not left - {names.ROCKSDB_DIRECTORY}:
        what = "is not on disk, and nothing else is"
        yield Vanished(case, fact, "", offset, fact.seen_us, what, Confidence.SUSPECTED)
    else:
        what = "has no directory of RocksDB; unknown: it may be a custom store"
        yield Vanished(case, fact, "", offset, fact.seen_us, what, Confidence.UNKNOWN)


def may_be_copied(task: Task, store: Store, cause: Remains | Database | None) -> bool:
    """Return whether nobody saw it whole, and it was written right before it was found: a copy may still be made.

    `cp -a`, `tar` and `rsync` set the time of a directory last. An earlier life of the task says nothing of it.
    """
    since_us = task.past[-1].ended_us if task.past else 0
    ends = (*(x.ended_us for x in store.past), *(x.released_us or NOT_OVER_US for x in store.sessions))
    if cause is None or not cause.touched_us or max(ends, default=0) > since_us:
        return False
    found_us = cause.since_us if isinstance(cause, Remains) else cause.found_us
    return cause.touched_us > found_us - DEAD_US


def _may_be_copied(task: Task, found_us: int) -> bool:
    """Return whether a task was written to about when an empty directory of a store was found in it.

    `rsync` makes directories before it fills them, and sets the time of a directory last.
    """
    return any(abs(found_us - at_us) < DEAD_US for at_us in _touched(task))


def _touched(task: Task) -> Iterator[int]:
    """List when a name was last made or removed in the directories of a task."""
    yield task.mtime_us
    for store in task.stores.values():
        yield from (x.touched_us for x in store.databases.values())
        yield from (x.touched_us for x in store.remains.values())


def _is_there(store: Store | None) -> bool:
    return store is not None and bool(store.databases or store.remains)


def _is_unread(case: TaskCase, task: Task, store: str | None = None) -> bool:
    """Return whether a part of the task's directory cannot be read now: what is not seen there may be there."""
    return is_blind(case.inventory, case.application.id, task.id, case.now_us - 1, case.now_us + 1, store)


def _was_removed(task: Task, store: Store) -> bool:
    """Return whether the directory was there and went.

    It counts in this life of the task only: another one begins with a copy that is put back, a file at a time. A
    key-value store always has one, but a windowed store without live records has no segment: there a cleaner took it.
    """
    if not store.past or store.past[-1].task_incarnation != task.incarnation:
        return False
    return not store.segmented or store.past[-1].shape is Shape.CLEANER_WALK


def _homes(application: Application) -> dict[str, str]:
    """Find for each store on RocksDB a task that has it."""
    return {
        store.name: task.id
        for task in application.tasks.values()
        if task.exists and not task.is_global
        for store in task.stores.values()
        if _is_there(store)
    }


def severity_of(case: TaskCase, since_us: int, *, is_trusted: bool) -> Severity:
    """Grade it: critical once it was left alone for a minute and the next start would trust its offset.

    Nobody held it, and nobody put a file into it: that may be a copy.

    Source:
        ProcessorStateManager.initializeStoreOffsetsFromCheckpoint, GlobalStateManagerImpl.restoreState, up to 4.2: an
        entry is trusted whatever is there. LegacyCheckpointingStateStore.migrateLegacyOffsets (4.3.0): the first start
        moves it into the new store.
    """
    alone_us = max([since_us, *(x for x in _touched(case.task) if x <= case.now_us)])
    waits = case.task.held is not True and case.waited_us(alone_us) >= DEAD_US
    return Severity.CRITICAL if is_trusted and waits else Severity.WARNING


def is_over(case: TaskCase, last_us: int) -> bool:
    """Return whether no deletion can be going on: nothing happened for a while, or who was at it is dead.

    A deletion that an earlier agent saw may have gone on until this one began: its quiet counts from there.
    """
    walk = case.task.walk
    if walk is not None:
        ended = [x.ended_us for x in case.application.lives if x.ended_us is not None]
        # one that is still to come: the clock was set back
        if any(walk.last_us <= x <= case.now_us for x in ended):
            return True
        last_us = max(last_us, walk.last_us, case.inventory.started_us)
    return not last_us or case.waited_us(last_us) >= QUIET_US


# What it says


def before_the_start(x: TaskStory, otherwise: str = _TRUSTED) -> str:
    """Say what saves the task as long as it is not started, and what happens otherwise."""
    return _BEFORE_THE_START.format(path=x.task.path, otherwise=otherwise)


def _loudness(x: Vanished, _: Proof | None) -> Loudness:
    if x.is_known:
        severity = severity_of(x.case, x.since_us, is_trusted=True)
        sure = Confidence.SUSPECTED if x.is_moved else x.confidence
        return Loudness(severity, sure, next_action=before_the_start(x), remedy=Remedy.RESTORE)
    if x.what == _UNREAD:
        return Loudness(Severity.INFO, x.confidence, next_action=_LOOK_AGAIN, remedy=Remedy.OTHER)
    step = _ANOTHER_KIND + before_the_start(x)
    return Loudness(Severity.INFO, x.confidence, next_action=step, remedy=Remedy.CHECK_FIRST)


def _summary(x: Vanished, _: Proof | None) -> str:
    whom = f"store {x.store}" if x.store else "a global store"
    does = "move that offset into it" if x.is_moved else "trust that offset"
    then = f": the next start would make an empty store and {does}."
    return (
        f"Task {x.task.id}: its checkpoint says offset {x.offset} for {whom}, which {x.what}"
        f"{then if x.is_known else '.'}{COPYING if x.may_be_copied else ''}"
    )


def _evidence(x: Vanished, _: Proof | None) -> Iterable[Evidence]:
    whom = f"store {x.store}" if x.store else "a global store"
    yield Evidence(x.fact.written_us, f"offset {x.offset} of {whom}", checkpoint_of(x.task))


DELETING = "a deletion may go on"

GONE = Rule[Vanished](
    "a checkpoint names a store that has no files",
    innocents={"the entry of a checkpoint claims nothing": lambda x: not is_real(x.offset)},
    unknowns={
        "the directory of the global stores cannot be read now": lambda x: (
            x.task.is_global and _is_unread(x.case, x.task)
        ),
        "a process holds the task, and may be about to make the store": lambda x: bool(x.task.held),
        DELETING: lambda x: not is_over(x.case, 0),
        "the store may be about to be made, or copied to its place": lambda x: (
            x.is_known and not x.is_seen and x.case.waited_us(x.since_us) < QUIET_US
        ),
    },
    loudness=_loudness,
    summary=_summary,
    evidence=_evidence,
)

DOCKET = Docket(vanished, (GONE,))
