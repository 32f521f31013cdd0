"""The one way to read a disk: `Disk` and the values it answers with.

Two implementations exist: the kernel's (`agent.observe.kernel_disk`) and the replayed one
(`agent.replay.memory_disk`). "Could not read" is a value (`Unseen`), never an exception.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple, Protocol


class Unseen(StrEnum):
    """Why a reading gave nothing."""

    VANISHED = "vanished"
    DENIED = "denied"
    TOO_LARGE = "too-large"
    RACED = "raced"
    UNREADABLE = "unreadable"


SEEN = "seen"
"""Outcome of a read that saw something; the others are those of `Unseen`."""


class EntryKind(StrEnum):
    """Kind of a directory entry; symbolic links are never followed."""

    DIRECTORY = "directory"
    FILE = "file"
    SYMLINK = "symlink"
    OTHER = "other"


class LockState(StrEnum):
    """Answer of a lock query (`F_GETLK`); never taken, only asked."""

    HELD = "held"
    FREE = "free"
    UNKNOWN = "unknown"


class Entry(NamedTuple):
    """One name in a directory listing. A tuple, as `FileStat`: of these a reading makes dozens."""

    name: str
    kind: EntryKind


class FileStat(NamedTuple):
    """What `lstat` says."""

    kind: EntryKind  # kind of the entry
    inode: int  # inode number
    size_bytes: int  # size
    mtime_us: int  # modification time, microseconds since the epoch


@dataclass(frozen=True, slots=True)
class ProcessFact:
    """A visible process that works on the state directory."""

    pid: int  # process id in the agent's PID namespace
    started_at_us: int  # start time, microseconds since the epoch
    kafka_streams_version: str | None = None  # from the open `kafka-streams-<version>.jar`; None if not seen
    # application directories that it has files open in; empty = not known
    applications: frozenset[str] = frozenset()

    def works_on(self, application: str) -> bool:
        """Return whether it may be a process of this application."""
        return not self.applications or application in self.applications


class Files(Protocol):
    """The files of a state directory, as the readers of a database ask for them."""

    def stat(self, path: str) -> FileStat | Unseen:
        """Stat one entry without following a symbolic link."""
        ...

    def read_at(self, path: str, offset: int, length: int) -> bytes | Unseen:
        """Read at most `length` bytes of a regular file from `offset`; shorter at its end.

        Never follows a symbolic link, never blocks on a FIFO or device (UNREADABLE).
        """
        ...

    def stay_on(self, path: str) -> AbstractContextManager[None]:
        """Read from a file, in pieces, of the very file that is there now; what is appended later is not seen.

        Until the context ends; no error if it is gone.
        """
        ...


class Disk(Files, Protocol):
    """A state directory to read. Paths are relative to it, `/`-separated; "" is the root.

    No method raises for anything that a disk can do to it.
    """

    def list(self, path: str) -> tuple[Entry, ...] | Unseen:
        """List a directory, unsorted; Unseen.UNREADABLE if it is not a directory."""
        ...

    def read_dated(self, path: str, most_bytes: int) -> tuple[FileStat, bytes] | Unseen:
        """Stat a regular file and read it, both through one descriptor: content and time belong together.

        Never follows a symbolic link, never blocks on a FIFO or device (UNREADABLE). Of one with more than `most_bytes`
        nothing is read.
        """
        ...

    def lock_state(self, path: str) -> LockState | Unseen:
        """Ask whether a process holds a write lock on the file; takes nothing. VANISHED if it is not there."""
        ...

    def stay_in(self, path: str) -> AbstractContextManager[None]:
        """Ask everything about what is in a directory of the very directory that is there now.

        Until the context ends; cheaper, and what is read belongs to one life of the directory. No error if it is gone.
        """
        ...

    def processes(self) -> tuple[ProcessFact, ...]:
        """List visible processes with files open below the state directory; empty if none can be seen."""
        ...


class ListableDisk(Disk, Protocol):
    """A disk that is walked over again and again: where nothing changed, that has to be cheap to find out."""

    def stamps(self, directories: Iterable[str]) -> tuple[int, ...] | Unseen:
        """Ask for inode and modification time (microseconds) of directories in one another, both of each in turn.

        Cheaper than one `stat` each. Of one that cannot be seen, why.
        """
        ...
