"""A state directory with many tasks, each a copy of one that a real Kafka Streams release left behind."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from agent.inventory.disk import EntryKind, Unseen
from agent.replay.memory_disk import MemoryDisk
from agent.replay.trace import read_trace

APPLICATION = "bench-app"
STORE = "counts"
BORN_S = 1_500_000_000.0
"""Before the recorded data: a store younger than its data is a copy, and would open a finding on every task."""
_LARGEST_BYTES = 1 << 22
_UNREAD = ("LOG", "LOG.old")  # long, and nobody looks into them: they are made empty


@dataclass(frozen=True, slots=True)
class StoreCopy:
    """Files of one recorded store: name -> content."""

    files: dict[str, bytes]


def recorded_store(trace: Path) -> StoreCopy:
    """Play a recording to its end and take the first store that it left, or raise `LookupError`."""
    disk = MemoryDisk()
    for operation in read_trace(trace):
        disk.apply(operation)
    for path in _directories(disk, "", 4):
        if path.split("/")[-2:-1] == ["rocksdb"]:
            return StoreCopy({name: _content(disk, f"{path}/{name}") for name in _names(disk, path)})
    raise LookupError(f"{trace}: no store is left at its end")


def make_tree(root: Path, tasks: int, store: StoreCopy) -> None:
    """Make one application with so many tasks, each with a store, an own identity and a checkpoint.

    SST files are links to one copy: nothing in them tells a task, and the disk stays small.
    """
    application = root / APPLICATION
    application.mkdir(parents=True)
    (application / ".lock").touch()
    (application / "kafka-streams-process-metadata").write_text(
        '{"processId":"11111111-2222-4333-8444-555555555555"}'
    )
    first = application / "0_0" / "rocksdb" / STORE
    for number in range(tasks):
        directory = application / f"0_{number}" / "rocksdb" / STORE
        directory.mkdir(parents=True)
        for name, content in store.files.items():
            if name.endswith(".sst") and number:
                (directory / name).hardlink_to(first / name)
            else:
                (directory / name).write_bytes(content)
        identity = directory / "IDENTITY"
        identity.write_text(f"00000000-0000-4000-8000-{number:012x}")
        os.utime(identity, (BORN_S, BORN_S))
        (application / f"0_{number}" / ".checkpoint").write_bytes(checkpoint(number, 1_000))


def checkpoint(task: int, offset: int, store: str = STORE) -> bytes:
    """Content of a task's `.checkpoint`."""
    return f"0\n1\n{APPLICATION}-{store}-changelog {task} {offset}\n".encode()


def _names(disk: MemoryDisk, path: str) -> list[str]:
    entries = disk.list(path)
    return [] if isinstance(entries, Unseen) else [x.name for x in entries if x.kind is EntryKind.FILE]


def _directories(disk: MemoryDisk, path: str, depth: int) -> list[str]:
    entries = disk.list(path)
    if isinstance(entries, Unseen):
        return []
    inner = [f"{path}/{x.name}" if path else x.name for x in entries if x.kind is EntryKind.DIRECTORY]
    return inner if depth == 1 else [y for x in inner for y in (x, *_directories(disk, x, depth - 1))]


def _content(disk: MemoryDisk, path: str) -> bytes:
    if path.rpartition("/")[2].startswith(_UNREAD):
        return b""
    content = disk.read_at(path, 0, _LARGEST_BYTES)
    return b"" if isinstance(content, Unseen) else content
