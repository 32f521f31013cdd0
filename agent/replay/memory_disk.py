"""An in-memory disk that a trace plays onto; answers the same questions as the real one."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field

from agent.inventory.disk import Entry, EntryKind, FileStat, LockState, ProcessFact, Unseen
from agent.replay.trace import Encoded, Operation

FIRST_INODE = 1_000
_NO_CONTEXT = nullcontext()


@dataclass(slots=True)
class _Node:
    """A file or directory; the content of a file that was written at once stays encoded."""

    kind: EntryKind
    inode: int
    mtime_us: int
    content: bytearray | Encoded = field(default_factory=bytearray)
    children: dict[str, _Node] = field(default_factory=dict)
    position: int = 0
    locked: bool = False

    def decoded(self) -> bytearray:
        """Give the content to be changed in place."""
        if isinstance(self.content, Encoded):
            self.content = bytearray(self.content[:])
        return self.content


class MemoryDisk:
    """A state directory in memory.

    Implements `agent.inventory.disk.Disk`. Deterministic: inode numbers count up, times are the trace's own.
    """

    def __init__(self) -> None:
        self._next_inode = FIRST_INODE
        self._nodes = {"": self._node(EntryKind.DIRECTORY, 0)}  # by path
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
        return _NO_CONTEXT

    def stay_on(self, path: str) -> AbstractContextManager[None]:
        """Do nothing, for the same reason."""
        return _NO_CONTEXT

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
        if parent is not None and (node := parent.children.pop(name, None)) is not None:
            self._take(operation.path, node)
            parent.mtime_us = operation.at_us

    def _rename(self, operation: Operation) -> None:
        source, name = self._parent(operation.path)
        target, new_name = self._parent(operation.to)
        if source is None or target is None or name not in source.children:
            return
        if operation.to.startswith(f"{operation.path}/"):
            return  # a directory cannot be moved into itself
        node = source.children.pop(name)
        taken = self._take(operation.path, node)
        replaced = target.children.pop(new_name, None)
        if replaced is not None:
            self._take(operation.to, replaced)
        target.children[new_name] = node
        self._nodes.update((operation.to + below, one) for below, one in taken.items())
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
        if start == 0 and isinstance(operation.data, Encoded) and end >= len(node.content):
            node.content = operation.data
        else:
            content = node.decoded()
            if start > len(content):
                content.extend(bytes(start - len(content)))
            content[start:end] = operation.data[:]
        if operation.offset is None:
            node.position = end
        node.mtime_us = operation.at_us

    def _truncate(self, operation: Operation) -> None:
        node = self._find(operation.path)
        if node is None:
            return
        if operation.size != len(node.content):
            content = node.decoded()
            content.extend(bytes(max(0, operation.size - len(content))))
            del content[operation.size :]
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
        return self._nodes.get(path)

    def _parent(self, path: str) -> tuple[_Node | None, str]:
        parent, _, name = path.rpartition("/")
        return self._nodes.get(parent) if name else None, name

    def _take(self, path: str, node: _Node) -> dict[str, _Node]:
        """Forget where a node and all below it are; give them by the rest of their paths."""
        paths = [path]
        if node.children:
            paths += [each for each in self._nodes if each.startswith(f"{path}/")]
        return {each[len(path) :]: self._nodes.pop(each) for each in paths}

    def _add(self, path: str, node: _Node, at_us: int) -> None:
        parent, name = self._parent(path)
        if parent is not None and name not in parent.children:
            self._nodes[path] = parent.children[name] = node
            parent.mtime_us = at_us


_PLAYERS = {
    "mkdir": MemoryDisk._mkdir, "rmdir": MemoryDisk._remove, "unlink": MemoryDisk._remove,
    "create": MemoryDisk._create, "open_w": MemoryDisk._open_w, "open_r": MemoryDisk._nothing,
    "write": MemoryDisk._write, "truncate": MemoryDisk._truncate, "close_w": MemoryDisk._nothing,
    "rename": MemoryDisk._rename, "utime": MemoryDisk._utime, "lock": MemoryDisk._lock,
    "unlock": MemoryDisk._lock,
}  # fmt: skip
