"""A `Disk` over a real directory by plain pathlib reads, for tests that need no kernel subtleties."""

from __future__ import annotations

import pathlib
import stat
from contextlib import AbstractContextManager, nullcontext

from agent.inventory.disk import Disk, Entry, EntryKind, FileStat, LockState, ProcessFact, Unseen


class TreeDisk:
    """Reads below `root`; remembers every read as (path, offset, bytes got) in `reads`."""

    def __init__(self, root: pathlib.Path) -> None:
        self.root = root
        self.reads: list[tuple[str, int, int]] = []

    def list(self, path: str) -> tuple[Entry, ...] | Unseen:
        place = self.root / path
        try:
            return tuple(Entry(child.name, _kind(child.lstat().st_mode)) for child in place.iterdir())
        except FileNotFoundError:
            return Unseen.VANISHED
        except OSError:
            return Unseen.UNREADABLE

    def stat(self, path: str) -> FileStat | Unseen:
        try:
            found = (self.root / path).lstat()
        except OSError:
            return Unseen.VANISHED
        return FileStat(_kind(found.st_mode), found.st_ino, found.st_size, found.st_mtime_ns // 1000)

    def read_at(self, path: str, offset: int, length: int) -> bytes | Unseen:
        place = self.root / path
        try:
            if not stat.S_ISREG(place.lstat().st_mode):
                return Unseen.UNREADABLE
            with place.open("rb") as file:
                file.seek(offset)
                content = file.read(length)
        except FileNotFoundError:
            return Unseen.VANISHED
        except OSError:
            return Unseen.UNREADABLE
        self.reads.append((path, offset, len(content)))
        return content

    def read_dated(self, path: str, most_bytes: int) -> tuple[FileStat, bytes] | Unseen:
        return dated(self, path, most_bytes)

    def lock_state(self, path: str) -> LockState | Unseen:
        return LockState.UNKNOWN if (self.root / path).exists() else Unseen.VANISHED

    def stay_in(self, path: str) -> AbstractContextManager[None]:
        return nullcontext()

    def stay_on(self, path: str) -> AbstractContextManager[None]:
        return nullcontext()

    def processes(self) -> tuple[ProcessFact, ...]:
        return ()


def dated(disk: Disk, path: str, most_bytes: int) -> tuple[FileStat, bytes] | Unseen:
    """Read a file and look at it, in two steps."""
    content, found = disk.read_at(path, 0, most_bytes), disk.stat(path)
    if isinstance(content, Unseen):
        return content
    return found if isinstance(found, Unseen) else (found, content if found.size_bytes <= most_bytes else b"")


def _kind(mode: int) -> EntryKind:
    if stat.S_ISDIR(mode):
        return EntryKind.DIRECTORY
    if stat.S_ISREG(mode):
        return EntryKind.FILE
    return EntryKind.SYMLINK if stat.S_ISLNK(mode) else EntryKind.OTHER


class FilesDisk:
    """A `Disk` over a dict of path -> content; change `files` at will. Reads are kept as (path, offset, bytes)."""

    def __init__(self, files: dict[str, bytes]) -> None:
        self.files = dict(files)
        self.reads: list[tuple[str, int, bytes]] = []
        self._inodes: dict[tuple[str, int], int] = {}

    def list(self, path: str) -> tuple[Entry, ...] | Unseen:
        prefix = f"{path}/" if path else ""
        below = {name[len(prefix) :] for name in self.files if name.startswith(prefix)}
        if not below:
            return Unseen.VANISHED
        heads = {name.split("/", 1)[0]: "/" in name for name in sorted(below, reverse=True)}
        return tuple(
            Entry(name, EntryKind.DIRECTORY if deep else EntryKind.FILE) for name, deep in heads.items()
        )

    def stat(self, path: str) -> FileStat | Unseen:
        content = self.files.get(path)
        if content is None:
            return Unseen.VANISHED
        # a new content is a new file
        inode = self._inodes.setdefault((path, id(content)), len(self._inodes) + 1)
        return FileStat(EntryKind.FILE, inode, len(content), 0)

    def read_at(self, path: str, offset: int, length: int) -> bytes | Unseen:
        content = self.files.get(path)
        if content is None:
            return Unseen.VANISHED
        piece = content[offset : offset + length]
        self.reads.append((path, offset, piece))
        return piece

    def read_dated(self, path: str, most_bytes: int) -> tuple[FileStat, bytes] | Unseen:
        return dated(self, path, most_bytes)

    def lock_state(self, path: str) -> LockState | Unseen:
        return LockState.FREE if path in self.files else Unseen.VANISHED

    def stay_in(self, path: str) -> AbstractContextManager[None]:
        return nullcontext()

    def stay_on(self, path: str) -> AbstractContextManager[None]:
        return nullcontext()

    def processes(self) -> tuple[ProcessFact, ...]:
        return ()
