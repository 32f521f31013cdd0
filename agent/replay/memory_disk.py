"""An in-memory disk that a trace plays onto; answers the same questions as the real one."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field

from agent.inventory.disk import Entry, EntryKind, FileStat, LockState, ProcessFact, Unseen
from agent.replay.trace import Operation

FIRST_INODE = 1_000


@dataclass(slots=True)
class _Node:
    kind: EntryKind
    inode: int
    mtime_us: int
    content: bytearray = field(default_factory=bytearray)
    children: dict[str, _Node] = field(default_factory=dict)
    position: int = 0
    locked: bool = False


class MemoryDisk:
    """A state directory in memory.

    Implements `agent.inventory.disk.Disk`. Deterministic: inode numbers count up, times are the trace's own.
    """

    def __init__(self) -> None:
        """Make an empty state directory."""
        self._next_inode = FIRST_INODE
        self._root = self._node(EntryKind.DIRECTORY, 0)
        self._processes: dict[int, ProcessFact] = {}

    # -- the Disk protocol ------------------------------------------------------------------------------

    def list(self, path: str) -> tuple[Entry, ...] | Unseen:
        """List a directory in creation order."""
        node = self._find(path)
        if node is None:
            return Unseen.VANISHED
        if node.kind is not EntryKind.DIRECTORY:
            return Unseen.UNREADABLE
        return tuple(Entry(name, child.kind) for name, child in node.children.items())

    def stat(self, path: str) -> FileStat | Unseen:
        """Stat one entry."""
        node = self._find(path)
        if node is None:
            return Unseen.VANISHED
        return FileStat(node.kind, node.inode, len(node.content), node.mtime_us)

    def stamps(self, directories: Iterable[str]) -> tuple[int, ...] | Unseen:
        """Ask for inode and modification time of directories."""
        found = [self._find(path) for path in directories]
        if any(node is None for node in found):
            return Unseen.VANISHED
        return tuple(fact for node in found if node is not None for fact in (node.inode, node.mtime_us))

    def read_at(self, path: str, offset: int, length: int) -> bytes | Unseen:
        """Read part of a file."""
        node = self._find(path)
        if node is None:
            return Unseen.VANISHED
        if node.kind is not EntryKind.FILE:
            return Unseen.UNREADABLE
        return bytes(node.content[offset : offset + length])

    def read_dated(self, path: str, most_bytes: int) -> tuple[FileStat, bytes] | Unseen:
        """Stat a file and read it, unless it has more than `most_bytes`."""
        content = self.read_at(path, 0, most_bytes + 1)
        stat = self.stat(path)
        if isinstance(content, Unseen) or isinstance(stat, Unseen):
            return content if isinstance(content, Unseen) else Unseen.VANISHED
        return stat, content if stat.size_bytes <= most_bytes else b""

    def lock_state(self, path: str) -> LockState | Unseen:
        """Return whether the file that has this name now is locked."""
        node = self._find(path)
        if node is None:
            return Unseen.VANISHED
        return LockState.HELD if node.locked else LockState.FREE

    def stay_in(self, path: str) -> AbstractContextManager[None]:
        """Do nothing: no process changes this disk during a reading."""
        return nullcontext()

    def processes(self) -> tuple[ProcessFact, ...]:
        """List the processes that were made visible."""
        return tuple(self._processes.values())

    # -- playing operations -----------------------------------------------------------------------------

    def apply(self, operation: Operation, *, show_process: bool = False) -> None:
        """Play one operation; operations on nameless files leave no trace on a disk."""
        if operation.op == "start" or operation.op == "exit":
            self._process(operation, show_process)
        elif not operation.nameless:
            _PLAYERS[operation.op](self, operation)

    def _process(self, operation: Operation, show: bool) -> None:
        if operation.op == "exit":
            self._processes.clear()
        elif show:
            fact = ProcessFact(len(self._processes) + 1, operation.at_us, operation.version)
            self._processes[fact.pid] = fact

    def _mkdir(self, operation: Operation) -> None:
        self._add(operation.path, self._node(EntryKind.DIRECTORY, operation.at_us), operation.at_us)

    def _create(self, operation: Operation) -> None:
        self._add(operation.path, self._node(EntryKind.FILE, operation.at_us), operation.at_us)

    def _remove(self, operation: Operation) -> None:
        parent, name = self._parent(operation.path)
        if parent is not None and parent.children.pop(name, None) is not None:
            parent.mtime_us = operation.at_us

    def _rename(self, operation: Operation) -> None:
        source, name = self._parent(operation.path)
        target, new_name = self._parent(operation.to)
        if source is None or target is None or name not in source.children:
            return
        node = source.children.pop(name)
        target.children.pop(new_name, None)
        target.children[new_name] = node
        source.mtime_us = target.mtime_us = operation.at_us

    def _open_w(self, operation: Operation) -> None:
        node = self._find(operation.path)
        if node is not None:
            node.position = len(node.content) if operation.append else 0

    def _write(self, operation: Operation) -> None:
        node = self._find(operation.path)
        if node is None:
            return
        start = node.position if operation.offset is None else operation.offset
        end = start + len(operation.data)
        if start > len(node.content):
            node.content.extend(bytes(start - len(node.content)))
        node.content[start:end] = operation.data
        if operation.offset is None:
            node.position = end
        node.mtime_us = operation.at_us

    def _truncate(self, operation: Operation) -> None:
        node = self._find(operation.path)
        if node is None:
            return
        if operation.size < len(node.content):
            del node.content[operation.size :]
        else:
            node.content.extend(bytes(operation.size - len(node.content)))
        node.mtime_us = operation.at_us

    def _utime(self, operation: Operation) -> None:
        node = self._find(operation.path)
        if node is not None:
            node.mtime_us = operation.at_us

    def _lock(self, operation: Operation) -> None:
        node = self._find(operation.path)
        if node is not None:
            node.locked = operation.op == "lock"

    def _nothing(self, operation: Operation) -> None:
        """Opening for reading and closing change nothing on the disk."""

    # -- nodes ------------------------------------------------------------------------------------------

    def _node(self, kind: EntryKind, at_us: int) -> _Node:
        self._next_inode += 1
        return _Node(kind, self._next_inode, at_us)

    def _find(self, path: str) -> _Node | None:
        node = self._root
        for name in path.split("/") if path else ():
            child = node.children.get(name)
            if child is None:
                return None
            node = child
        return node

    def _parent(self, path: str) -> tuple[_Node | None, str]:
        parent, _, name = path.rpartition("/")
        return self._find(parent), name

    def _add(self, path: str, node: _Node, at_us: int) -> None:
        parent, name = self._parent(path)
        if parent is not None and name not in parent.children:
            parent.children[name] = node
            parent.mtime_us = at_us


_PLAYERS = {
    "mkdir": MemoryDisk._mkdir,
    "rmdir": MemoryDisk._remove,
    "unlink": MemoryDisk._remove,
    "create": MemoryDisk._create,
    "open_w": MemoryDisk._open_w,
    "open_r": MemoryDisk._nothing,
    "write": MemoryDisk._write,
    "truncate": MemoryDisk._truncate,
    "close_w": MemoryDisk._nothing,
    "rename": MemoryDisk._rename,
    "utime": MemoryDisk._utime,
    "lock": MemoryDisk._lock,
    "unlock": MemoryDisk._lock,
}
