"""The inventory: everything known about applications, tasks and stores, across their incarnations.

Records are changed by `reduce` only; detectors read them. All times are microseconds since the epoch. Memory
per task is bounded: every history has a stated length.

The records of a store live in `stores` and are re-exported here: `model` is where the whole inventory is found.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from agent.inventory.disk import LockState, ProcessFact
from agent.inventory.recent import Recent, history
from agent.inventory.stores import (
    FLUSHES_KEPT,
    NO_NUMBERS,
    PAST_KEPT,
    SESSIONS_KEPT,
    CheckpointClaim,
    Database,
    PastDatabase,
    Remains,
    Session,
    Shape,
    Store,
)
from agent.layout.checkpoint import OffsetEntry
from agent.layout.names import CHANGELOG_SUFFIX, GLOBAL_DIRECTORY, changelog_store

CHECKPOINTS_KEPT = 8
PROCESSES_KEPT = 6
SWEPT_KEPT = 8
TAKEN_KEPT = 8
LOCKS_KEPT = 4
CLOSES_WITHIN_US = 500_000
"""A clean close writes its checkpoint and lets go within 20 ms (recorded; up to 2.1 in the other order); a release is
seen up to a lock poll later."""

__all__ = [
    "CLOSES_WITHIN_US", "FLUSHES_KEPT", "PAST_KEPT", "SESSIONS_KEPT", "Application", "BlindInterval", "CheckpointClaim",
    "CheckpointFact", "Database", "Deletion", "Inventory", "PastDatabase", "PastTask", "ProcessLife", "Remains",
    "Session", "Shape", "Store", "Task",
]  # fmt: skip


@dataclass(slots=True)
class CheckpointFact:
    """One content of a task's `.checkpoint`."""

    written_us: int  # mtime of the file: when the content was written
    seen_us: int  # when it was seen
    offsets: dict[str, int]  # store -> changelog offset, entries of this task only
    foreign: tuple[OffsetEntry, ...]  # entries that belong to other tasks or map to no store
    incarnation: int  # number of the task directory's life in which it was written
    held: bool  # whether a process held the task then
    ended_us: int | None = None  # when it was replaced or deleted; None = it is there
    deleted: bool = False  # it ended by deletion, not by replacement
    in_walk: bool = False  # it was deleted as part of a recursive deletion


@dataclass(slots=True)
class Deletion:
    """A recursive deletion that was seen going on in a task directory."""

    started_us: int  # first removal
    last_us: int  # newest removal
    shape: Shape  # by its owner or by a cleaner
    held: bool  # whether the task was held when it began
    stores: set[str] = field(default_factory=set)  # Stores it removed something essential of


@dataclass(slots=True)
class PastTask:
    """A task directory that ended."""

    incarnation: int  # number of its life
    started_us: int  # first removal that was seen
    ended_us: int  # when the directory itself was gone
    shape: Shape  # how it was deleted
    offsets: dict[str, int]  # its last checkpoint
    released_us: int | None  # when it had last been released; None = never seen held
    held: bool  # it was held until the end
    siblings_held: bool  # another task of the application was held then
    # every store's last session is known to have ended with a close that wrote its offset
    closed_in_order: bool = False


@dataclass(slots=True)
class Task:
    """One task directory across its incarnations.

    `lock_probed_us` is when its `.lock` was last released by a process that tried it, `closed_us` when a `LOCK` of one
    of its stores was last announced as closed: also an open too short to be read. `taken`: (when, store, path) of
    databases that were deleted while a process held them. `bare`: store -> since when its
    directory is there and has nothing of a database in it.
    """

    application: str
    id: str
    path: str
    exists: bool = False
    incarnation: int = 0
    inode: int = 0
    created_us: int = 0
    mtime_us: int = 0
    names: frozenset[str] = frozenset()
    lock: LockState | None = None
    lock_since_us: int = 0
    lock_probed_us: int = 0
    closed_us: int = 0
    held: bool | None = None
    held_since_us: int = 0
    released_us: int | None = None
    stores: dict[str, Store] = field(default_factory=dict)
    checkpoints: tuple[CheckpointFact, ...] = history(CHECKPOINTS_KEPT)
    checkpoint_problem: str | None = None
    checkpoint_problem_us: int = 0
    walk: Deletion | None = None
    past: tuple[PastTask, ...] = history(PAST_KEPT)
    swept: tuple[tuple[int, str], ...] = history(SWEPT_KEPT)
    taken: tuple[tuple[int, str, str], ...] = history(TAKEN_KEPT)
    bare: dict[str, int] = field(default_factory=lambda: NO_NUMBERS)
    changed_us: int = 0
    first_seen_us: int = 0

    @property
    def partition(self) -> int | None:
        """Partition number of the task; None for the global one."""
        number = self.id.rpartition("_")[2]
        return int(number) if number.isdecimal() else None

    @property
    def databases(self) -> list[Database]:
        """Databases of all its stores that are there."""
        return [database for store in self.stores.values() for database in store.databases.values()]

    @property
    def database_paths(self) -> list[str]:
        """Their directories."""
        return [database.path for store in self.stores.values() for database in store.databases.values()]

    @property
    def is_global(self) -> bool:
        """Whether this is the directory of the global stores."""
        return self.id == GLOBAL_DIRECTORY

    @property
    def identities(self) -> frozenset[str]:
        """RocksDB identities of all stores that are there now."""
        return frozenset(x for store in self.stores.values() for x in store.identities)

    @property
    def known_as(self) -> frozenset[str]:
        """The same, and what they were called before: a finding keeps the name that it opened with."""
        return self.identities.union(*(x.known_as for x in self.databases))

    @property
    def checkpoint(self) -> CheckpointFact | None:
        """The checkpoint that is on disk now."""
        if self.checkpoints and self.checkpoints[-1].ended_us is None:
            return self.checkpoints[-1]
        return None

    def checkpoint_at(self, at_us: int) -> CheckpointFact | None:
        """The newest checkpoint content written before a time, in any incarnation of the directory."""
        for fact in reversed(self.checkpoints):
            if fact.written_us < at_us:
                return fact
        return None

    def store_of(self, entry: OffsetEntry) -> str | None:
        """Return which store of this task an entry belongs to; None for foreign or unmapped entries."""
        partition = self.partition
        if partition is not None and entry.partition != partition:
            return None
        name = changelog_store(entry.topic, self.application)
        topology, slash, _ = self.id.partition("/")
        if name is not None and slash:
            inner = topology[2:-2] + "-"
            return name[len(inner) :] if name.startswith(inner) else None
        return name

    def names_changelog_of(self, store_name: str, *, lists_all: bool = False) -> bool:
        """Return whether checkpoints can name a store.

        False where they name a topic of this partition that is no changelog and never the store: a source topic
        stands in for its changelog (topology optimisation), and which one, the disk does not say. False, too,
        where one was written while the store was held and had data, and names others or none: it has no changelog.
        With `lists_all` (2.6+) a checkpoint lists every store that has a changelog, data or none, and
        the newest decides: an upgrade may switch logging off. An empty one takes back nothing: of a corrupted task up
        to 3.7 it names no store.

        Source:
            InternalStreamsBuilder.rewriteRepeatedSources, TableSourceNode.reuseSourceTopic; seen live at 4.2.1.
            ProcessorStateManager.checkpoint (2.0.1, 2.5.1, 2.6.0): entries of logged persistent stores only; up to 2.5
            of those that were put to or restored; stores without a changelog seen live at 2.5.1, 3.9.2 and 4.2.1.
            TaskManager.closeDirtyAndRevive (3.6.1): marks all changelogs, which are left out, before the wipe.
        """
        is_named = any(store_name in fact.offsets for fact in self.checkpoints)
        if is_named and not lists_all:
            return True
        for fact in reversed(self.checkpoints):
            if store_name in fact.offsets:
                return True
            may_say = bool(fact.offsets) or not is_named
            if may_say and self._passes_over(store_name, fact, lists_all=lists_all):
                return False
        return not any(
            self.partition in (None, entry.partition) and not entry.topic.endswith(CHANGELOG_SUFFIX)
            for fact in self.checkpoints
            for entry in fact.foreign
        )

    def _passes_over(self, store_name: str, fact: CheckpointFact, *, lists_all: bool) -> bool:
        """Return whether a checkpoint that does not name a store would have to, if the store had a changelog."""
        store = self.stores.get(store_name)
        if store is None or not (lists_all or store.puts_at(fact.written_us)):
            return False
        return any(
            session.opened_us < fact.written_us
            and (session.released_us is None or fact.written_us <= session.released_us + CLOSES_WITHIN_US)
            for session in store.sessions
        )


@dataclass(slots=True)
class ProcessLife:
    """One life of an application process, known from the application lock.

    `announced`: a lock file that it had open was announced as closed, so that `ended_us` is exact; else the end was
    found by a lock poll, up to that much later.
    """

    started_us: int
    ended_us: int | None = None
    announced: bool = False


@dataclass(slots=True)
class Application:
    """One application directory."""

    id: str
    exists: bool = False
    inode: int = 0
    mtime_us: int = 0  # of its directory
    first_seen_us: int = 0
    process_id: str | None = None
    process_problem: str | None = None  # why its file names none
    lock: LockState | None = None
    lock_inode: int = 0
    lock_since_us: int = 0
    lock_ever_held: bool = False
    lock_replaced_us: tuple[int, ...] = history(LOCKS_KEPT)
    lives: tuple[ProcessLife, ...] = history(PROCESSES_KEPT)
    processes: tuple[ProcessFact, ...] = ()  # that are visible now
    process_version: str | None = None  # of the last one that reported it, up to the next one's start
    task_lock_ever_held: bool = False
    task_ever_held: bool = False  # by a lock of any kind; spares asking ten thousand tasks for each of them
    positions_seen: bool = False
    rocksdb_versions: dict[str, int] = field(default_factory=dict)
    # when options with the column family `offsets` were written last, and without it
    offsets_family_us: int = 0
    plain_us: int = 0
    # when an offset of a transactional store was written last, and one of another
    transactional_us: int = 0
    marked_us: int = 0
    told: dict[str, str] = field(default_factory=dict)  # its settings, as they were told last
    changed_us: dict[str, int] = field(default_factory=dict)  # setting -> until when another value was told
    former: dict[str, str] = field(default_factory=dict)  # setting -> that value
    tasks: dict[str, Task] = field(default_factory=dict)
    last_activity_us: int = 0

    @property
    def life(self) -> ProcessLife | None:
        """The process that lives, as far as the application lock shows."""
        return self.lives[-1] if self.lives and self.lives[-1].ended_us is None else None


@dataclass(slots=True)
class BlindInterval:
    """Time in which something may have happened unseen."""

    started_us: int  # from
    cause: str  # slug, for example `queue-overflow`
    ended_us: int | None = None  # to; None = it lasts
    application: str | None = None  # application concerned; None = all
    task: str | None = None  # task concerned; None = all of it
    detail: str = ""  # one sentence with numbers and names, for people; empty = the cause says it all
    store: str | None = None  # store concerned; None = all of them
    place: str | None = None  # path of what cannot be read; None = the cause is no single place


@dataclass(slots=True)
class Inventory:
    """All that is known of one state directory."""

    applications: dict[str, Application] = field(default_factory=dict)  # by id
    blind: Recent[BlindInterval] = field(default_factory=lambda: Recent(256))  # blind intervals, oldest first
    started_us: int = 0  # when the agent started
    root_seen: bool = False  # the state directory was there once
    # kind of volume it is on: `local`, `memory`, `overlay`, `network`, `fuse`; empty = not known
    volume: str = ""
    # cause -> microseconds of finished intervals since the agent started, also of those forgotten
    blind_us: dict[str, int] = field(default_factory=dict)
    # by how much file times are ahead of this node's clock, where they are a file server's; they are kept without it.
    # None = not compared.
    ahead_us: int | None = None
    # cause -> since when, and a sentence: changes are seen, but later than they could be
    slowed: dict[str, tuple[int, str]] = field(default_factory=dict)
    nested: tuple[str, ...] = ()  # state directories one level below, where no application is here
