"""The lock query, against locks that other processes really hold."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from agent.inventory.disk import LockState
from agent.observe.kernel_disk import query_lock

HOLD = """
import fcntl, sys
file = open(sys.argv[1], "r+b")
fcntl.lockf(file, getattr(fcntl, sys.argv[2]), *map(int, sys.argv[3:]))
print("holding", flush=True)
sys.stdin.read()
"""
ROUNDS = 3000
COMPETE = f"""
import fcntl, select, sys
file = open(sys.argv[1], "r+b")
rounds = refused = 0
print("ready", flush=True)
while rounds < {ROUNDS} or not select.select([sys.stdin], [], [], 0)[0]:
    rounds += 1
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


@pytest.fixture
def lock(tmp_path: Path) -> Path:
    """A lock file that nobody holds."""
    (tmp_path / "LOCK").touch()
    return tmp_path / "LOCK"


def test_lock_is_held_while_its_holder_lives(lock: Path) -> None:
    """A write lock of another process is held, also of a file that nobody may write; after a SIGKILL it is free."""
    assert _query(lock) is LockState.FREE
    with _child(HOLD, str(lock), "LOCK_EX") as holder:
        lock.chmod(0o444)
        assert _query(lock) is LockState.HELD
        holder.kill()
        holder.wait()
        assert _query(lock) is LockState.FREE


@pytest.mark.parametrize(
    ("how", "state"),
    [
        (("LOCK_EX", str(2**63 - 1), "0"), LockState.HELD),  # the JVM's range, like a lock up to the end
        (("LOCK_SH",), LockState.FREE),  # a reader's lock is nobody's claim on the directory
    ],
)
def test_other_locks(lock, how, state):
    """By range and by kind."""
    with _child(HOLD, str(lock), *how):
        assert _query(lock) is state


def test_query_takes_nothing(lock: Path) -> None:
    """Whoever wants the lock gets it every time, however often it is asked about meanwhile."""
    with _child(COMPETE, str(lock)) as competitor:
        descriptor = os.open(lock, os.O_RDONLY)
        for _ in range(ROUNDS):
            query_lock(descriptor)
        os.close(descriptor)
        assert competitor.stdin is not None
        competitor.stdin.close()  # it goes on until then
        assert competitor.stdout is not None
        assert competitor.stdout.read().strip() == "0"


def test_lock_that_cannot_be_queried_is_unknown(tmp_path: Path) -> None:
    """An error of the kernel is an answer of its own, neither held nor free."""
    descriptor = os.open(tmp_path, os.O_RDONLY)
    os.close(descriptor)
    assert query_lock(descriptor) is LockState.UNKNOWN
