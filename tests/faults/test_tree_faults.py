"""What an application, an operator or an attacker can do to the state directory, done to a real one."""

from __future__ import annotations

import os
import shutil
import threading
from pathlib import Path

import pytest

from agent.layout.checkpoint import MAX_CHECKPOINT_BYTES
from tests.support.lookout_bench import (
    BRISK_MODE,
    LiveLookout,
    make_task,
    remove_tree,
    write_checkpoint,
)

pytestmark = pytest.mark.inotify


def test_a_thousand_directories_made_and_renamed_during_the_start(tmp_path: Path) -> None:
    """A burst while the watches are put: in the end every task is known under its last name, and watched."""
    root = tmp_path / "state"
    (root / "app").mkdir(parents=True)
    live = LiveLookout(root, tmp_path / "home")

    def burst() -> None:
        for number in range(1000):
            task = make_task(root, f"app/0_{number}", number)
            if number % 3 == 0:
                task.rename(root / "app" / f"1_{number}")

    maker = threading.Thread(target=burst)
    maker.start()
    with live:
        maker.join()
        expected = {f"{int(n % 3 == 0)}_{n}" for n in range(1000)}
        tasks = live.pipeline.inventory.applications["app"].tasks

        def known() -> set[str]:
            return {task.id for task in tasks.values() if task.exists and task.checkpoint}

        live.turn_until(lambda: known() == expected)
        assert live.lookout.keeper.counters().watches == 2 + 1000
        assert live.causes() == []


def test_a_task_deleted_and_made_again_as_fast_as_can_be(live: LiveLookout) -> None:
    """No life is reported twice, and the last state is the known one, however many lives were over before a look."""
    with live:

        def churn() -> None:
            for number in range(400):
                make_again(live, 1000 + number)

        maker = threading.Thread(target=churn)
        maker.start()
        live.turn_until(lambda: not maker.is_alive())
        live.turn_until(lambda: live.offset("app/0_0") == 1399)
        created, deleted = live.changes().count("task-created 0_0"), live.changes().count("task-deleted 0_0")
        assert created == deleted + 1
        assert live.task("app/0_0").incarnation == created  # type: ignore[union-attr]
        assert live.causes() == []


def test_every_life_that_was_read_is_reported(live: LiveLookout) -> None:
    """A task that is recreated as soon as its last life is known: no deletion is missed, though a task is there."""
    with live:
        for number in range(100):
            make_again(live, 1000 + number)
            live.turn_until(lambda wanted=1000 + number: live.offset("app/0_0") == wanted)  # type: ignore[misc]
        assert live.changes().count("task-deleted 0_0") == 100
        assert live.changes().count("task-created 0_0") == 101
        assert live.causes() == []


def make_again(live: LiveLookout, offset: int) -> None:
    """Delete the task and recreate it."""
    remove_tree(live.root / "app" / "0_0")
    make_task(live.root, "app/0_0", offset)


def test_a_directory_that_is_renamed_away_and_back(live: LiveLookout) -> None:
    """Away it is gone, whatever is done to it there; back it is another life, and watched again."""
    with live:
        task, elsewhere = live.root / "app" / "0_0", live.root.parent / "elsewhere"
        task.rename(elsewhere)
        live.turn_until(lambda: live.task("app/0_0") is None)
        write_checkpoint(elsewhere, 5)
        elsewhere.rename(task)
        live.turn_until(lambda: live.task("app/0_0") is not None)
        write_checkpoint(task, 6)
        live.turn_until(lambda: live.offset("app/0_0") == 6)
        assert live.causes() == []


def test_a_root_that_is_swapped_under_a_symbolic_link(tmp_path: Path) -> None:
    """`state` points to another directory from now on: noticed, timed, and read again."""
    make_task(tmp_path / "one", offset=1)
    make_task(tmp_path / "two", offset=2)
    link = tmp_path / "state"
    link.symlink_to(tmp_path / "one")
    with LiveLookout(link, tmp_path / "home") as live:
        (tmp_path / "new").symlink_to(tmp_path / "two")
        (tmp_path / "new").rename(link)
        live.turn_until(lambda: live.offset("app/0_0") == 2)
        live.turn_until(lambda: "root-replaced" in live.causes())
        write_checkpoint(tmp_path / "one" / "app" / "0_0", 99)
        write_checkpoint(tmp_path / "two" / "app" / "0_0", 3)
        live.turn_until(lambda: live.offset("app/0_0") == 3)
        live.beat()
        assert any("root-replaced" in x.summary for x in live.findings())


def test_a_root_that_is_away_takes_nothing_along(tmp_path: Path) -> None:
    """A volume that is unmounted for a while: what is known of its tasks stays as it was, whoever looks there."""
    make_task(tmp_path / "state", offset=1)
    with LiveLookout(tmp_path / "state", tmp_path / "home") as live:
        (tmp_path / "state").rename(tmp_path / "away")
        live.turn_until(lambda: "root-missing" in live.causes())
        now_us = live.clock.now_us()
        assert live.pipeline.reread("", now_us) == live.pipeline.reread("app/0_0", now_us) == []
        live.pipeline.read_application("app", now_us)
        assert live.pipeline.inventory.applications["app"].tasks["0_0"].exists
        assert live.offset("app/0_0") == 1
        (tmp_path / "away" / "app" / "0_0" / ".checkpoint").unlink()
        (tmp_path / "away").rename(tmp_path / "state")
        live.turn_until(lambda: live.offset("app/0_0") is None)


def test_a_root_that_goes_and_comes(tmp_path: Path) -> None:
    """Not there at the start, there, deleted, recreated: two timed intervals, and the tasks of each life."""
    root = tmp_path / "state"
    live = LiveLookout(root, tmp_path / "home")
    live.lookout.start()
    live.turn_until(lambda: "root-missing" in live.causes())
    make_task(root, offset=1)
    live.turn_until(lambda: live.offset("app/0_0") == 1)
    live.turn_until(lambda: all(x.ended_us for x in live.pipeline.inventory.blind))
    shutil.rmtree(root)
    live.turn_until(lambda: live.causes().count("root-missing") == 2)
    make_task(root, offset=2)
    live.turn_until(lambda: live.offset("app/0_0") == 2)
    live.turn_until(lambda: all(x.ended_us for x in live.pipeline.inventory.blind))
    assert all((x.ended_us or 0) > x.started_us for x in live.pipeline.inventory.blind)
    live.lookout.stop()


NAMES = [
    b"app/0_0/new\nline",
    b"app/0_0/\xff\xfe\x80",
    b"app/0_0/" + b"x" * 255,
    b"app/0_0/\x1b[31mred",
    b"app/0_0/rocksdb/\xe2\x28\xa1",
    b"app/0_0/rocksdb/" + "日".encode() * 85,
    b"\xc3\x28/0_0",
    b'quo"te\\/0_0/rocksdb/s{a="b"}',
    b"app/0_0/rocksdb/..\xff",
]


@pytest.mark.parametrize("when", ["before", "while"])
def test_hostile_names(tmp_path: Path, when: str) -> None:
    """Bytes that are no text, newlines, escapes and 255 bytes neither stop the watch nor the walk."""
    root = tmp_path / "state"
    make_task(root)

    def make_names() -> None:
        for name in NAMES:
            path = os.path.join(os.fsencode(root), name)
            os.makedirs(path)
            with open(os.path.join(path, b"LO\nCK\xff"), "wb"):
                pass
            with open(os.path.join(path, b".checkpoint"), "wb") as file:
                file.write(b"\xff\x00" * 50)

    if when == "before":
        make_names()
    with LiveLookout(root, tmp_path / "home", mode=BRISK_MODE) as live:
        if when == "while":
            make_names()
        write_checkpoint(root / "app" / "0_0", 9)
        live.turn_until(lambda: live.offset("app/0_0") == 9)
        live.turn_until(lambda: os.fsdecode(b"\xc3\x28") in live.pipeline.inventory.applications)
        rounds = live.lookout.reconciler.counters.rounds
        live.turn_until(lambda: live.lookout.reconciler.counters.rounds >= rounds + 2)
        live.beat()
        assert live.causes() == []


def test_links_that_lead_in_circles_or_away_are_never_followed(tmp_path: Path) -> None:
    """Loops, links out of the tree and links as tasks are left alone; what they lead to is not watched."""
    outside = make_task(tmp_path / "outside", offset=1)
    root = tmp_path / "state"
    task = make_task(root)
    (task / "loop").symlink_to(task)
    (root / "app" / "0_7").symlink_to(outside)
    (task / "rocksdb").symlink_to(tmp_path / "outside")
    (root / "self").symlink_to(root)
    (task / ".lock").symlink_to("/etc/passwd")
    with LiveLookout(root, tmp_path / "home", mode=BRISK_MODE) as live:
        write_checkpoint(outside, 55)
        (task / ".checkpoint").unlink()
        (task / ".checkpoint").symlink_to(outside / ".checkpoint")
        write_checkpoint(root / "app" / "0_0", 8)
        live.turn_until(lambda: live.offset("app/0_0") == 8)
        rounds = live.lookout.reconciler.counters.rounds
        live.turn_until(lambda: live.lookout.reconciler.counters.rounds >= rounds + 2)
        assert live.offset("app/0_7") is None
        assert "self" not in live.pipeline.inventory.applications
        assert live.lookout.keeper.counters().watches == 3


@pytest.mark.parametrize("kind", ["fifo", "device", "directory", "socket"])
def test_odd_files_in_the_place_of_a_checkpoint(live: LiveLookout, kind: str) -> None:
    """Never opened blocking, never read; when a checkpoint is there again it is read."""
    checkpoint = live.root / "app" / "0_0" / ".checkpoint"
    with live:
        checkpoint.unlink()
        if kind == "fifo":
            os.mkfifo(checkpoint)
        elif kind == "device":
            os.mknod(checkpoint, 0o020666, os.makedev(1, 5))  # /dev/zero: a read would never end
        elif kind == "socket":
            os.mknod(checkpoint, 0o140666)
        else:
            checkpoint.mkdir()
        live.turn_until(lambda: live.offset("app/0_0") is None)
        looks = live.pipeline.looker.outcomes.total()
        live.lookout.pipeline.reread("app/0_0", live.clock.now_us())
        assert live.pipeline.looker.outcomes.total() > looks
        if kind == "directory":
            checkpoint.rmdir()
        else:
            checkpoint.unlink()
        write_checkpoint(checkpoint.parent, 4)
        live.turn_until(lambda: live.offset("app/0_0") == 4)


def test_a_checkpoint_of_a_gigabyte(live: LiveLookout) -> None:
    """Not more than the limit is ever read; it is told as malformed."""
    with live:
        temporary = live.root / "app" / "0_0" / ".checkpoint.tmp"
        with temporary.open("wb") as file:
            file.truncate(1 << 30)
        temporary.rename(temporary.with_name(".checkpoint"))
        live.turn_until(lambda: "checkpoint-malformed 0_0" in live.changes())
        problem = live.task("app/0_0").checkpoint_problem  # type: ignore[union-attr]
        assert str(MAX_CHECKPOINT_BYTES) in (problem or "")


@pytest.mark.parametrize("step_s", [3600, -3600])
def test_the_wall_clock_is_set(live: LiveLookout, step_s: int) -> None:
    """An hour either way: told and timed; watching, timers and findings go on."""
    clock = live.clock
    with live:
        clock.step_us += step_s * 1_000_000
        live.lookout.turn()
        live.turn_until(lambda: "clock-step" in live.causes())
        (interval,) = live.pipeline.inventory.blind
        assert abs((interval.ended_us or 0) - interval.started_us - 3_600_000_000) < 1000
        assert abs((interval.ended_us or 0) - clock.now_us() - max(0, -step_s) * 1_000_000) < 20_000_000
        write_checkpoint(live.root / "app" / "0_0", 12)
        live.turn_until(lambda: live.offset("app/0_0") == 12)
        due_s = (live.pipeline.next_us() - clock.now_us()) / 1e6
        assert due_s < 31
        live.beat()
        assert not any("nothing" in x.summary.lower() for x in live.findings())
        assert live.lookout.clocks.steps == 1


def test_a_minute_of_standstill(live: LiveLookout) -> None:
    """The clocks say that a minute passed without the worker: locks went unasked, and that is told."""
    clock = live.clock
    with live:
        clock.passed_s += 60.0
        live.turn_until(lambda: "agent-stalled" in live.causes())
        (interval,) = [x for x in live.pipeline.inventory.blind if x.cause == "agent-stalled"]
        assert 59_000_000 < (interval.ended_us or 0) - interval.started_us < 75_000_000
        write_checkpoint(live.root / "app" / "0_0", 13)
        live.turn_until(lambda: live.offset("app/0_0") == 13)
