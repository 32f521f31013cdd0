"""Observations: what is there now, as values. Made by `agent.observe`, consumed by `agent.inventory.reduce`."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from agent.contract.events import Source
from agent.inventory.disk import LockState, ProcessFact, Unseen
from agent.layout.checkpoint import OffsetEntry
from agent.layout.paths import StatePath


@dataclass(frozen=True, slots=True)
class Seen:
    """What every observation says of itself."""

    place: StatePath  # the path that was read
    at_us: int  # when, microseconds since the epoch
    source: Source  # why the reading happened
    unseen: Unseen | None = None  # why nothing was seen; None = seen


@dataclass(frozen=True, slots=True)
class Removal(Seen):
    """A name was announced as removed. Kept as its own fact: what is there now may be its successor."""


@dataclass(frozen=True, slots=True)
class TaskReading(Seen):
    """A reading of a task directory."""

    inode: int = 0  # inode of the directory
    mtime_us: int = 0  # its modification time
    names: frozenset[str] = frozenset()  # direct children
    lock: LockState | None = None  # state of the task's `.lock`; None = there is no such file


@dataclass(frozen=True, slots=True)
class CheckpointReading(Seen):
    """A reading of `.checkpoint` or `.checkpoint_<store>`."""

    mtime_us: int = 0  # modification time: when its content was written
    entries: tuple[OffsetEntry, ...] = ()  # parsed content
    problem: str | None = None  # why it could not be parsed; None = well formed


class Flush(NamedTuple):
    """An SST file that the manifest names. A tuple: each reading of a store makes dozens."""

    number: int  # file number
    sequence: int  # highest sequence number in it (0 = compacted, order unknown)
    written_at_us: int | None  # mtime of the file; None if it is gone already
    compacted: bool = False  # it came out of a compaction, not of a flush


@dataclass(frozen=True, slots=True)
class LaterFile:
    """A file that a store got after its manifest's last change, and of which that manifest knows nothing."""

    name: str  # file name
    written_us: int  # its mtime
    found_us: int = field(compare=False)  # when it was first read


@dataclass(frozen=True, slots=True)
class StoreOffsets:
    """What the `offsets` column family of a store says (4.3 and later)."""

    status: int | None = None  # 1 open, 0 closed; None = no such entry
    status_sequence: int = 0  # its sequence number; 0 = compacted, order unknown
    offsets: tuple[tuple[str, int, int], ...] = ()  # (topic-partition, offset, sequence) of every entry
    position_sequence: int | None = None  # sequence of the `position` entry; None = no such entry
    offset_file: int = 0  # highest number of an SST that holds an offset entry
    written_us: int = 0  # mtime of that SST; 0 = not known
    # sequence of the newest deletion of an offset that is still on disk; 0 = there is none
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


@dataclass(frozen=True, slots=True)
class DatabaseReading(Seen):
    """A reading of one RocksDB directory: a store, or one segment of a windowed store."""

    inode: int = 0  # inode of the directory
    touched_us: int = 0  # mtime of the directory: when a name in it was last made or removed
    identity: str | None = None  # content of `IDENTITY`; None if there is none (yet), and no database
    identity_born_us: int = 0  # mtime of `IDENTITY`; 0 = not known
    # `IDENTITY` is missing or says nothing, and CURRENT and the manifest make it a database all the same; `identity`
    # is what the manifest says, or stands in for it
    unnamed: bool = False
    manifest: int | None = None  # number of the current manifest; None if it cannot be read
    # why the manifest could not be read to its end: what is said of files and numbers is then nothing, or too little
    manifest_problem: str | None = None
    # everything that is there and could not be read, `FILE: KIND: sentence` each; see `problem_kind`
    problems: tuple[str, ...] = ()
    goes_on: bool = False  # the manifest is long, and read on at the next reading
    waits: bool = False  # its turn has not come yet
    # highest sequence number ever flushed to a data file that this manifest names: a lower bound
    puts: int = 0
    # what had been flushed at most when the store was opened, if a compaction had set sequence numbers to 0 by then;
    # else 0
    zeroed_puts: int = 0
    opened_puts: int = 0  # what was flushed when the manifest began
    # what had been given out when a process opened the store: all up to it is on disk or gone, what is written since
    # is above it; None = not known
    opened_sequence: int | None = None
    # data files the manifest added, oldest first, those of the snapshot included
    flushes: tuple[Flush, ...] = ()
    files: int = 0  # number of live SST and blob files
    size_bytes: int = 0  # their size
    entries_low: int | None = None  # lower bound of live entries; None = not read
    entries_high: int | None = None  # upper bound of live entries; None = not read
    deletions: int | None = None  # deletions in the live data files; None = not read
    lock: LockState | None = None  # state of `LOCK`; None = there is no such file
    # times of `LOG.old.<us>`: every reopen of this incarnation, oldest first
    reopened_us: tuple[int, ...] = ()
    # False if RocksDB is configured to keep fewer of them, or to put them elsewhere: there may be more
    all_reopens: bool = True
    rocksdb_version: str | None = None  # from the newest `OPTIONS-*`
    families: tuple[str, ...] = ()  # column families named there
    forgets: bool = False  # RocksDB may drop live entries by itself
    bulk_loading: bool = False  # the newest opening was one of a restoration that begins (up to 2.5)
    families_in_use: tuple[str, ...] = ()  # column families that have files, or had some since it was opened
    options_written_us: int = 0  # mtime of that file
    # when a process closed the store's LOCK (it was held until then); 0 = not announced
    announced_us: int = 0
    # SST, blob and WAL files in a directory without CURRENT, or without IDENTITY and a manifest
    leftovers: int = 0
    # SST and blob files that a stable manifest names and that are not there
    missing_files: tuple[str, ...] = ()
    # the oldest file of a later time than the manifest's; None = none, or a process holds the store
    later: LaterFile | None = None
    # time of the oldest data in live SST files, by what RocksDB wrote into them: no copy changes it. Whole seconds; 0
    # = not known.
    oldest_data_us: int = 0
    offsets: StoreOffsets | None = None  # the `offsets` family; None = the store has none or it was not read
    offsets_unread: bool = False  # it was not read, or not all of it


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
    """The answer to a lock query on `.lock` of an application or task, or `LOCK` of a database."""

    lock: LockState | None = None  # the state; None = the file is not there
    inode: int = 0  # inode of the lock file; 0 = not there
    # A process closed the file, having opened it for writing: a lock was tried or let go
    announced: bool = False


@dataclass(frozen=True, slots=True)
class ApplicationReading(Seen):
    """A reading of an application directory."""

    inode: int = 0  # inode of the directory
    mtime_us: int = 0  # when a task, or a file beside the tasks, was made or removed last
    process_id: str | None = None  # from `kafka-streams-process-metadata`; None if absent or malformed
    process_hidden: Unseen | None = None  # why that file could not be read, if it is there
    process_problem: str | None = None  # why it names none; an empty one is being written
    lock: LockState | None = None  # state of the application's `.lock`; None = there is no such file
    lock_inode: int = 0  # its inode
    processes: tuple[ProcessFact, ...] = ()  # visible processes


Observation = Removal | TaskReading | CheckpointReading | DatabaseReading | LockReading | ApplicationReading
