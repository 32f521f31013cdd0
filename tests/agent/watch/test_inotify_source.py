"""The live watch: real files, real notifications, one thread."""

from __future__ import annotations

import os
import shutil
import threading
from pathlib import Path

import pytest

from agent.clock import SystemClock
from agent.inventory.hints import HintKind
from agent.observe.kernel_disk import KernelDisk
from agent.watch.inotify_source import LINGER_MS, LONGEST_LINGER_MS, MANY, next_linger_ms
from agent.watch.mailbox import Mailbox
from tests.agent.watch.live import HandClock, LiveWatch, source_on

pytestmark = pytest.mark.inotify


def test_burst_of_directories_is_fully_announced(live: LiveWatch) -> None:
    """Two hundred task directories made at once are all announced, with every file in them."""
    expected = set()
    for number in range(200):
        store = live.root / "app" / f"0_{number}" / "rocksdb" / "store"
        store.mkdir(parents=True)
        (store / "LOCK").touch()
        expected.add(str((store / "LOCK").relative_to(live.root)))
    live.wait_for(lambda hints: expected <= {hint.path for hint in hints})
    assert live.source.watch.counters().watches == 1 + 1 + 3 * 200


def test_deletion_and_recreation_arrive_in_order(live: LiveWatch) -> None:
    """A file that is deleted and made again is told as gone first and as there last."""
    task = live.root / "app" / "0_1"
    task.mkdir(parents=True)
    live.wait_for_path("app/0_1", HintKind.CREATED)  # told when its watch stands
    for _ in range(3):
        (task / ".checkpoint").touch()
        (task / ".checkpoint").unlink()
    (task / ".checkpoint").touch()
    (task / "end").touch()
    hints = live.wait_for_path("app/0_1/end", HintKind.WRITTEN)
    told = [hint.kind for hint in hints if hint.path == "app/0_1/.checkpoint"]
    # CREATED is there only where the mailbox was emptied right between it and WRITTEN
    told = [kind for kind in told if kind is not HintKind.CREATED]
    assert told == [HintKind.WRITTEN, HintKind.DELETED] * 3 + [HintKind.WRITTEN]


def test_deleted_task_is_announced_down_to_its_files(live: LiveWatch) -> None:
    """A wiped task tells of every file and directory that went."""
    store = live.root / "app" / "0_1" / "rocksdb" / "store"
    store.mkdir(parents=True)
    (store / "LOCK").touch()
    lock = "app/0_1/rocksdb/store/LOCK"
    live.wait_for(
        lambda hints: any(x.path == lock for x in hints)
    )  # created, or written where both come at once
    shutil.rmtree(live.root / "app" / "0_1")
    hints = live.wait_for_path("app/0_1", HintKind.DELETED)
    deleted = [hint.path for hint in hints if hint.kind is HintKind.DELETED]
    assert deleted == ["app/0_1/rocksdb/store/LOCK", "app/0_1/rocksdb/store", "app/0_1/rocksdb", "app/0_1"]


def test_own_readings_raise_no_notification(live: LiveWatch) -> None:
    """Listing, stat, reading and lock queries all over a watched tree are never announced."""
    store = live.root / "app" / "0_1" / "rocksdb" / "store"
    store.mkdir(parents=True)
    (store / "LOCK").write_text("content")
    (live.root / "fence").mkdir()
    live.wait_for_path("fence", HintKind.CREATED)
    live.hints.clear()
    disk = KernelDisk(live.root)
    for path in (
        "",
        "app",
        "app/0_1",
        "app/0_1/rocksdb",
        "app/0_1/rocksdb/store",
        "app/0_1/rocksdb/store/LOCK",
    ):
        disk.list(path)
        disk.stat(path)
        disk.read_at(path, 0, 100)
        disk.lock_state(path)
    assert disk.read_at("app/0_1/rocksdb/store/LOCK", 0, 100) == b"content"
    (live.root / "end").mkdir()
    hints = live.wait_for_path("end", HintKind.CREATED)
    assert [hint.path for hint in hints] == ["end"]


class BrokenClock(HandClock):
    """A clock that breaks after a while."""

    def now_us(self) -> int:
        """Tell the time for the first walk, then raise."""
        if self.wall_us % 10 >= 2:
            raise RuntimeError("the clock is broken")
        return super().now_us()


def test_death_of_the_thread_is_reported(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """A reader that dies is not alive, says why, and gives its descriptors back."""
    before = len(os.listdir("/proc/self/fd"))
    mailbox = Mailbox()
    live = LiveWatch(tmp_path, mailbox, source_on(tmp_path, mailbox, BrokenClock()))
    live.source.start()
    live.wait_for_cause("start")
    (tmp_path / "app").mkdir()
    for thread in threading.enumerate():
        if thread.name == "watch":
            thread.join(120)
    assert not live.source.is_alive()
    assert "the clock is broken" in live.source.failure()
    assert "thread watch died" in caplog.text
    live.source.stop()
    assert len(os.listdir("/proc/self/fd")) == before


def test_stop_gives_everything_back_and_may_be_repeated(tmp_path: Path) -> None:
    """A source that was never started, started or stopped can be stopped; no descriptor stays open."""
    before = len(os.listdir("/proc/self/fd"))
    unused = source_on(tmp_path, Mailbox(), SystemClock())
    unused.stop()
    unused.stop()
    assert not unused.is_alive()
    source = source_on(tmp_path, Mailbox(), SystemClock())
    source.start()
    assert source.is_alive()
    source.stop()
    source.stop()
    assert not source.is_alive()
    assert source.failure() == ""
    assert len(os.listdir("/proc/self/fd")) == before


ROOM = 16_384


def test_how_long_a_reader_waits() -> None:
    """Longer and longer under masses, short again after the first small read, not at all while the queue fills."""
    waits = [LINGER_MS]
    for read in (MANY, 200, 500, 500, MANY - 1):
        waits.append(next_linger_ms(waits[-1], read, ROOM, is_drained=True))
    assert waits == [LINGER_MS, 10, 20, LONGEST_LINGER_MS, LONGEST_LINGER_MS, LINGER_MS]
    assert next_linger_ms(LONGEST_LINGER_MS, 2_000, ROOM, is_drained=False) == 0
    assert next_linger_ms(0, 2_000, ROOM, is_drained=True) == LINGER_MS
    assert next_linger_ms(0, 500, ROOM, is_drained=True) == 2 * LINGER_MS
    for small in (0, 600, 1024):  # the longer wait needs room for what may come in it
        assert next_linger_ms(LINGER_MS, 40, small, is_drained=True) == LINGER_MS
