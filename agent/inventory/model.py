"""The dossier: everything known about applications, tasks and stores, across their incarnations.

Records are changed by `reduce` only; detectors read them. All times are microseconds since the epoch. Memory
per task is bounded: every history is a deque with a stated length.

Words: an *incarnation* is one life of a directory or store; a *session* is one holding of a store by a
process, from its open to its release; *puts* is the highest sequence number that was flushed, the number of
writes that reached the disk in this incarnation.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from enum import StrEnum

from agent.inventory.disk import LockState, ProcessFact
from agent.inventory.observations import StoreOffsets
from agent.layout.checkpoint import OffsetEntry
from agent.layout.names import GLOBAL_DIRECTORY, changelog_store

CHECKPOINTS_KEPT = 16
SESSIONS_KEPT = 6
FLUSHES_KEPT = 48
REOPENS_KEPT = 32
PROCESSES_KEPT = 6


class Shape(StrEnum):
    """How something was deleted."""

    OWNER_WALK = "owner-walk"  # by the process that held it until just before: a wipe
    CLEANER_WALK = "cleaner-walk"  # a recursive walk over something nobody held
    SWEPT_FILES = "swept-files"  # single old files under a held lock
    VANISHED_UNSEEN = "vanished-unseen"  # it was there, then it was not; nobody saw it go
    UNKNOWN = "unknown"


@dataclass(slots=True)
class Mark:
    """A checkpoint entry of one store, beside what was flushed when it was written."""

    at_us: int
    offset: int
    puts: int


@dataclass(slots=True)
class CheckpointFact:
    """One content of a task's `.checkpoint`.

    Args of the dataclass:
        written_us: mtime of the file: when the content was written.
        seen_us: When it was seen.
        offsets: Store -> changelog offset, entries of this task only.
        foreign: Entries that belong to other tasks or map to no store.
        incarnation: Number of the task directory's life in which it was written.
        held: Whether somebody held the task then.
        ended_us: When it was replaced or deleted; None = it is there.
        deleted: It ended by deletion, not by replacement.
        in_walk: It was deleted as part of a recursive deletion.
    """

    written_us: int
    seen_us: int
    offsets: dict[str, int]
    foreign: tuple[OffsetEntry, ...]
    incarnation: int
    held: bool
    ended_us: int | None = None
    deleted: bool = False
    in_walk: bool = False


@dataclass(slots=True)
class Database:
    """One RocksDB directory, as it is now.

    `flushed` is the timeline of `puts`: (puts, written at), ascending.
    """

    path: str
    segment: str | None
    inode: int = 0
    identity: str | None = None
    born_us: int = 0
    incarnation: int = 0
    manifest: int | None = None
    manifest_problem: str | None = None
    puts: int = 0
    opened_puts: int = 0
    flushed: deque[tuple[int, int]] = field(default_factory=lambda: deque(maxlen=FLUSHES_KEPT))
    dropped_puts: int = 0
    newest_flush: int = 0
    files: int = 0
    size_bytes: int = 0
    entries_low: int | None = None
    entries_high: int | None = None
    lock: LockState | None = None
    lock_since_us: int = 0
    reopened_us: tuple[int, ...] = ()
    rocksdb_version: str | None = None
    families: tuple[str, ...] = ()
    options_written_us: int = 0
    missing_files: tuple[int, ...] = ()
    missing_since_us: int = 0
    offsets: StoreOffsets | None = None
    seen_us: int = 0

    def puts_at(self, at_us: int) -> int:
        """Tell how many puts were on disk at a time; 0 before the first flush that is remembered."""
        known = self.dropped_puts
        for puts, written_us in self.flushed:
            if written_us > at_us:
                break
            known = puts
        return known


@dataclass(slots=True)
class PastDatabase:
    """An incarnation that ended."""

    segment: str | None
    identity: str | None
    born_us: int
    ended_us: int
    shape: Shape
    puts: int
    entries_low: int | None
    size_bytes: int
    released_us: int | None
    task_incarnation: int


@dataclass(slots=True)
class Session:
    """One holding of a store by a process.

    Args of the dataclass:
        opened_us: When the store was opened (by `LOG.old.<us>` or `IDENTITY` where they tell).
        identities: RocksDB identities when it was opened (one per segment).
        puts_at_open: Flushed before it.
        offset_at_open: Checkpoint entry in force then; None = there was none.
        first: First checkpoint written in the session.
        last: Last checkpoint written in it.
        released_us: When it was released; None = it is held.
        puts_at_release: Flushed when it was released.
        restored_puts: What the last manifest of the session began with: up to 2.5 that is what was flushed
            when the restoration ended (the bulk-load mode is switched off by a reopen).
        reopens: Reopens within the session, beside the opening itself.
        created: The store was made by this session's opening.
        wiped: The owner wiped the store and made it anew while it kept the task's lock (up to 2.5).
        final_identities: Identities when it was released.
        seen_us: When the look was made that found it.
        closed: It ended with a close: a checkpoint (or, 4.3+, a status) was written right before the release;
            None = it was too short to tell.
        closed_with_offset: 4.3+: that close wrote an offset between its data and its status; True where no
            order can be told.
        stored_offset_at_open: 4.3+: changelog offset that the store itself held when it was opened.
        stored_offset: 4.3+: the offset that was stored in this session; None = none so far.
        status_floor: 4.3+: highest sequence known when it was opened; a close writes above it.
        outlived: Another task of the application stayed held when this store was released: an orderly close
            in a living process, no crash. None until the next session tells.
    """

    opened_us: int
    identities: frozenset[str]
    puts_at_open: int
    offset_at_open: int | None
    created: bool
    first: Mark | None = None
    last: Mark | None = None
    released_us: int | None = None
    puts_at_release: int = 0
    restored_puts: int = 0
    reopens: int = 0
    wiped: bool = False
    final_identities: frozenset[str] = frozenset()
    seen_us: int = 0
    closed: bool | None = None
    closed_with_offset: bool = True
    stored_offset_at_open: int | None = None
    stored_offset: int | None = None
    status_floor: int = 0
    outlived: bool | None = None


@dataclass(slots=True)
class Remains:
    """What is left of a database that lost its CURRENT or IDENTITY.

    Args of the dataclass:
        path: Its directory.
        since_us: When it was first seen so.
        files: SST and WAL files that are left.
    """

    path: str
    since_us: int
    files: int


@dataclass(slots=True)
class Store:
    """One store of a task: a key-value database or the segments of a windowed store."""

    name: str
    segmented: bool
    databases: dict[str, Database] = field(default_factory=dict)
    past: deque[PastDatabase] = field(default_factory=lambda: deque(maxlen=4))
    sessions: deque[Session] = field(default_factory=lambda: deque(maxlen=SESSIONS_KEPT))
    remains: dict[str, Remains] = field(default_factory=dict)
    retired_puts: int = 0
    incarnation: int = 0

    @property
    def puts(self) -> int:
        """Flushed in this incarnation, over all segments, expired ones included."""
        return self.retired_puts + sum(database.puts for database in self.databases.values())

    def puts_at(self, at_us: int) -> int:
        """The same at an earlier time."""
        return self.retired_puts + sum(database.puts_at(at_us) for database in self.databases.values())

    @property
    def identities(self) -> frozenset[str]:
        """RocksDB identities of what is there now."""
        return frozenset(x.identity for x in self.databases.values() if x.identity)

    @property
    def lock(self) -> LockState | None:
        """HELD if any database is held; UNKNOWN if one could not be asked; None without a LOCK file."""
        states = {x.lock for x in self.databases.values()}
        for state in (LockState.HELD, LockState.UNKNOWN, LockState.FREE):
            if state in states:
                return state
        return None

    @property
    def session(self) -> Session | None:
        """The session that lasts, if any."""
        return self.sessions[-1] if self.sessions and self.sessions[-1].released_us is None else None

    @property
    def identity(self) -> str | None:
        """Identity of the incarnation: that of the only database, or of the oldest segment."""
        born = sorted((x.born_us, x.identity) for x in self.databases.values() if x.identity)
        return born[0][1] if born else None


@dataclass(slots=True)
class Walk:
    """A recursive deletion that was seen going on in a task directory.

    Args of the dataclass:
        started_us: First removal.
        last_us: Newest removal.
        shape: By its owner or by a cleaner.
        held: Whether the task was held when it began.
        stores: Stores it removed something essential of.
    """

    started_us: int
    last_us: int
    shape: Shape
    held: bool
    stores: set[str] = field(default_factory=set)


@dataclass(slots=True)
class PastTask:
    """A task directory that ended.

    Args of the dataclass:
        incarnation: Number of its life.
        begun_us: First removal that was seen.
        ended_us: When the directory itself was gone.
        shape: How it was deleted.
        offsets: Its last checkpoint.
        released_us: When it had last been released; None = never seen held.
        held: It was held until the end.
        siblings_held: Another task of the application was held then.
    """

    incarnation: int
    begun_us: int
    ended_us: int
    shape: Shape
    offsets: dict[str, int]
    released_us: int | None
    held: bool
    siblings_held: bool


@dataclass(slots=True)
class Task:
    """One task directory across its incarnations.

    `lock_probed_us` is when its `.lock` was last let go by somebody who tried it, `closed_us` when a `LOCK` of one
    of its stores was last announced as closed: also an open too short to be looked at.
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
    checkpoints: deque[CheckpointFact] = field(default_factory=lambda: deque(maxlen=CHECKPOINTS_KEPT))
    checkpoint_problem: str | None = None
    checkpoint_problem_us: int = 0
    walk: Walk | None = None
    past: deque[PastTask] = field(default_factory=lambda: deque(maxlen=4))
    wiped_us: deque[int] = field(default_factory=lambda: deque(maxlen=8))
    swept: deque[tuple[int, str]] = field(default_factory=lambda: deque(maxlen=8))
    changed_us: int = 0
    first_seen_us: int = 0

    @property
    def partition(self) -> int | None:
        """Partition number of the task; None for the global one."""
        number = self.id.rpartition("_")[2]
        return int(number) if number.isdecimal() else None

    @property
    def is_global(self) -> bool:
        """Whether this is the directory of the global stores."""
        return self.id == GLOBAL_DIRECTORY

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
        """Tell which store of this task an entry belongs to; None for foreign or unmapped entries."""
        if self.partition is not None and entry.partition != self.partition:
            return None
        name = changelog_store(entry.topic, self.application)
        topology, slash, _ = self.id.partition("/")
        if name is not None and slash:
            inner = topology[2:-2] + "-"
            return name[len(inner) :] if name.startswith(inner) else None
        return name


@dataclass(slots=True)
class ProcessLife:
    """One life of an application process, told from the application lock."""

    started_us: int
    ended_us: int | None = None


@dataclass(slots=True)
class Application:
    """One application directory."""

    id: str
    exists: bool = False
    inode: int = 0
    first_seen_us: int = 0
    process_id: str | None = None
    process_problem: str | None = None
    lock: LockState | None = None
    lock_inode: int = 0
    lock_since_us: int = 0
    lock_ever_held: bool = False
    lock_replaced_us: deque[int] = field(default_factory=lambda: deque(maxlen=4))
    lives: deque[ProcessLife] = field(default_factory=lambda: deque(maxlen=PROCESSES_KEPT))
    processes: tuple[ProcessFact, ...] = ()
    task_lock_ever_held: bool = False
    positions_seen: bool = False
    rocksdb_versions: dict[str, int] = field(default_factory=dict)
    offsets_family_us: int = 0
    tasks: dict[str, Task] = field(default_factory=dict)
    last_activity_us: int = 0

    @property
    def life(self) -> ProcessLife | None:
        """The process that lives, as far as the application lock tells."""
        return self.lives[-1] if self.lives and self.lives[-1].ended_us is None else None


@dataclass(slots=True)
class BlindInterval:
    """Time in which something may have happened unseen.

    Args of the dataclass:
        started_us: From.
        ended_us: To; None = it lasts.
        cause: Slug, for example `queue-overflow`.
        application: Application concerned; None = all.
        task: Task concerned; None = all of it.
    """

    started_us: int
    cause: str
    ended_us: int | None = None
    application: str | None = None
    task: str | None = None


@dataclass(slots=True)
class Inventory:
    """All that is known of one state directory.

    Args of the dataclass:
        applications: By id.
        blind: Blind intervals, oldest first.
        started_us: When the agent started.
        root_seen: The state directory was there once.
        volume: Kind of volume it lies on: `local`, `memory`, `overlay`, `network`, `fuse`; empty = not known.
    """

    applications: dict[str, Application] = field(default_factory=dict)
    blind: deque[BlindInterval] = field(default_factory=lambda: deque(maxlen=256))
    started_us: int = 0
    root_seen: bool = False
    volume: str = ""
