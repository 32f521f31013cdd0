"""Disks that remember what was read of them: a directory, and files in memory."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

from agent.inventory.disk import Disk, Entry, EntryKind, FileStat, LockState, ProcessFact, Unseen
from agent.observe.kernel_disk import KernelDisk


class TreeDisk(KernelDisk):
    """A directory as it is; remembers every read as (path, offset, bytes got) in `reads`."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self.root = root
        self.reads: list[tuple[str, int, int]] = []

    def read_at(self, path: str, offset: int, length: int) -> bytes | Unseen:
        content = super().read_at(path, offset, length)
        if isinstance(content, bytes):
            self.reads.append((path, offset, len(content)))
        return content


def dated(disk: Disk, path: str, most_bytes: int) -> tuple[FileStat, bytes] | Unseen:
    """Read a file and look at it, in two steps."""
    content, found = disk.read_at(path, 0, most_bytes), disk.stat(path)
    if isinstance(content, Unseen):
        return content
    return found if isinstance(found, Unseen) else (found, content if found.size_bytes <= most_bytes else b"")


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
