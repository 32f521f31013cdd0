"""The real state directory, seen through the kernel. Reads only; follows no symbolic link; never blocks.

Every reading opens the path one component at a time below the root. A component that is swapped for a
symbolic link therefore ends the reading instead of leading it out of the state directory.
"""

from __future__ import annotations

import errno
import fcntl
import os
import stat
import struct
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import TypeVar

from agent.inventory.disk import Entry, EntryKind, FileStat, LockState, ProcessFact, Unseen

MAX_ENTRIES = 200_000
"""Longest listing that is answered (design size: 10,000 task directories); a longer one is TOO_LARGE."""

_WAY = os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC  # O_PATH needs search permission only
_ROOT = os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC  # the root itself may be configured as a symbolic link
_LISTING = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_READING = os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NOCTTY

_UNSEEN = {
    errno.ENOENT: Unseen.VANISHED,
    errno.ENOTDIR: Unseen.VANISHED,
    errno.EACCES: Unseen.DENIED,
    errno.EPERM: Unseen.DENIED,
}

_KINDS = {
    stat.S_IFDIR: EntryKind.DIRECTORY,
    stat.S_IFREG: EntryKind.FILE,
    stat.S_IFLNK: EntryKind.SYMLINK,
}
_DETOURS = frozenset({"", ".", ".."})

# struct flock of 64-bit Linux (x86-64, aarch64): short l_type, short l_whence, off_t l_start, off_t l_len,
# pid_t l_pid; `0q` pads the end to the alignment of off_t, as the C compiler does.
_FLOCK = struct.Struct("@hhqqi0q")
_WHOLE_FILE = _FLOCK.pack(fcntl.F_RDLCK, os.SEEK_SET, 0, 0, 0)

_NOT_REGULAR = "not a regular file"

Answer = TypeVar("Answer")


class KernelDisk:
    """`agent.inventory.disk.Disk` on a real state directory.

    Cost: about 20 microseconds for a reading of a file five levels down.
    """

    def __init__(self, root: Path, processes: Callable[[], tuple[ProcessFact, ...]] = tuple) -> None:
        """Remember what to read, and how to look for processes; nothing is opened yet, and the root need not exist."""
        self._root = os.fspath(root)
        self._processes = processes
        self._kept: tuple[str, int] | None = None  # directory that is kept open, its descriptor
        self._kept_file: tuple[str, int, int] | None = None  # file that is, its descriptor, its size then

    def list(self, path: str) -> tuple[Entry, ...] | Unseen:
        """List a directory, unsorted; UNREADABLE if it is not one, TOO_LARGE beyond `MAX_ENTRIES`."""
        try:
            if self._kept is not None and path == self._kept[0]:
                return _listing(self._kept[1], ".")
            return self._beside(path, _listing)
        except (OSError, ValueError) as error:
            return _unseen(error)

    def stat(self, path: str) -> FileStat | Unseen:
        """Stat one entry without following a symbolic link."""
        try:
            if self._kept is not None and path == self._kept[0]:
                kept = os.fstat(self._kept[1])
                return _file_stat(kept) if kept.st_nlink else Unseen.VANISHED
            return _file_stat(self._beside(path, _stat))
        except (OSError, ValueError) as error:
            return _unseen(error)

    def stamps(self, directories: Iterable[str]) -> tuple[int, ...] | Unseen:
        """Ask for inode and modification time of directories that lie in one another; each is opened once."""
        opened: dict[str, int] = {}
        found: list[int] = []
        try:
            for path in directories:
                parent, _, name = path.rpartition("/")
                if name in _DETOURS:
                    raise ValueError(path)
                this = os.stat(name, dir_fd=self._open_once(parent, opened), follow_symlinks=False)
                found += (this.st_ino, this.st_mtime_ns // 1000)
        except (OSError, ValueError) as error:
            return _unseen(error)
        finally:
            for descriptor in opened.values():
                os.close(descriptor)
        return tuple(found)

    def _open_once(self, path: str, opened: dict[str, int]) -> int:
        """Open a directory from the one that holds it, unless `opened` has it. Raises as `_open_parent`."""
        known = opened.get(path)
        if known is not None:
            return known
        if not path:
            descriptor = os.open(self._root, _ROOT)
        else:
            parent, _, name = path.rpartition("/")
            if name in _DETOURS:
                raise ValueError(path)
            descriptor = os.open(name, _WAY, dir_fd=self._open_once(parent, opened))
        opened[path] = descriptor
        return descriptor

    def read_at(self, path: str, offset: int, length: int) -> bytes | Unseen:
        """Read at most `length` bytes of a regular file from `offset`; shorter at its end."""
        if self._kept_file is not None and path == self._kept_file[0]:
            _, descriptor, size = self._kept_file
            try:
                return _read(descriptor, offset, min(length, size - offset))
            except (OSError, ValueError) as error:
                return _unseen(error)
        return self._ask_file(
            path, lambda file, found: _read(file, offset, min(length, found.st_size - offset))
        )

    def read_dated(self, path: str, most_bytes: int) -> tuple[FileStat, bytes] | Unseen:
        """Stat a regular file and read it, unless it has more than `most_bytes`."""

        def ask(file: int, found: os.stat_result) -> tuple[FileStat, bytes]:
            return _file_stat(found), _read(file, 0, found.st_size) if found.st_size <= most_bytes else b""

        return self._ask_file(path, ask)

    def lock_state(self, path: str) -> LockState | Unseen:
        """Ask whether a process holds a write lock on the file; takes nothing."""
        return self._ask_file(path, lambda file, _: query_lock(file))

    def _ask_file(self, path: str, ask: Callable[[int, os.stat_result], Answer]) -> Answer | Unseen:
        """Ask about a regular file that is opened for this."""
        try:
            descriptor, found = self._beside(path, _open_regular_file)
            try:
                return ask(descriptor, found)
            finally:
                os.close(descriptor)
        except (OSError, ValueError) as error:
            return _unseen(error)

    @contextmanager
    def stay_in(self, path: str) -> Iterator[None]:
        """Keep a directory open, or one in it. Not for longer than a reading: what is open cannot be unmounted."""
        try:
            descriptor, _ = _open_parent(self._root, f"{path}/file", self._kept)
        except (OSError, ValueError):
            yield  # every reading will find that out by itself
            return
        before, self._kept = self._kept, (path, descriptor)
        try:
            yield
        finally:
            self._kept = before
            os.close(descriptor)

    @contextmanager
    def stay_on(self, path: str) -> Iterator[None]:
        """Keep a file open, one at a time; for reading it in pieces this saves half of the system calls."""
        try:
            descriptor, found = self._beside(path, _open_regular_file)
        except (OSError, ValueError):
            yield  # every reading will find that out by itself
            return
        self._kept_file = (path, descriptor, found.st_size)
        try:
            yield
        finally:
            self._kept_file = None
            os.close(descriptor)

    def processes(self) -> tuple[ProcessFact, ...]:
        """List visible processes with files open below the state directory; empty if none can be seen."""
        return self._processes()

    def _beside(self, path: str, ask: Callable[[int, str], Answer]) -> Answer:
        """Ask about a name in the directory that holds it: the one that is kept open, or opened for this."""
        if self._kept is not None:
            directory, _, name = path.rpartition("/")
            if directory == self._kept[0] and name not in _DETOURS:
                return ask(self._kept[1], name)
        parent, name = _open_parent(self._root, path, self._kept)
        try:
            return ask(parent, name)
        finally:
            os.close(parent)


def query_lock(descriptor: int) -> LockState:
    """Ask whether another process holds a write lock on a file that is open for reading.

    Closing it afterwards is harmless: a close drops the record locks of the closing process only, and the agent has
    none. UNKNOWN where the file system does not say (no lock service).

    Source:
        FileChannel.lock of the JVM and RocksDB's LockOrUnlock both take an fcntl write lock over the whole
        file; a query of type F_RDLCK conflicts with exactly that and needs no write permission.
    """
    try:
        answer = fcntl.fcntl(descriptor, fcntl.F_GETLK, _WHOLE_FILE)
    except OSError:
        return LockState.UNKNOWN
    return LockState.FREE if _FLOCK.unpack(answer)[0] == fcntl.F_UNLCK else LockState.HELD


def _stat(parent: int, name: str) -> os.stat_result:
    return os.stat(name, dir_fd=parent, follow_symlinks=False)


def _open_regular_file(parent: int, name: str) -> tuple[int, os.stat_result]:
    """Open a regular file for reading; give its descriptor and what it is. ENXIO for anything else."""
    # Statted before the open: opening a FIFO would wake its writer, opening a device may act on it.
    if not stat.S_ISREG(os.stat(name, dir_fd=parent, follow_symlinks=False).st_mode):
        raise OSError(errno.ENXIO, _NOT_REGULAR)
    descriptor = os.open(name, _READING, dir_fd=parent)
    try:
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode):  # and again: the name may have changed hands in between
            raise OSError(errno.ENXIO, _NOT_REGULAR)
    except OSError:
        os.close(descriptor)
        raise
    return descriptor, found


def _file_stat(found: os.stat_result) -> FileStat:
    kind = _KINDS.get(stat.S_IFMT(found.st_mode), EntryKind.OTHER)
    return FileStat(kind, found.st_ino, found.st_size, found.st_mtime_ns // 1000)


def _open_parent(root: str, path: str, kept: tuple[str, int] | None) -> tuple[int, str]:
    """Open the directory that holds `path`, component by component; give its descriptor and the last name.

    `kept`: a directory that is open, and its descriptor: below it the way begins there. A plain function and not a
    context manager: that took a quarter of a reading of a file.

    Raises:
        OSError: a component is gone, denied or not a directory.
        ValueError: the path leads out of the root, or no file can have this name.
    """
    *way, name = path.split("/") if path else ["."]
    if path and not _DETOURS.isdisjoint((*way, name)):
        raise ValueError(path)
    if kept is not None and path.startswith(f"{kept[0]}/"):
        way, descriptor = way[kept[0].count("/") + 1 :], os.dup(kept[1])
    else:
        descriptor = os.open(root, _ROOT)
    try:
        for component in way:
            below = os.open(component, _WAY, dir_fd=descriptor)
            os.close(descriptor)
            descriptor = below
    except (OSError, ValueError):  # ValueError: a name that no file can have
        os.close(descriptor)
        raise
    return descriptor, name


def _listing(parent: int, name: str) -> tuple[Entry, ...] | Unseen:
    try:
        descriptor = os.open(name, _LISTING, dir_fd=parent)
    except NotADirectoryError:  # the name itself; a file further up the path is VANISHED
        return Unseen.UNREADABLE
    try:
        with os.scandir(descriptor) as entries:
            found = [
                Entry(x.name, EntryKind.FILE if x.is_file(follow_symlinks=False) else _entry_kind(x))
                for x in islice(entries, MAX_ENTRIES + 1)
            ]
    finally:
        os.close(descriptor)
    return tuple(found) if len(found) <= MAX_ENTRIES else Unseen.TOO_LARGE


def _read(descriptor: int, offset: int, wanted: int) -> bytes:
    # `wanted` is cut to the size: `pread` reserves all that is asked for, and a damaged file may ask for much.
    if wanted <= 0:
        return b""
    content = os.pread(descriptor, wanted, offset)
    while len(content) < wanted:  # some file systems (FUSE) answer in parts
        more = os.pread(descriptor, wanted - len(content), offset + len(content))
        if not more:
            break
        content += more
    return content


def _entry_kind(entry: os.DirEntry[str]) -> EntryKind:
    if entry.is_dir(follow_symlinks=False):
        return EntryKind.DIRECTORY
    return EntryKind.SYMLINK if entry.is_symlink() else EntryKind.OTHER


def _unseen(error: OSError | ValueError) -> Unseen:
    if isinstance(error, OSError):
        return _UNSEEN.get(error.errno or 0, Unseen.UNREADABLE)
    return Unseen.VANISHED  # a name that no file can have (NUL, not encodable) or that leads out of the root
