"""The disk in memory against what Linux does."""

from __future__ import annotations

import base64
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.inventory.disk import Entry, EntryKind, FileStat, LockState, ProcessFact, Unseen
from agent.observe.kernel_disk import KernelDisk
from agent.replay.memory_disk import FIRST_INODE, MemoryDisk
from agent.replay.trace import Encoded, Operation


def disk_of(*operations: Operation) -> MemoryDisk:
    """Play operations onto a fresh disk."""
    disk = MemoryDisk()
    for operation in operations:
        disk.apply(operation)
    return disk


def op(at_us: int, name: str, path: str = "", **more: object) -> Operation:
    return Operation(at_us, name, path, **more)  # type: ignore[arg-type]


def mtime(disk: MemoryDisk, path: str) -> int:
    stat = disk.stat(path)
    assert isinstance(stat, FileStat)
    return stat.mtime_us


FILE = (op(1, "create", "f"), op(1, "open_w", "f"))


def test_an_empty_disk() -> None:
    """The root is there and empty; nothing else is."""
    disk = MemoryDisk()
    assert disk.list("") == ()
    assert isinstance(disk.stat(""), FileStat)
    for path in ("x", "x/y"):
        asked = (disk.list(path), disk.stat(path), disk.read_at(path, 0, 1), disk.lock_state(path))
        assert set(asked) == {Unseen.VANISHED}
    assert disk.processes() == ()


def test_kinds() -> None:
    """A file cannot be listed, a directory cannot be read, and nothing lies below a file."""
    disk = disk_of(op(1, "mkdir", "d"), *FILE, op(2, "create", "f/below"))
    assert disk.list("") == (Entry("d", EntryKind.DIRECTORY), Entry("f", EntryKind.FILE))
    assert disk.list("f") is Unseen.UNREADABLE
    assert disk.read_at("d", 0, 1) is Unseen.UNREADABLE


def test_rename_replaces_and_keeps_the_inode() -> None:
    """What is renamed over another file takes its name and brings its own inode, times and lock."""
    disk = disk_of(*FILE, op(2, "write", "f", data=b"new"), op(3, "create", "g"), op(4, "lock", "f"))
    before = disk.stat("f")
    disk.apply(op(9, "rename", "f", to="g"))
    assert disk.stat("f") is Unseen.VANISHED
    assert disk.stat("g") == before
    assert disk.read_at("g", 0, 9) == b"new"
    assert disk.lock_state("g") is LockState.HELD
    assert disk.list("") == (Entry("g", EntryKind.FILE),)


def test_renaming_what_is_not_there_changes_nothing() -> None:
    """A rename without a source or a target directory is no operation."""
    disk = disk_of(*FILE)
    disk.apply(op(9, "rename", "none", to="g"))
    disk.apply(op(9, "rename", "f", to="no/where"))
    assert disk.list("") == (Entry("f", EntryKind.FILE),)
    assert mtime(disk, "") == 1


def test_the_time_of_a_directory() -> None:
    """Only a direct child's coming and going moves it: not a write, a lock, a time or a grandchild."""
    disk = disk_of(op(1, "mkdir", "d"), op(2, "create", "d/f"))
    assert mtime(disk, "d") == 2
    for at_us, name in enumerate(("open_w", "write", "truncate", "utime", "lock", "unlock", "close_w"), 3):
        disk.apply(op(at_us, name, "d/f", data=b"x"))
    assert mtime(disk, "d") == 2
    disk.apply(op(9, "mkdir", "d/e"))
    disk.apply(op(10, "create", "d/e/g"))
    assert mtime(disk, "d") == 9
    disk.apply(op(11, "unlink", "d/f"))
    assert mtime(disk, "d") == 11
    disk.apply(op(12, "unlink", "d/f"))
    assert mtime(disk, "d") == 11
    assert mtime(disk, "") == 1


def inodes(disk: MemoryDisk) -> list[int]:
    return [stat.inode for stat in (disk.stat("d"), disk.stat("f")) if isinstance(stat, FileStat)]


def test_a_new_life_has_a_new_inode() -> None:
    """A directory or file that is made again is another one; making what exists changes nothing."""
    disk = disk_of(op(1, "mkdir", "d"), *FILE, op(2, "write", "f", data=b"x"))
    first = inodes(disk)
    for again in (op(3, "create", "f"), op(3, "mkdir", "d")):
        disk.apply(again)
    assert inodes(disk) == first
    assert disk.read_at("f", 0, 9) == b"x"
    for gone in (op(4, "rmdir", "d"), op(4, "unlink", "f"), op(5, "mkdir", "d"), op(5, "create", "f")):
        disk.apply(gone)
    assert not set(inodes(disk)) & set(first)
    assert disk.read_at("f", 0, 9) == b""


def test_locks_belong_to_the_file_not_to_the_name() -> None:
    """A file recreated under a locked one's name is free; unlocking the nameless one changes nothing."""
    disk = disk_of(*FILE, op(2, "lock", "f"))
    assert disk.lock_state("f") is LockState.HELD
    disk.apply(op(3, "unlink", "f"))
    assert disk.lock_state("f") is Unseen.VANISHED
    disk.apply(op(4, "create", "f"))
    assert disk.lock_state("f") is LockState.FREE
    disk.apply(op(5, "lock", "f"))
    disk.apply(op(6, "unlock", "f", nameless=True))
    assert disk.lock_state("f") is LockState.HELD
    disk.apply(op(7, "unlock", "f"))
    assert disk.lock_state("f") is LockState.FREE


@pytest.mark.parametrize("name", ["write", "truncate", "close_w", "unlock", "lock"])
def test_nameless_operations_leave_no_trace(name: str) -> None:
    """What happens to a file without a name is not on the disk, whoever has its old name now."""
    disk = disk_of(*FILE, op(2, "write", "f", data=b"kept"))
    before = disk.stat("f")
    disk.apply(op(9, name, "f", data=b"lost", size=1, nameless=True))
    assert disk.stat("f") == before
    assert disk.read_at("f", 0, 9) == b"kept"
    assert disk.lock_state("f") is LockState.FREE


def test_processes_are_seen_only_on_request() -> None:
    """Start and end of a process are truth for checking; a detector sees them only where a real agent would."""
    start, end = Operation(5, "start", version="4.1.2"), Operation(9, "exit", killed=True)
    disk = MemoryDisk()
    disk.apply(start)
    assert disk.processes() == ()
    disk.apply(start, show_process=True)
    assert disk.processes() == (ProcessFact(1, 5, "4.1.2"),)
    disk.apply(end, show_process=True)
    assert disk.processes() == ()


NAMES = st.sampled_from(["a", "b", "a/c", "a/c/d", "b/e", "a/f"])
STEPS = st.lists(
    st.one_of(
        st.tuples(st.sampled_from(["mkdir", "rmdir", "create", "unlink"]), NAMES, st.just("")),
        st.tuples(st.just("rename"), NAMES, NAMES),
        st.tuples(st.just("write"), NAMES, st.text("xyz", min_size=1, max_size=3)),
        st.tuples(st.just("truncate"), NAMES, st.sampled_from(["0", "1", "5"])),
    ),
    max_size=25,
)


@given(STEPS)
def test_it_answers_like_the_kernel(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[str, str, str]]
) -> None:
    """Whatever is done, both disks list, stat and read the same; only what the kernel allowed is played."""
    root = tmp_path_factory.mktemp("disk")
    memory, kernel = MemoryDisk(), KernelDisk(root)
    for number, (name, path, more) in enumerate(steps, start=1):
        try:
            done = _do(root, name, path, more, number)
        except OSError:
            continue
        for operation in done:
            memory.apply(operation)
        _compare(memory, kernel, "")


def _do(root: Path, name: str, path: str, more: str, at_us: int) -> list[Operation]:
    """Do a step on the real disk; say what a recorder would have written."""
    place = root / path
    if name == "mkdir":
        place.mkdir()
    elif name == "rmdir":
        place.rmdir()
    elif name == "unlink":
        place.unlink()
    elif name == "rename":
        os.rename(place, root / more)
        return [op(at_us, "rename", path, to=more)] if path != more else []
    elif name == "create":
        os.close(os.open(place, os.O_CREAT | os.O_EXCL | os.O_WRONLY))
        return [op(at_us, "create", path), op(at_us, "open_w", path), op(at_us, "close_w", path)]
    elif name == "write":
        with place.open("r+b") as file:
            file.write(more.encode())
        return [op(at_us, "open_w", path), op(at_us, "write", path, data=more.encode())]
    else:
        os.truncate(place, int(more))
        return [op(at_us, "truncate", path, size=int(more))]
    return [op(at_us, name, path)]


def _compare(memory: MemoryDisk, kernel: KernelDisk, path: str) -> None:
    left, right = memory.stat(path), kernel.stat(path)
    assert isinstance(left, FileStat)
    assert isinstance(right, FileStat)
    assert left.kind is right.kind
    if left.kind is EntryKind.FILE:
        assert left.size_bytes == right.size_bytes
        assert memory.read_at(path, 0, 100) == kernel.read_at(path, 0, 100)
        assert memory.read_at(path, 1, 2) == kernel.read_at(path, 1, 2)
        assert memory.lock_state(path) is kernel.lock_state(path) is LockState.FREE
        return
    names, others = memory.list(path), kernel.list(path)
    assert isinstance(names, tuple)
    assert isinstance(others, tuple)
    assert set(names) == set(others)
    for entry in names:
        _compare(memory, kernel, f"{path}/{entry.name}" if path else entry.name)


LONG = bytes(range(250)) * 30
ENCODED = Encoded(base64.b64encode(LONG).decode())
LONG_WRITE = op(2, "write", "f", data=ENCODED)


@pytest.mark.parametrize(
    ("steps", "content"),
    [
        # a plain write moves the position, a positioned one does not, and a hole reads as zeros
        ((op(2, "write", "f", data=b"abc"), op(3, "write", "f", data=b"XY", offset=1),
          op(4, "write", "f", data=b"def"), op(5, "write", "f", data=b"!", offset=8)), b"aXYdef\0\0!"),
        # opening again starts at the front, for appending at the end
        ((op(2, "write", "f", data=b"abcdef"), op(3, "open_w", "f"), op(3, "write", "f", data=b"XY"),
          op(4, "open_w", "f", append=True), op(4, "write", "f", data=b"++")), b"XYcdef++"),
        # a file is cut, or filled up with zeros
        ((op(2, "write", "f", data=b"abcdef"), op(7, "truncate", "f", size=2)), b"ab"),
        ((op(2, "write", "f", data=b"ab"), op(8, "truncate", "f", size=4)), b"ab\0\0"),
        # truncating to nothing leaves the descriptor where it was, as the kernel does
        ((op(2, "write", "f", data=b"abcd"), op(3, "truncate", "f", size=0), op(4, "write", "f", data=b"e")),
         b"\0\0\0\0e"),
        # what stays encoded can be written on, overwritten and cut; only what replaces a whole file stays so
        ((LONG_WRITE, op(3, "write", "f", data=b"end")), LONG + b"end"),
        ((LONG_WRITE, op(3, "write", "f", data=b"XY", offset=1)), LONG[:1] + b"XY" + LONG[3:]),
        ((LONG_WRITE, op(3, "write", "f", data=ENCODED)), LONG + LONG),
        ((LONG_WRITE, op(3, "write", "f", data=ENCODED, offset=0)), LONG),
        ((LONG_WRITE, op(3, "write", "f", data=ENCODED, offset=8_000)), LONG + bytes(500) + LONG),
        ((LONG_WRITE, op(3, "truncate", "f", size=5)), LONG[:5]),
        ((LONG_WRITE, op(3, "truncate", "f", size=len(LONG))), LONG),
        ((LONG_WRITE, op(3, "truncate", "f", size=len(LONG) + 2)), LONG + bytes(2)),
        ((op(2, "write", "f", data=bytes(9_000)), op(3, "write", "f", data=ENCODED, offset=0)), LONG + bytes(1_500)),
    ],
)  # fmt: skip
def test_content_is_what_was_written(steps: tuple[Operation, ...], content: bytes) -> None:
    """Whole and in parts; the file's time is that of its last change."""
    disk = disk_of(*FILE, *steps)
    assert disk.read_at("f", 0, 10**6) == content
    assert disk.read_at("f", 3, 2) == content[3:5]
    assert disk.read_at("f", len(content) + 40, 2) == b""
    assert mtime(disk, "f") == steps[-1].at_us


def test_what_was_written_at_once_is_read_in_parts() -> None:
    """Content that stays encoded has its size, and gives any part of it."""
    disk = disk_of(*FILE, LONG_WRITE)
    assert disk.stat("f") == FileStat(EntryKind.FILE, FIRST_INODE + 2, len(LONG), 2)
    assert disk.read_at("f", 0, 10**6) == LONG
    assert disk.read_at("f", 7_000, 10) == LONG[7_000:7_010]
    assert disk.read_at("f", 10**6, 10) == b""


def test_a_moved_directory_takes_everything_along() -> None:
    """Files below a directory have new paths after its move, the old ones lead nowhere; both parents change."""
    disk = disk_of(op(1, "mkdir", "d"), op(1, "mkdir", "d/e"), op(1, "create", "d/e/f"), op(1, "mkdir", "dx"))
    disk.apply(op(2, "rename", "d/e", to="dx/e"))
    assert [mtime(disk, x) for x in ("d", "dx", "dx/e")] == [2, 2, 1]
    disk.apply(op(2, "rename", "dx/e", to="d/e"))
    disk.apply(op(2, "rename", "d", to="g"))
    assert disk.list("g/e") == (Entry("f", EntryKind.FILE),)
    assert disk.stat("d/e/f") is Unseen.VANISHED
    assert disk.list("dx") == ()
    disk.apply(op(3, "rename", "g", to="g/e/h"))
    assert disk.list("g/e") == (Entry("f", EntryKind.FILE),)
    disk.apply(op(4, "mkdir", ""))
    assert disk.list("") == (Entry("dx", EntryKind.DIRECTORY), Entry("g", EntryKind.DIRECTORY))
