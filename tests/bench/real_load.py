"""The realistic load: what a real application did in its task directories, for `virtual.py`.

Every task plays one of the recorded tasks, each group of them from another moment on, so that commits and compactions
of the groups do not coincide. The directories are as they were at that moment, and the locks of the stores are held.
"""

from __future__ import annotations

import fcntl
import heapq
import os
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from operator import itemgetter
from pathlib import Path

from agent.inventory.disk import EntryKind, Unseen
from agent.replay.memory_disk import MemoryDisk
from agent.replay.trace import Operation, read_trace
from tests.bench.tree_maker import APPLICATION, BORN_S, checkpoint

STORE = "kv"
TAIL_BYTES = 4_096
"""Kept of an SST file in the recording: its properties, metaindex and footer."""

AFTER_START_S, BEFORE_END_S = 5.0, 1.0
"""What opening and closing the stores takes is not played."""
_LARGEST_BYTES = 1 << 30
_NOTIFICATIONS = {"create": 1, "close_w": 1, "rename": 2, "unlink": 1}
"""On a directory: IN_CREATE, IN_CLOSE_WRITE, IN_MOVED_FROM and IN_MOVED_TO, IN_DELETE."""


@dataclass(frozen=True, slots=True)
class Recorded:
    """The stretch of a recording in which all stores are open."""

    application: str  # its directory
    tasks: tuple[str, ...]  # recorded task directories
    begin_us: int  # when it begins
    end_us: int  # when it ends
    operations: Sequence[Operation]  # all of the trace


def load_recording(trace: Path) -> Recorded:
    """Read a trace of one run of one pod."""
    operations = list(read_trace(trace))
    locks = [x for x in operations if x.op in ("lock", "unlock") and x.path.endswith("/LOCK")]
    opened = [x for x in locks if x.op == "lock"]
    closed_us = min(x.at_us for x in locks if x.op == "unlock")
    return Recorded(
        opened[0].path.split("/")[0],
        tuple(sorted({x.path.split("/")[1] for x in opened})),
        max(x.at_us for x in opened) + round(AFTER_START_S * 1e6),
        closed_us - round(BEFORE_END_S * 1e6),
        operations,
    )


@dataclass(slots=True)
class Player:
    """Plays operations of one recorded task in a directory."""

    number: int  # of the task that it plays
    source: str  # path of the recorded task, with a slash
    target: Path  # directory in which it plays
    handles: dict[str, int] = field(default_factory=dict)  # open files by path
    notifications: int = 0  # what its operations make the kernel tell
    # task and offset of each checkpoint
    checkpoints: list[tuple[int, int]] = field(default_factory=list)
    _offset: int = 0

    def prepare(self, disk: MemoryDisk, now_us: int) -> None:
        """Make the directory as it is in the recording at that moment, and take the lock of the store."""
        self._copy(disk, self.source.rstrip("/"), self.target, time.time_ns() // 1000 - now_us)
        store = self.target / "rocksdb" / STORE
        identity = store / "IDENTITY"
        identity.write_text(f"00000000-0000-4000-8000-{self.number:012x}")
        os.utime(identity, (BORN_S, BORN_S))
        lock = os.open(store / "LOCK", os.O_RDWR | os.O_CREAT, 0o644)
        fcntl.lockf(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)

    def _copy(self, disk: MemoryDisk, path: str, target: Path, later_us: int) -> None:
        target.mkdir(parents=True)
        entries = disk.list(path)
        for entry in () if isinstance(entries, Unseen) else entries:
            inner = f"{path}/{entry.name}"
            if entry.kind is EntryKind.DIRECTORY:
                self._copy(disk, inner, target / entry.name, later_us)
            else:
                content, stat = disk.read_at(inner, 0, _LARGEST_BYTES), disk.stat(inner)
                if isinstance(content, Unseen) or isinstance(stat, Unseen):
                    raise RuntimeError(f"{inner} is not in the recording")
                write_sparse(target / entry.name, self._own(entry.name, content))
                written_s = (stat.mtime_us + later_us) / 1e6  # flushes behind a checkpoint stay behind it
                os.utime(target / entry.name, (written_s, written_s))

    def _own(self, name: str, content: bytes) -> bytes:
        """Let a checkpoint name this task's changelog."""
        if not name.startswith(".checkpoint") or content.count(b" ") < 2:
            return content
        self._offset = int(content.split()[-1])
        return checkpoint(self.number, self._offset, STORE)

    def play(self, operation: Operation, at_ns: int = 0) -> None:
        """Do what was recorded; files that were opened before the stretch began are opened without a word.

        `at_ns`: time of what is written, where the clock is not the machine's.
        """
        path = str(self.target / operation.path[len(self.source) :])
        name = path.rpartition("/")[2]
        if operation.op in ("create", "open_w"):
            self._open(path)
        elif operation.op == "write":
            data = self._own(name, operation.data[:])
            handle = self._open(path)
            if operation.offset is None:
                os.write(handle, data)
            else:
                os.pwrite(handle, data, operation.offset)
            if at_ns:
                os.utime(handle, ns=(at_ns, at_ns))
        elif operation.op == "truncate":
            os.ftruncate(self._open(path), operation.size)
        elif operation.op == "close_w":
            os.close(self._open(path))
            del self.handles[path]
        elif operation.op == "rename":
            to = str(self.target / operation.to[len(self.source) :])
            os.rename(path, to)
            if path in self.handles:
                self.handles[to] = self.handles.pop(path)
            if to.endswith("/.checkpoint"):
                self.checkpoints.append((self.number, self._offset))
        elif operation.op == "unlink":
            os.unlink(path)
        self.notifications += _NOTIFICATIONS.get(operation.op, 0)

    def _open(self, path: str) -> int:
        if path not in self.handles:
            self.handles[path] = os.open(path, os.O_WRONLY | os.O_CREAT, 0o644)
            os.lseek(self.handles[path], 0, os.SEEK_END)
        return self.handles[path]


def write_sparse(path: Path, content: bytes) -> None:
    """Write a file; of a large one only the tail, as the rest is a hole in the recording."""
    begin = max(0, len(content) - TAIL_BYTES) if path.suffix == ".sst" else 0
    with path.open("wb") as file:
        file.truncate(len(content))
        file.seek(begin)
        file.write(content[begin:])


def prepare(root: Path, recorded: Recorded, tasks: int, seconds: float) -> list[tuple[int, Player]]:
    """Make the tree; give each task's player and the moment of the recording with which it begins."""
    application = root / APPLICATION
    application.mkdir(parents=True)
    lock = os.open(application / ".lock", os.O_RDWR | os.O_CREAT, 0o644)
    fcntl.lockf(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    (application / "kafka-streams-process-metadata").write_text(
        '{"processId":"11111111-2222-4333-8444-555555555555"}'
    )
    groups = -(-tasks // len(recorded.tasks))
    slack_us = recorded.end_us - recorded.begin_us - round(seconds * 1e6)
    if slack_us < 0:
        raise SystemExit(f"the recording has {(recorded.end_us - recorded.begin_us) / 1e6:.0f} s")
    begins = [recorded.begin_us + slack_us * group // max(1, groups - 1) for group in range(groups)]
    disk, rest, players = MemoryDisk(), iter(recorded.operations), []
    waiting = next(rest, None)
    for group, begin_us in enumerate(begins):
        while waiting is not None and waiting.at_us < begin_us:
            disk.apply(waiting)
            waiting = next(rest, None)
        for place, task in enumerate(recorded.tasks):
            number = group * len(recorded.tasks) + place
            if number < tasks:
                player = Player(number, f"{recorded.application}/{task}/", application / f"0_{number}")
                player.prepare(disk, begin_us)
                players.append((begin_us, player))
    return players


def schedule(
    recorded: Recorded, players: Sequence[tuple[int, Player]], seconds: float
) -> Iterator[tuple[int, int, Operation]]:
    """Give what is to be done in time order: microseconds since the beginning, number of the player, operation."""
    of_task = {
        source: [x for x in recorded.operations if x.path.startswith(source) and not x.nameless]
        for source in {player.source for _, player in players}
    }

    def one(number: int, begin_us: int, source: str) -> Iterator[tuple[int, int, Operation]]:
        for operation in of_task[source]:
            if 0 <= operation.at_us - begin_us < seconds * 1e6:
                yield operation.at_us - begin_us, number, operation

    return heapq.merge(
        *(one(number, begin_us, player.source) for number, (begin_us, player) in enumerate(players)),
        key=itemgetter(0, 1),
    )
