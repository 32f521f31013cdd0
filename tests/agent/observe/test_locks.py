"""The lock query, against locks that other processes really hold."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from agent.inventory.disk import LockState
from agent.observe.kernel_disk import query_lock

HOLD = """
import fcntl, sys
file = open(sys.argv[1], "r+b")
fcntl.lockf(file, getattr(fcntl, sys.argv[2]), *map(int, sys.argv[3:]))
print("holding", flush=True)
sys.stdin.read()
"""
COMPETE = """
import fcntl, sys
file = open(sys.argv[1], "r+b")
refused = 0
print("ready", flush=True)
for _ in range(3000):
    try:
        fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        fcntl.lockf(file, fcntl.LOCK_UN)
    except OSError:
        refused += 1
print(refused, flush=True)
"""


@contextmanager
def _child(*arguments: str) -> Iterator[subprocess.Popen[str]]:
    with subprocess.Popen(
        [sys.executable, "-c", *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as child:
        assert child.stdout is not None
        assert child.stdout.readline()  # it is where the test wants it
        yield child
        child.kill()


def _query(path: Path) -> LockState:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        return query_lock(descriptor)
    finally:
        os.close(descriptor)


def test_lock_is_held_while_its_holder_lives(tmp_path: Path) -> None:
    """A write lock of another process is held; after a SIGKILL of that process it is free."""
    lock = tmp_path / "LOCK"
    lock.touch()
    assert _query(lock) is LockState.FREE
    with _child(HOLD, str(lock), "LOCK_EX") as holder:
        assert _query(lock) is LockState.HELD
        holder.kill()
        holder.wait()
        assert _query(lock) is LockState.FREE


def test_lock_over_the_range_of_the_jvm_is_held(tmp_path: Path) -> None:
    """The JVM locks from 0 for Long.MAX_VALUE bytes; that counts like a lock up to the end."""
    lock = tmp_path / ".lock"
    lock.touch()
    with _child(HOLD, str(lock), "LOCK_EX", str(2**63 - 1), "0"):
        assert _query(lock) is LockState.HELD


def test_shared_lock_is_free(tmp_path: Path) -> None:
    """A reader's lock is nobody's claim on the directory."""
    lock = tmp_path / "LOCK"
    lock.touch()
    with _child(HOLD, str(lock), "LOCK_SH"):
        assert _query(lock) is LockState.FREE


def test_read_only_file_can_be_queried(tmp_path: Path) -> None:
    """A file that nobody may write can be asked about."""
    lock = tmp_path / "LOCK"
    lock.touch()
    with _child(HOLD, str(lock), "LOCK_EX"):
        lock.chmod(0o444)
        assert _query(lock) is LockState.HELD


def test_query_takes_nothing(tmp_path: Path) -> None:
    """Whoever wants the lock gets it every time, however often it is asked about meanwhile."""
    lock = tmp_path / "LOCK"
    lock.touch()
    with _child(COMPETE, str(lock)) as competitor:
        queries = 0
        descriptor = os.open(lock, os.O_RDONLY)
        while competitor.poll() is None:
            query_lock(descriptor)
            queries += 1
        os.close(descriptor)
        assert competitor.stdout is not None
        assert competitor.stdout.read().strip() == "0"
        assert queries > 0


def test_lock_that_cannot_be_queried_is_unknown(tmp_path: Path) -> None:
    """An error of the kernel is an answer of its own, neither held nor free."""
    descriptor = os.open(tmp_path, os.O_RDONLY)
    os.close(descriptor)
    assert query_lock(descriptor) is LockState.UNKNOWN
