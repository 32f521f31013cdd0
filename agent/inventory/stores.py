"""What is known about a store: databases, their incarnations, and the sessions in which a process held them.

All times are microseconds since the epoch. An *incarnation* is one life of a directory or store; a *session* is one
holding of a store by a process, from its open to its release; *puts* is the highest sequence number that was
flushed, the number of writes that reached the disk in this incarnation.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from agent.inventory.disk import LockState
from agent.inventory.observations import LaterFile, StoreOffsets
from agent.inventory.recent import KEPT, history
from agent.inventory.segments import OPENINGS_KEPT, Opening
from agent.inventory.timeline import NOTHING_FLUSHED, Timeline

SESSIONS_KEPT = 6
FLUSHES_KEPT = 48
PAST_KEPT = 2
WIPES_AT_ONCE_US = 10_000_000
"""Up to 2.5 a store without an offset is wiped when the broker has said where its changelog ends (recorded:
milliseconds). A choice, for a slow broker: a later one is taken for a standby's, which retention overtook, and makes a
verdict less sure."""

_STRONGEST_FIRST = (LockState.HELD, LockState.UNKNOWN, LockState.FREE)


class Shape(StrEnum):
    """How something was deleted."""

    OWNER_WALK = "owner-walk"  # by the process that held it until just before: a wipe
    CLEANER_WALK = "cleaner-walk"  # a recursive walk over something no process held
    VANISHED_UNSEEN = "vanished-unseen"  # it was there, then it was not; its removal was not seen
    UNKNOWN = "unknown"


NO_NUMBERS: dict[str, int] = {}
"""For all that have none: an empty dictionary takes 64 bytes. Never changed."""


@dataclass(slots=True)
class CheckpointClaim:
    """A checkpoint entry of one store, beside what was flushed when it was written.

    `unsure`: of these puts some may have been flushed later, no file's time shows when.
    """

    at_us: int
    offset: int
    puts: int
    unsure: bool = False


@dataclass(slots=True)
class Database:
    """One RocksDB directory, as it is now.

    `flushed` is the timeline of `puts`: (puts, written at), ascending; `dropped_puts` is what was on disk before its
    first entry. Where no file's time shows when something was flushed, the timeline says the earliest; `undated_us` is
    the latest that it can have been. `families_in_use`: column families that have or had files. `offset_us`: since
    when, at the latest, its changelog offset has not moved. `deletes`: whether a deletion was ever flushed to it;
    None = not known.

    What could not be read leaves what was known before in its place: `problems` says what it was at the last reading
    (empty = all was read), `problem_since_us` since when each has been found at every reading.
    `puts` is what was flushed. `file_puts` is the part of it that files prove; `opened_sequence` what had been given
    out when it was opened last: what was written since is above it. `counted_puts` is what had been flushed when its
    live entries were counted: a later reading may have counted none. `closed_us`: when its `LOCK` was last announced as
    closed; `taken_us`: since when files that it cannot do without go although no close was announced; 0 = they do not.
    `found_us`: when it was first read; a copy that is put in its place has older times. `touched_us`: mtime of its
    directory when no process held it at the last time it was read so; 0 = it never was. `uncommitted_us`: when a
    transactional store was flushed without the offset that a corrupted task takes away, right behind the records of its
    open transaction; 0 = never.
    """

    path: str
    segment: str | None
    inode: int = 0
    identity: str | None = None
    unnamed: bool = (
        False  # its IDENTITY is missing or says nothing: what stands in for it ends with the next open
    )
    # what it was called while its IDENTITY could not be read, or was missing
    known_as: frozenset[str] = frozenset()
    born_us: int = 0
    incarnation: int = 0
    manifest: int | None = None
    manifest_problem: str | None = None
    problems: tuple[str, ...] = ()
    problem_since_us: dict[str, int] = field(default_factory=lambda: NO_NUMBERS)
    goes_on: bool = False
    unread: bool = False  # what it holds is not known, and it was not just gone
    puts: int = 0
    opened_puts: int = 0
    file_puts: int = 0
    manifest_puts: int = 0  # the part of it that its present manifest names
    opened_sequence: int | None = None
    flushed: Timeline = field(default=NOTHING_FLUSHED, metadata={KEPT: FLUSHES_KEPT})
    dropped_puts: int = 0
    undated_us: int = 0
    newest_flush: int = 0
    files: int = 0
    size_bytes: int = 0
    entries_low: int | None = None
    entries_high: int | None = None
    counted_puts: int = 0
    lock: LockState | None = None
    lock_since_us: int = 0
    reopened_us: tuple[int, ...] = ()
    all_reopens: bool = True
    rocksdb_version: str | None = None
    families: tuple[str, ...] = ()
    forgets: bool = False  # its options let RocksDB drop live entries
    bulk_loading: bool = False  # up to 2.5: it was opened last for a restoration that begins
    families_in_use: tuple[str, ...] = ()
    options_written_us: int = 0
    oldest_data_us: int = (
        0  # of what it ever held, by its files' own properties, whole seconds; 0 = not known
    )
    missing: tuple[str, ...] = ()  # files that its manifest names
    has_had_files: bool = False  # a data file of it was seen in its directory
    is_elsewhere: bool = False  # a process had it open at two readings, and none was ever seen there
    missing_since_us: int = 0
    later: LaterFile | None = None  # at rest: the oldest file of a later time than its manifest's
    offsets: StoreOffsets | None = None
    offset_us: int = 0
    deletes: bool | None = None
    offsets_unread: bool = False
    found_us: int = 0
    heard: bool = False  # its making was announced, so what went before it was, too
    uncommitted_us: int = 0
    touched_us: int = 0
    seen_us: int = 0
    closed_us: int = 0
    taken_us: int = 0

    @property
    def knows_puts(self) -> bool:
        """Whether the last reading got the whole manifest: `puts`, `files` and `opened_sequence` are from it."""
        return self.manifest is not None and self.manifest_problem is None

    def lasting_problems(self, at_us: int, *, for_us: int) -> tuple[str, ...]:
        """List what has not been readable for so long, at every reading."""
        return tuple(x for x in self.problems if at_us - self.problem_since_us.get(x, at_us) >= for_us)

    def puts_at(self, at_us: int) -> int:
        """Return how many puts were on disk at a time; 0 before the first flush that is remembered."""
        known = self.dropped_puts
        for puts, written_us in self.flushed:
            if written_us > at_us:
                break
            known = puts
        return known


@dataclass(slots=True)
class PastDatabase:
    """An incarnation that ended. `flushed_us` is when data last reached its disk; 0 = never seen."""

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
    flushed_us: int = 0
    unread: bool = False
    counted_puts: int = 0


@dataclass(slots=True)
class Session:
    """One holding of a store by a process."""

    opened_us: int  # when the store was opened (by `LOG.old.<us>` or `IDENTITY` where they show it)
    identities: frozenset[str]  # RocksDB identities when it was opened (one per segment)
    puts_at_open: int  # flushed before it
    # checkpoint entry in force then; None = there was none, or it may have gone before
    offset_at_open: int | None
    created: bool  # the store was made by this session's opening
    attached: bool = False  # it was held at the agent's first reading: how it began is not known
    first: CheckpointClaim | None = None  # first checkpoint written in the session
    last: CheckpointClaim | None = None  # last checkpoint written in it
    released_us: int | None = None  # when it was released; None = it is held
    puts_at_release: int = 0  # flushed when it was released
    # what the last manifest of the session began with: up to 2.5 that is what was flushed when the restoration ended
    # (the bulk-load mode is switched off by a reopen)
    restored_puts: int = 0
    reopens: int = 0  # reopens within the session, beside the opening itself
    # up to 2.5: when it was reopened for a restoration that has not ended; 0 = it was not, or it ended
    bulk_load_us: int = 0
    # when checkpoints were written since then that a running task alone writes; the first ones
    bulk_load_commits: tuple[int, ...] = ()
    # the owner wiped the store and recreated it while it kept the task's lock (up to 2.5)
    wiped: bool = False
    # it did so soon after the opening, for want of an offset; any other wipe is of an offset out of range
    wiped_at_once: bool = False
    final_identities: frozenset[str] = frozenset()  # identities when it was released
    seen_us: int = 0  # when the reading was made that found it
    # it ended with a close: a checkpoint (or, 4.3+, a status) was written right before the release; None = it was too
    # short to know
    closed: bool | None = None
    # 4.3+: that close wrote an offset between its data and its status; True where no order is known; None where the
    # store holds no offset at all (it is trusted only if it has no changelog)
    closed_with_offset: bool | None = True
    # 4.3+: changelog offset that the store itself held when it was opened
    stored_offset_at_open: int | None = None
    # 4.3+: that offset is one of a source topic that stands in for the changelog
    by_source_topic: bool = False
    stored_offset: int | None = None  # 4.3+: the offset that was stored in this session; None = none so far
    # 4.3+: puts that its end left on disk behind the newest stored offset; None = order unknown
    uncovered_puts: int | None = None
    covering_offset: int | None = None  # 4.3+: that offset
    took_offset: bool = True  # 4.3+: one came, or may have come, with what was flushed in it
    # upper bound of live entries when the reading found it open; None = not known
    entries_at_open: int | None = None
    counted_at_open: int = 0  # flushed when these were counted
    # lower bound of live entries when it was released; None = not known
    entries_at_release: int | None = None
    counted_at_release: int = 0  # flushed when these were counted
    # 4.3+: segment -> highest sequence known when it was opened; a close writes above it. Kept of the newest session
    # only.
    status_floors: dict[str, int] = field(default_factory=lambda: NO_NUMBERS)
    # another task of the application stayed held when this store was released: an orderly close in a living process,
    # no crash. None until the next session shows it.
    outlived: bool | None = None
    # it was released while the agent was away; `released_us` is when that was found
    release_unseen: bool = False
    # all earlier sessions of the incarnation were seen and ended exactly (`closings.ended_exactly`)
    unbroken: bool = False
    exact: bool = False  # 4.3+: when it was released the files held what their offset says and nothing later
    kept_offsets: bool = False  # 4.3+: the store held its own offsets when it was released
    transactional: bool | None = None  # 4.4+: what its offsets showed then; None = nothing
    removed_us: int = 0  # when a file of its databases was last removed in it
    # shortest time between two such removals: no unlink takes longer on this volume; 0 = not known
    unlink_us: int = 0

    def is_of(self, identities: frozenset[str]) -> bool:
        """Return whether it was on an incarnation with one of these identities; a wipe in it made the present one."""
        goes_on = self.wiped and self.released_us is None
        return goes_on or not (
            self.identities.isdisjoint(identities) and self.final_identities.isdisjoint(identities)
        )


@dataclass(slots=True)
class Remains:
    """What is left of a database that lost its CURRENT, or its IDENTITY and its manifest."""

    path: str  # its directory
    since_us: int  # when it was first seen so
    files: int  # SST, blob and WAL files that are left
    expired: bool = False  # it is a segment that its owner took away while it held later ones: it had expired
    touched_us: int = 0  # when a name in its directory was last made or removed


@dataclass(slots=True)
class Store:
    """One store of a task: a key-value database or the segments of a windowed store.

    `forgotten_us`: sessions up to then are not known, because the agent was away; 0 = never. `openings`: of a windowed
    store, what was on disk when it was opened again. `unwatched`: the session that left what an opening
    trusted which came first in an absence, at `unwatched_us`; None = there was none, or nobody knows.
    """

    name: str
    segmented: bool
    databases: dict[str, Database] = field(default_factory=dict)
    past: tuple[PastDatabase, ...] = history(PAST_KEPT)
    sessions: tuple[Session, ...] = history(SESSIONS_KEPT)
    remains: dict[str, Remains] = field(default_factory=dict)
    free_seen: bool = False
    retired_puts: int = 0
    incarnation: int = 0
    forgotten_us: int = 0
    unwatched: Session | None = None
    unwatched_us: int = 0
    openings: tuple[Opening, ...] = history(OPENINGS_KEPT)

    @property
    def puts(self) -> int:
        """Flushed in this incarnation, over all segments, expired ones included."""
        return self.retired_puts + sum(database.puts for database in self.databases.values())

    def puts_at(self, at_us: int) -> int:
        """The same at an earlier time."""
        return self.retired_puts + sum(database.puts_at(at_us) for database in self.databases.values())

    @property
    def knows_puts(self) -> bool:
        """Whether `puts` says how much was flushed, and not only how much of it could be read."""
        return all(database.manifest_problem is None for database in self.databases.values())

    @property
    def keeps_offsets(self) -> bool:
        """Whether 4.3 or later wrote it, whatever release is configured: it keeps its offsets itself."""
        return any(database.offsets is not None for database in self.databases.values())

    @property
    def transactional(self) -> bool | None:
        """What the offsets that it keeps show of transactions; None = nothing."""
        said = {x.offsets.transactional for x in self.databases.values() if x.offsets is not None}
        return True if True in said else False if False in said else None

    @property
    def all_reopens(self) -> bool:
        """Whether every reopen of its databases left a trace, and stayed."""
        return all(database.all_reopens for database in self.databases.values())

    @property
    def identities(self) -> frozenset[str]:
        """RocksDB identities of what is there now."""
        return frozenset(x.identity for x in self.databases.values() if x.identity)

    @property
    def lock(self) -> LockState | None:
        """HELD if any database is held; UNKNOWN if one could not be asked; None without a LOCK file."""
        states = {x.lock for x in self.databases.values()}
        for state in _STRONGEST_FIRST:
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
