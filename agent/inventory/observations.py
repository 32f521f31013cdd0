"""Observations: what is there now, as values. Made by `agent.observe`, consumed by `agent.inventory.reduce`."""

from __future__ import annotations

from dataclasses import dataclass

from agent.contract.events import Source
from agent.inventory.disk import LockState, ProcessFact, Unseen
from agent.layout.checkpoint import OffsetEntry
from agent.layout.paths import StatePath


@dataclass(frozen=True, slots=True)
class Seen:
    """What every observation says of itself.

    Args of the dataclass:
        place: The path that was read.
        at_us: When, microseconds since the epoch.
        source: Why the reading happened.
        unseen: Why nothing was seen; None = seen.
    """

    place: StatePath
    at_us: int
    source: Source
    unseen: Unseen | None = None


@dataclass(frozen=True, slots=True)
class Removal(Seen):
    """A name was announced as removed. Kept as its own fact: what is there now may be its successor."""


@dataclass(frozen=True, slots=True)
class TaskReading(Seen):
    """A reading of a task directory.

    Args of the dataclass:
        inode: Inode of the directory.
        mtime_us: Its modification time.
        names: Direct children.
        lock: State of the task's `.lock`; None = there is no such file.
    """

    inode: int = 0
    mtime_us: int = 0
    names: frozenset[str] = frozenset()
    lock: LockState | None = None


@dataclass(frozen=True, slots=True)
class CheckpointReading(Seen):
    """A reading of `.checkpoint` or `.checkpoint_<store>`.

    Args of the dataclass:
        mtime_us: Modification time: when its content was written.
        entries: Parsed content.
        problem: Why it could not be parsed; None = well formed.
    """

    mtime_us: int = 0
    entries: tuple[OffsetEntry, ...] = ()
    problem: str | None = None


@dataclass(frozen=True, slots=True)
class Flush:
    """An SST file that the manifest names.

    Args of the dataclass:
        number: File number.
        sequence: Highest sequence number in it (0 = compacted, order unknown).
        written_at_us: mtime of the file; None if it is gone already.
        compacted: It came out of a compaction, not of a flush.
    """

    number: int
    sequence: int
    written_at_us: int | None
    compacted: bool = False


@dataclass(frozen=True, slots=True)
class StoreOffsets:
    """What the `offsets` column family of a store says (4.3 and later).

    Args of the dataclass:
        status: 1 open, 0 closed; None = no such entry.
        status_sequence: Its sequence number; 0 = compacted, order unknown.
        offsets: (topic-partition, offset, sequence) of every entry.
        position_sequence: Sequence of the `position` entry; None = no such entry.
        offset_file: Highest number of an SST that holds an offset entry.
        written_us: mtime of that SST; 0 = not known.
        removed_sequence: Sequence of the newest deletion of an offset that is still on disk; 0 = there is none.
    """

    status: int | None = None
    status_sequence: int = 0
    offsets: tuple[tuple[str, int, int], ...] = ()
    position_sequence: int | None = None
    offset_file: int = 0
    written_us: int = 0
    removed_sequence: int = 0

    @property
    def newest_sequence(self) -> int:
        """Sequence of the newest offset; 0 = there is none, or a compaction took the order away."""
        return max((sequence for _, _, sequence in self.offsets), default=0)

    @property
    def transactional(self) -> bool | None:
        """Whether the store was transactional when its newest offset was written; None = the entries do not show it.

        Without transactions an opening puts the status before any offset, and a close puts it behind the last one;
        with them nothing ever writes a status, and an old one stays.

        Source:
            AbstractColumnFamilyAccessor.open and close, RocksDBTransactionBuffer (4.4.0).
        """
        if self.status is None:
            return True if self.offsets or self.position_sequence is not None else None
        newest = max(self.newest_sequence, self.removed_sequence)
        if self.status or not newest:
            return False if self.status else None
        return newest > self.status_sequence

    @property
    def lost_its_offset(self) -> bool:
        """Whether the offset was taken away, as a corrupted task's is, and no later one was written."""
        return self.removed_sequence > 0 and not self.offsets


@dataclass(frozen=True, slots=True)
class DatabaseReading(Seen):
    """A reading of one RocksDB directory: a store, or one segment of a windowed store.

    Args of the dataclass:
        inode: Inode of the directory.
        identity: Content of `IDENTITY`; None if there is none (yet), and no database.
        touched_us: mtime of the directory: when a name in it was last made or removed.
        identity_born_us: mtime of `IDENTITY`; 0 = not known.
        unnamed: `IDENTITY` is missing or says nothing, and CURRENT and the manifest make it a database all the same;
            `identity` is what the manifest says, or stands in for it.
        manifest: Number of the current manifest; None if it cannot be read.
        manifest_problem: Why the manifest could not be read to its end: what is said of files and numbers is then
            nothing, or too little.
        problems: Everything that is there and could not be read, `FILE: KIND: sentence` each; see `problem_kind`.
        goes_on: The manifest is long, and read on at the next reading.
        waits: Its turn has not come yet.
        puts: Highest sequence number ever flushed to a data file that this manifest names: a lower bound.
        zeroed_puts: What had been flushed at most when the store was opened, if a compaction had set sequence
            numbers to 0 by then; else 0.
        opened_puts: What was flushed when the manifest began.
        opened_sequence: What had been given out when a process opened the store: all up to it is on disk or gone,
            what is written since is above it; None = not known.
        flushes: Data files the manifest added, oldest first, those of the snapshot included.
        files: Number of live SST and blob files.
        size_bytes: Their size.
        entries_low: Lower bound of live entries; None = not read.
        entries_high: Upper bound of live entries; None = not read.
        deletions: Deletions in the live data files; None = not read.
        lock: State of `LOCK`; None = there is no such file.
        reopened_us: Times of `LOG.old.<us>`: every reopen of this incarnation, oldest first.
        all_reopens: False if RocksDB is configured to keep fewer of them, or to put them elsewhere: there may be more.
        rocksdb_version: From the newest `OPTIONS-*`.
        families: Column families named there.
        forgets: RocksDB may drop live entries by itself.
        bulk_loading: The newest opening was one of a restoration that begins (up to 2.5).
        families_in_use: Column families that have files, or had some since it was opened.
        options_written_us: mtime of that file.
        announced_us: When a process closed the store's LOCK (it was held until then); 0 = not announced.
        leftovers: SST, blob and WAL files in a directory without CURRENT, or without IDENTITY and a manifest.
        missing_files: SST and blob files that a stable manifest names and that are not there.
        oldest_data_us: Time of the oldest data in live SST files, by what RocksDB wrote into them: no copy changes it.
            Whole seconds; 0 = not known.
        offsets: The `offsets` family; None = the store has none or it was not read.
        offsets_unread: It was not read, or not all of it.
    """

    inode: int = 0
    touched_us: int = 0
    identity: str | None = None
    identity_born_us: int = 0
    unnamed: bool = False
    manifest: int | None = None
    manifest_problem: str | None = None
    problems: tuple[str, ...] = ()
    goes_on: bool = False
    waits: bool = False
    puts: int = 0
    zeroed_puts: int = 0
    opened_puts: int = 0
    opened_sequence: int | None = None
    flushes: tuple[Flush, ...] = ()
    files: int = 0
    size_bytes: int = 0
    entries_low: int | None = None
    entries_high: int | None = None
    deletions: int | None = None
    lock: LockState | None = None
    reopened_us: tuple[int, ...] = ()
    all_reopens: bool = True
    rocksdb_version: str | None = None
    families: tuple[str, ...] = ()
    forgets: bool = False
    bulk_loading: bool = False
    families_in_use: tuple[str, ...] = ()
    options_written_us: int = 0
    announced_us: int = 0
    leftovers: int = 0
    missing_files: tuple[str, ...] = ()
    oldest_data_us: int = 0
    offsets: StoreOffsets | None = None
    offsets_unread: bool = False


CUT = "cut"
DAMAGE = frozenset({"corrupt", "gone", CUT})
"""Kinds of problems that a start finds, too: RocksDB refuses what is corrupt and a manifest that is gone, and opens
without what was cut off."""

ELSEWHERE = "elsewhere"
KNOWN_GAPS = frozenset({"vanished", ELSEWHERE})
"""Kinds that hide counters only: which files are gone or lie elsewhere is known."""


def problem_kind(problem: str) -> str:
    """Return the kind of one of `DatabaseReading.problems`."""
    return problem.split(": ", 2)[1]


@dataclass(frozen=True, slots=True)
class LockReading(Seen):
    """The answer to a lock query on `.lock` of an application or task, or `LOCK` of a database.

    Args of the dataclass:
        lock: The state; None = the file is not there.
        inode: Inode of the lock file; 0 = not there.
        announced: A process closed the file, having opened it for writing: a lock was tried or let go.
    """

    lock: LockState | None = None
    inode: int = 0
    announced: bool = False


@dataclass(frozen=True, slots=True)
class ApplicationReading(Seen):
    """A reading of an application directory.

    Args of the dataclass:
        inode: Inode of the directory.
        mtime_us: When a task, or a file beside the tasks, was made or removed last.
        process_id: From `kafka-streams-process-metadata`; None if absent or malformed.
        process_problem: Why that file could not be parsed.
        lock: State of the application's `.lock`; None = there is no such file.
        lock_inode: Its inode.
        processes: Visible processes.
    """

    inode: int = 0
    mtime_us: int = 0
    process_id: str | None = None
    process_problem: str | None = None
    lock: LockState | None = None
    lock_inode: int = 0
    processes: tuple[ProcessFact, ...] = ()


Observation = Removal | TaskReading | CheckpointReading | DatabaseReading | LockReading | ApplicationReading
