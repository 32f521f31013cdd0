"""The budget of watches on a real queue: what is inside stores gives way, and the need is told."""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from agent.inventory.hints import HintKind
from agent.layout.paths import PathRole, classify
from agent.watch.inotify import InotifyQueue
from agent.watch.limits import Limit
from agent.watch.tree_watch import TreeWatch
from agent.watch.watches import Watches
from tests.agent.watch.live import HandClock

pytestmark = pytest.mark.inotify


class TightQueue(InotifyQueue):
    """A queue with room for so many directories at a time, as the kernel counts them."""

    room = 1000

    def __init__(self) -> None:
        super().__init__()
        self.held: set[int] = set()

    def add(self, directory: int, role: PathRole) -> int:
        """Watch, or refuse as the kernel would."""
        watch = super().add(directory, role)
        if watch not in self.held and len(self.held) >= self.room:
            super().remove(watch)
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        self.held.add(watch)
        return watch

    def remove(self, watch: int) -> None:
        """Give room back."""
        self.held.discard(watch)
        super().remove(watch)


@pytest.fixture
def queue() -> Iterator[TightQueue]:
    """Give a queue, and close it."""
    queue = TightQueue()
    yield queue
    queue.close()


class CountingQueue(InotifyQueue):
    """A queue that gives numbers, as the kernel does: each is new."""

    def __init__(self) -> None:
        self.last = 0

    def add(self, directory: int, role: PathRole) -> int:
        """Give the next number."""
        self.last += 1
        return self.last

    def remove(self, watch: int) -> None:
        """Nothing is behind a number."""


def test_memory_of_directories_that_come_and_go() -> None:
    """Ten times as many directories as are there at a time: the table is no larger than after the start."""
    watches, paths = Watches(CountingQueue()), 3000
    for number in range(paths):
        watches.add(0, f"app/0_{number}", PathRole.TASK)
    size_bytes = sys.getsizeof(watches._paths)
    for number in range(10 * paths):
        watches.give_up(number + 1)
        watches.add(0, f"app/0_{number % paths}", PathRole.TASK)
    assert len(watches) == paths
    assert sys.getsizeof(watches._paths) <= size_bytes


def make_tree(root: Path, tasks: int, first: int = 0) -> None:
    """Make tasks with one store each: three directories per task."""
    for number in range(first, tasks):
        (root / "app" / f"0_{number}" / "rocksdb" / "s").mkdir(parents=True)


def watched_roles(watch: TreeWatch) -> dict[str, int]:
    """Count the watched directories by role."""
    counts: dict[str, int] = {}
    for path in watch._watches._paths.values():
        role = classify(path).role.value
        counts[role] = counts.get(role, 0) + 1
    return counts


def test_tasks_come_before_stores(tmp_path: Path, queue: TightQueue) -> None:
    """With room for every task and four more, four directories inside stores are watched."""
    make_tree(tmp_path, 10)
    queue.room = 16
    watch = TreeWatch(tmp_path, queue, HandClock())
    watch.tick()
    roles = {"state-directory": 1, "application": 1, "task": 10, "stores": 2, "store": 2}
    assert (watched_roles(watch), watch.counters().unwatched) == (roles, 16)
    said = watch.degraded()["watch-limit"].replace("inotify_", "user_")
    assert "32 directories are to be watched and 16 of them are only polled" in said
    assert "max_user_watches=8192 on the node" in said


def test_a_new_task_takes_the_watch_of_a_store(tmp_path: Path, queue: TightQueue) -> None:
    """What matters more than the inside of a store is watched as soon as it comes."""
    make_tree(tmp_path, 3)
    queue.room = 2 + 3 * 3
    watch = TreeWatch(tmp_path, queue, HandClock())
    watch.tick()
    assert watch.counters().unwatched == 0
    make_tree(tmp_path, 6, first=3)
    hints = watch.handle(queue.read())
    assert watched_roles(watch)["task"] == 6
    assert len(queue.held) == queue.room
    assert watch.counters().unwatched == 9
    assert any(hint.kind is HintKind.RESCAN and hint.cause == "watch-limit" for hint in hints)


def test_the_budget_leaves_room_for_others(tmp_path: Path, queue: TightQueue) -> None:
    """Nine tenths of the limit, counted before the kernel refuses."""
    make_tree(tmp_path, 4)
    watches = Watches(queue, lambda: Limit("fs.inotify.max_user_watches", 10))
    for number in range(4):
        for path in (f"app/0_{number}", f"app/0_{number}/rocksdb", f"app/0_{number}/rocksdb/s"):
            descriptor = os.open(tmp_path / path, os.O_RDONLY)
            watches.add(descriptor, path, classify(path).role)
            os.close(descriptor)
    assert len(watches) == 9
    assert watches.unwatched == 3
    assert all(watches.has(f"app/0_{number}") for number in range(4))
    assert watches.refusals()["watch-limit"].startswith("12 directories")


def test_tasks_alone_beyond_the_limit(tmp_path: Path, queue: TightQueue) -> None:
    """Not even every task has a watch: the first ones do, nobody is evicted in circles, the need is right."""
    make_tree(tmp_path, 20)
    queue.room = 7
    watch = TreeWatch(tmp_path, queue, HandClock())
    watch.tick()
    assert watched_roles(watch) == {"state-directory": 1, "application": 1, "task": 5}
    assert watch.counters().unwatched == 62 - 7


def test_room_that_is_back_is_used(tmp_path: Path, queue: TightQueue) -> None:
    """A raised limit is noticed at the next try, and the finding ends."""
    make_tree(tmp_path, 5)
    queue.room = 8
    clock = HandClock()
    watch = TreeWatch(tmp_path, queue, clock)
    watch.tick()
    assert watch.degraded()
    queue.room = 100
    clock.elapsed_s += 61
    hints = watch.tick()
    assert watch.degraded() == {}
    assert watch.counters().unwatched == 0
    assert [hint.cause for hint in hints] == ["watch-limit"]


def test_the_canary_is_heard_beside_the_tree(tmp_path: Path, queue: TightQueue) -> None:
    """Moves in the agent's own directory are told apart from those below the state directory."""
    (tmp_path / "state").mkdir()
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "canary-0").touch()
    watch = TreeWatch(tmp_path / "state", queue, HandClock(), canary=tmp_path / "own")
    watch.tick()
    assert watch.is_canary_watched()
    (tmp_path / "own" / "canary-0").rename(tmp_path / "own" / "canary-1")
    hints = watch.handle(queue.read())
    assert [(hint.path, hint.kind) for hint in hints] == [("canary-1", HintKind.CANARY)]
    (tmp_path / "own" / "canary-1").unlink()
    (tmp_path / "own").rmdir()
    watch.handle(queue.read())
    assert not watch.is_canary_watched()
    watch.tick()
    assert not watch.is_canary_watched()
    (tmp_path / "own").mkdir()
    watch.tick()
    assert watch.is_canary_watched()
