"""Task level of the reducer: the directory's lives, its checkpoint, its lock, and how things are deleted."""

from __future__ import annotations

from agent.contract.events import Change, Source
from agent.inventory.bulk_load import note_commit
from agent.inventory.closings import comparable_at
from agent.inventory.copied import dated
from agent.inventory.disk import LockState, Unseen
from agent.inventory.model import (
    CHECKPOINTS_KEPT,
    PAST_KEPT,
    Application,
    CheckpointClaim,
    CheckpointFact,
    Deletion,
    PastTask,
    Session,
    Shape,
    Store,
    Task,
)
from agent.inventory.observations import CheckpointReading, LockReading, Observation, Removal, TaskReading
from agent.inventory.recent import recent
from agent.inventory.sessions import confirm_offsets, settle_close
from agent.inventory.store_changes import OWNER_DELETES_WITHIN_US, end_database, note_taken
from agent.inventory.stores import NO_NUMBERS
from agent.inventory.transitions import Transition, change_of
from agent.layout.checkpoint import OffsetEntry
from agent.layout.names import POSITION_SUFFIX
from agent.layout.paths import PathRole

WALK_ENDS_AFTER_US = 60_000_000
"""A recursive deletion that removed nothing for a minute is over (recorded slow volumes: 0.3 to 1 s a file)."""

WALK_PAUSES_US = 5_000_000
"""Longest time between two removals of one walk (recorded slow volumes: up to 1 s a file)."""

FREE_FOR_US = 300_000
"""A lock that was free for so long before a removal was not let go after it: on a busy machine the lock is asked, and a
removal is heard of, later than it happened. No JVM starts sooner, and opens a task."""

_NEEDED = frozenset({PathRole.IDENTITY, PathRole.CURRENT, PathRole.STORE_LOCK})
_ESSENTIAL = _NEEDED | {PathRole.STORE, PathRole.SEGMENT, PathRole.STORES}
"""What no running store removes: RocksDB replaces CURRENT by rename and drops only SSTs, logs, old manifests."""

REPLACEABLE = frozenset({PathRole.SST, PathRole.BLOB, PathRole.MANIFEST, PathRole.OPTIONS, PathRole.WAL})
"""What a running store removes in normal operation, and only under its LOCK (an open renames LOG before that)."""


def reduce_task(application: Application, task: Task, reading: TaskReading) -> list[Transition]:
    """Take a reading of a task directory: it was created or deleted."""
    if reading.unseen is Unseen.VANISHED:
        return end_task(application, task, reading) if task.exists else []
    if reading.unseen is not None:
        return []
    changes: list[Transition] = []
    if task.exists and reading.inode != task.inode:
        changes += end_task(application, task, reading)
    if not task.exists:
        task.exists, task.inode, task.created_us = True, reading.inode, reading.at_us
        task.incarnation += 1
        task.walk = None
        changes.append(change_of(Change.TASK_CREATED, reading, task_incarnation=task.incarnation))
    task.mtime_us, task.names = reading.mtime_us, reading.names
    application.positions_seen |= any(x.endswith(POSITION_SUFFIX) for x in reading.names)
    _apply_lock(application, task, reading.lock, reading.at_us)
    return changes


def end_task(application: Application, task: Task, reading: Observation) -> list[Transition]:
    """End a life of the task directory, with everything in it."""
    unseen = reading.source is Source.BASELINE
    shape = Shape.VANISHED_UNSEEN if unseen else _walk_shape(task, reading.at_us)
    changes: list[Transition] = []
    offsets = task.checkpoints[-1].offsets if task.checkpoints else {}
    task.exists = False
    for store in task.stores.values():
        changes += [
            end_database(task, store, database, reading.at_us, shape, reading)
            for database in list(store.databases.values())
        ]
    changes += _end_checkpoint(task, reading, in_walk=True)
    task.past = recent(
        task.past,
        PastTask(
            incarnation=task.incarnation,
            started_us=task.walk.started_us if task.walk else reading.at_us,
            ended_us=reading.at_us,
            shape=shape,
            offsets=offsets,
            released_us=max(task.released_us or 0, task.closed_us) or None,
            held=bool(task.held),
            siblings_held=any(x.held for x in application.tasks.values() if x is not task),
            closed_in_order=closed_in_order(task),
        ),
        PAST_KEPT,
    )
    for store in task.stores.values():
        store.remains.clear()
    task.names, task.lock, task.bare = frozenset(), None, NO_NUMBERS
    task.walk = None
    before = max(offsets.values(), default=None)
    incarnation = task.incarnation
    changes.append(
        change_of(
            Change.TASK_DELETED,
            reading,
            shape=shape.value,
            offset_before=before,
            task_incarnation=incarnation,
        )
    )
    return changes


def reduce_task_lock(application: Application, task: Task, reading: LockReading) -> None:
    """Take the state of the task's `.lock` (releases up to 2.8; later ones leave the file unlocked)."""
    if reading.announced:
        task.lock_probed_us = reading.at_us
    _apply_lock(application, task, reading.lock, reading.at_us)


def _apply_lock(application: Application, task: Task, lock: LockState | None, at_us: int) -> None:
    if lock is LockState.UNKNOWN and task.lock is not None:
        return
    if lock is not task.lock:
        task.lock, task.lock_since_us = lock, at_us
        application.task_lock_ever_held |= lock is LockState.HELD


def reduce_removal(application: Application, task: Task, reading: Removal) -> list[Transition]:
    """Take the announcement that a name went away.

    The successor of the name may be there already; the removal is its own fact, and its place in the
    order of removals distinguishes a recursive walk from a single deletion.
    """
    role = reading.place.role
    if role is PathRole.TASK:
        # A reading that came after the removal has met the successor and ended the old life already.
        already = not task.exists or task.created_us > reading.at_us
        return [] if already else end_task(application, task, reading)
    store = task.stores.get(reading.place.store) if reading.place.store else None
    if role is PathRole.CHECKPOINT:
        # a checkpoint that goes where no store was ever seen is the end of a deletion that began unseen
        in_walk = _goes_on(task, reading.at_us) or not task.stores
        return _end_checkpoint(task, reading, in_walk=in_walk)
    if role in _NEEDED and store is not None:
        _note_loss(task, store, reading)
    if role in REPLACEABLE and store is not None and store.session is not None:
        _note_pace(store.session, reading.at_us)
    essential = role in _ESSENTIAL or (role in REPLACEABLE and _is_idle(store, reading.at_us))
    # expired segments of a windowed store are dropped in normal operation, while the task is held
    is_expiry = reading.place.segment is not None and bool(task.held)
    if essential and not is_expiry:
        _note_walk(task, store, reading)
    elif task.walk is not None and role in (PathRole.OPTIONS, PathRole.WAL):
        task.walk.last_us = reading.at_us
    return []


def _note_loss(task: Task, store: Store, reading: Removal) -> None:
    """A held database loses what it cannot do without, and no close was announced: its owner does not know of it.

    Announcements keep their order. An orderly deletion closes first; for a process that is killed the kernel does.
    Without its `LOCK` nothing shows any more who holds it.
    """
    database = store.databases.get(reading.place.segment or "")
    if database is None or database.born_us >= reading.at_us:
        return
    if database.lock is LockState.HELD and database.closed_us <= database.seen_us <= reading.at_us:
        database.taken_us = database.taken_us or reading.at_us
    if reading.place.role is PathRole.STORE_LOCK:
        note_taken(task, store, database)


def _note_pace(session: Session, at_us: int) -> None:
    """RocksDB removes files one after the other: how soon one follows another shows how long an unlink takes."""
    took_us = at_us - session.removed_us
    if session.removed_us and (not session.unlink_us or took_us < session.unlink_us):
        session.unlink_us = max(took_us, 1)
    session.removed_us = at_us


def closed_in_order(task: Task) -> bool:
    """Return whether every store was closed, with its offset if it ever has one, and at least one has."""
    last = [store.sessions[-1] for store in task.stores.values() if store.sessions]
    offsets = {x.closed_with_offset for x in last}
    return all(x.closed is True for x in last) and True in offsets and False not in offsets


def orderly_close_us(task: Task) -> int | None:
    """Return when the task was closed in order; None = a process holds it, or its end was not orderly or not seen."""
    if not closed_in_order(task):
        return None
    return max((x.sessions[-1].released_us or 0 for x in task.stores.values() if x.sessions), default=None)


def _goes_on(task: Task, at_us: int) -> bool:
    """A walk that paused for longer than between two files was killed: what goes later goes by another hand.

    So was one under the task's lock (up to 2.8) of which the lock has been free for a while: its process is gone.
    """
    walk = task.walk
    if walk is None or at_us - walk.last_us > WALK_PAUSES_US:
        return False
    was_free = task.lock is LockState.FREE and at_us - task.lock_since_us >= FREE_FOR_US
    return not (walk.held and was_free)


def _is_idle(store: Store | None, at_us: int) -> bool:
    """A store that no process holds loses no file by itself: not even those that a running one drops."""
    if store is None:
        return False
    if not store.sessions:
        return store.free_seen
    released_us = store.sessions[-1].released_us
    if released_us is None or at_us <= released_us:
        return False
    # LOG.old.* shows an open that was over before any reading, if RocksDB leaves it there
    reopened = [x for database in store.databases.values() for x in database.reopened_us]
    return store.all_reopens and not any(released_us < x <= at_us for x in reopened)


def _note_walk(task: Task, store: Store | None, reading: Removal) -> None:
    if task.walk is None:
        task.walk = Deletion(reading.at_us, reading.at_us, _walk_shape(task, reading.at_us), bool(task.held))
        _claim_checkpoint(task, reading.at_us)
    task.walk.last_us = reading.at_us
    if store is not None:
        task.walk.stores.add(store.name)


def _claim_checkpoint(task: Task, at_us: int) -> None:
    """A checkpoint that went just before a cleaner's walk was seen is the first that the walk deleted."""
    assert task.walk is not None
    fact = task.checkpoints[-1] if task.checkpoints else None
    if fact is not None and fact.deleted and task.walk.shape is not Shape.OWNER_WALK:
        fact.in_walk |= at_us - (fact.ended_us or 0) <= OWNER_DELETES_WITHIN_US


def _walk_shape(task: Task, at_us: int) -> Shape:
    if task.walk is not None:
        return task.walk.shape
    sessions = [store.sessions[-1] for store in task.stores.values() if store.sessions]
    if not sessions:
        return Shape.UNKNOWN
    released = max(task.closed_us, *(at_us if x.released_us is None else x.released_us for x in sessions))
    return Shape.OWNER_WALK if at_us - released <= OWNER_DELETES_WITHIN_US else Shape.CLEANER_WALK


def end_quiet_walk(task: Task, at_us: int) -> None:
    """Forget a walk that removed nothing for a while: it was killed, or it is over."""
    if task.walk is not None and at_us - task.walk.last_us > WALK_ENDS_AFTER_US:
        task.walk = None


def reduce_checkpoint(task: Task, reading: CheckpointReading) -> list[Transition]:
    """Take a reading of `.checkpoint`: it was written or deleted, or is malformed."""
    if reading.place.role is not PathRole.CHECKPOINT:
        return []
    if reading.unseen is Unseen.VANISHED:
        return _end_checkpoint(task, reading, in_walk=_goes_on(task, reading.at_us))
    if reading.unseen is not None:
        return []
    if reading.problem is not None:
        return _apply_problem(task, reading)
    task.checkpoint_problem = None
    offsets, foreign = _split(task, reading.entries)
    current = task.checkpoint
    is_known = current is not None and dated(reading.mtime_us, current.written_us) == current.written_us
    if current is not None and is_known and current.offsets == offsets:
        confirm_offsets(task)
        return []
    before = task.checkpoints[-1].offsets if task.checkpoints else {}
    if current is not None:
        current.ended_us = reading.mtime_us
    task.checkpoints = recent(
        task.checkpoints,
        CheckpointFact(reading.mtime_us, reading.at_us, offsets, foreign, task.incarnation, bool(task.held)),
        CHECKPOINTS_KEPT,
    )
    puts = {name: store.puts_at(reading.mtime_us) for name, store in task.stores.items()}
    for name, offset in offsets.items():
        _mark(task, name, offset, reading.mtime_us, puts.get(name, 0))
    note_commit(task, task.checkpoints[-1])
    for store in task.stores.values():  # also one of which a source topic speaks, and no entry by its name
        if store.sessions:
            settle_close(task, store, store.sessions[-1])
    written = change_of(
        Change.CHECKPOINT_WRITTEN,
        reading,
        offsets=reading.entries,
        offset_before=max(before.values(), default=None),
        offset_after=max(offsets.values(), default=None),
        puts=sum(puts.values()),
        occurred_at_us=reading.mtime_us,
        task_incarnation=task.incarnation,
        held=task.held,
        comparable=comparable_at(task),
    )
    return [written]


def _mark(task: Task, store_name: str, offset: int, written_us: int, puts: int) -> None:
    store = task.stores.get(store_name)
    if store is None or not store.sessions:
        return
    session = store.sessions[-1]
    # A volume that was replaced brings a checkpoint, too: whatever time it bears, it is not of what was there before.
    is_replaced = session.released_us is not None and store.identities and not session.is_of(store.identities)
    # A task that is held again without this store: what its checkpoint says of it then is not of this session.
    is_over = session.released_us is not None and session.released_us < task.held_since_us <= written_us
    # Nor is what a later life of the directory brings, such as a backup that is put back, the checkpoint first.
    is_over |= bool(task.past) and (session.released_us or written_us) <= task.past[-1].ended_us
    # A store that its owner made anew was opened before; what was written before it was made is not of it.
    born = [x.born_us for x in store.databases.values() if session.wiped]
    began_us = min(born, default=session.opened_us)
    if written_us < began_us or is_replaced or is_over:
        return
    unsure = max([x.undated_us for x in store.databases.values()], default=0) > written_us
    mark = CheckpointClaim(written_us, offset, puts, unsure)
    session.first = session.first or mark
    session.last = mark


def _apply_problem(task: Task, reading: CheckpointReading) -> list[Transition]:
    if task.checkpoint_problem == reading.problem:
        return []
    if task.checkpoint is not None:
        task.checkpoint.ended_us = reading.mtime_us
    task.checkpoint_problem, task.checkpoint_problem_us = reading.problem, reading.mtime_us
    return [change_of(Change.CHECKPOINT_MALFORMED, reading, detail=reading.problem)]


def _end_checkpoint(task: Task, reading: Observation, *, in_walk: bool) -> list[Transition]:
    if not (isinstance(reading, Removal) and task.checkpoint_problem_us > reading.at_us):
        task.checkpoint_problem = None
    current = task.checkpoint
    if current is None or (isinstance(reading, Removal) and current.written_us > reading.at_us):
        return []
    current.ended_us, current.deleted, current.in_walk = reading.at_us, True, in_walk
    before = max(current.offsets.values(), default=None)
    incarnation = task.incarnation
    return [change_of(Change.CHECKPOINT_DELETED, reading, offset_before=before, task_incarnation=incarnation)]


def _split(task: Task, entries: tuple[OffsetEntry, ...]) -> tuple[dict[str, int], tuple[OffsetEntry, ...]]:
    own: dict[str, int] = {}
    foreign: list[OffsetEntry] = []
    for entry in entries:
        name = task.store_of(entry)
        if name is None:
            foreign.append(entry)
        else:
            own[name] = entry.offset
    return own, tuple(foreign)
