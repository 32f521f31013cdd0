"""The watched tree on a real directory and a real queue, without a thread: every step is called by hand."""

from __future__ import annotations

import errno
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from agent.inventory.hints import WATCHED_EVENTS, Hint, HintKind
from agent.layout.paths import PathRole, classify
from agent.watch import tree_watch
from agent.watch.inotify import InotifyQueue, RawEvent
from agent.watch.tree_watch import REST_S, RETRY_S, TreeWatch, list_names
from tests.agent.watch.live import HandClock

pytestmark = pytest.mark.inotify
OVERFLOW = RawEvent(-1, HintKind.RESCAN, False, b"")
STORE = "app/0_1/rocksdb/store"


class CountedQueue(InotifyQueue):
    """A queue that refuses to watch more than so many directories."""

    room = 1000

    def add(self, directory: int, role: PathRole) -> int:
        """Watch, or refuse as the kernel would."""
        if self.room <= 0:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        self.room -= 1
        return super().add(directory, role)


@dataclass
class Bench:
    """A watch on a directory, with everything that it needs."""

    root: Path
    queue: CountedQueue
    clock: HandClock
    watch: TreeWatch

    def step(self) -> list[Hint]:
        """Read until the queue is empty, as the thread does."""
        hints: list[Hint] = []
        while events := self.queue.read():
            hints += self.watch.handle(events)
        return hints + self.watch.tick()

    def kernel_watches(self) -> int:
        """Count the watches that the kernel keeps for the queue."""
        return Path(f"/proc/self/fdinfo/{self.queue.fileno()}").read_text().count("inotify wd:")

    def names(self) -> list[tuple[str, HintKind]]:
        """Step, and give path and kind of every hint."""
        return [(hint.path, hint.kind) for hint in self.step()]


@pytest.fixture
def bench(tmp_path: Path, hand_clock: HandClock) -> Iterator[Bench]:
    """Give a watch on a state directory that does not exist yet."""
    queue = CountedQueue()
    root = tmp_path / "state"
    yield Bench(root, queue, hand_clock, TreeWatch(root, queue, hand_clock))
    queue.close()


def _causes(hints: list[Hint]) -> list[tuple[str, str]]:
    return [(hint.path, hint.cause) for hint in hints if hint.kind is HintKind.RESCAN]


def test_every_directory_of_interest_is_watched_and_no_other(bench: Bench) -> None:
    """Application, topology, task, stores, store and segment are watched; unknown ones and links are not."""
    for path in (STORE, "app/__t__/0_0/win/win.1000", "app/odd/deep", f"{STORE}/odd", "lost+found"):
        (bench.root / path).mkdir(parents=True)
    (bench.root / "link").symlink_to("app")
    assert _causes(bench.step()) == [("", "start")]
    assert bench.watch.counters().watches == 1 + 4 + 4  # the root, four for the store, four for the segment
    assert bench.watch.degraded() == {}
    for path in ("app/odd", "app/odd/deep", f"{STORE}/odd", "lost+found", "app/__t__/0_0/win/win.1000"):
        (bench.root / path / "f").touch()
    assert {path for path, _ in bench.names()} == {"app/__t__/0_0/win/win.1000/f"}


def test_missing_root_is_reported_once_and_found_later(bench: Bench) -> None:
    """A root that is not there yet is one rescan and a degraded state; when it comes, the watch starts."""
    assert _causes(bench.step()) == [("", "root-missing")]
    assert "No such file" in bench.watch.degraded()["root-missing"]
    assert bench.step() == []
    assert bench.watch.awaits_root()
    (bench.root / "app").mkdir(parents=True)
    assert _causes(bench.step()) == [("", "start")]
    assert bench.watch.degraded() == {}
    assert not bench.watch.awaits_root()
    (bench.root / "app" / "0_1").mkdir()
    assert ("app/0_1", HintKind.CREATED) in bench.names()


def test_root_that_may_not_be_read_is_refused_not_missing(bench, monkeypatch):
    """It is there, so something may be lost, and the remedy is a group, not a mount."""
    (bench.root / "app").mkdir(parents=True)

    def refuse(root: Path) -> NoReturn:
        raise PermissionError(errno.EACCES, "Permission denied", str(root))

    with monkeypatch.context() as refusing:
        refusing.setattr(tree_watch, "open_root", refuse)
        assert _causes(bench.step()) == [("", "watch-refused")]
        assert "Permission denied" in bench.watch.degraded()["watch-refused"]
        assert bench.watch.awaits_root()
        assert bench.step() == []
    assert _causes(bench.step()) == [("", "start")]
    assert bench.watch.degraded() == {}


def test_replaced_root_is_watched_again(bench: Bench) -> None:
    """A root that was moved away and made again is followed; the old tree has no say any more."""
    (bench.root / "app").mkdir(parents=True)
    bench.step()
    old = bench.root.rename(bench.root.with_name("old"))
    (bench.root / "other").mkdir(parents=True)
    hints = bench.step()
    assert ("", HintKind.SELF_GONE) in [(hint.path, hint.kind) for hint in hints]
    assert _causes(hints) == [("", "root-replaced")]
    assert bench.kernel_watches() == 2
    (old / "app" / "0_0").mkdir()
    (bench.root / "other" / "0_1").mkdir()
    assert bench.names() == [("other/0_1", HintKind.CREATED)]


def test_a_replaced_checkpoint_is_one_hint_and_four_notifications(bench: Bench) -> None:
    """What says nothing is counted all the same."""
    task = bench.root / "app" / "0_1"
    task.mkdir(parents=True)
    bench.step()
    (task / ".checkpoint.tmp").touch()
    (task / ".checkpoint.tmp").rename(task / ".checkpoint")
    assert bench.names() == [("app/0_1/.checkpoint", HintKind.MOVED_IN)]
    assert bench.watch.counters().events == 4


def test_root_swapped_under_a_link_is_noticed(bench: Bench) -> None:
    """A configured link that points elsewhere now raises no event; the timed comparison sees it."""
    for name in ("one", "two"):
        bench.root.with_name(name).mkdir()
    bench.root.symlink_to("one")
    bench.step()
    bench.root.unlink()
    bench.root.symlink_to("two")
    hints = bench.step()
    assert [hint.kind for hint in hints] == [HintKind.SELF_GONE, HintKind.RESCAN]
    (bench.root / "app").mkdir()
    assert bench.names() == [("app", HintKind.CREATED)]


def test_removed_root_is_missing_until_it_comes_back(bench: Bench) -> None:
    """A deleted root is told as gone and missing, and as replaced when it is back."""
    bench.root.mkdir()
    bench.step()
    bench.root.rmdir()
    hints = bench.step()
    assert hints[0].kind is HintKind.SELF_GONE
    assert _causes(hints) == [("", "root-missing")]
    bench.root.mkdir()
    assert _causes(bench.step()) == [("", "root-replaced")]


def test_overflow_asks_for_a_rescan_and_restores_the_watches(bench: Bench) -> None:
    """After a lost notification of a new directory, that directory is watched all the same."""
    (bench.root / "app").mkdir(parents=True)
    bench.step()
    bench.clock.elapsed_s += REST_S
    (bench.root / STORE).mkdir(parents=True)
    bench.queue.read()
    bench.watch.handle([OVERFLOW])
    assert _causes(bench.watch.tick()) == [("", "queue-overflow")]
    assert bench.watch.counters().overflows == 1
    (bench.root / STORE / "LOCK").touch()
    assert (f"{STORE}/LOCK", HintKind.WRITTEN) in bench.names()
    bench.watch.handle([OVERFLOW])  # right after a walk it waits for its turn, and is not forgotten
    assert bench.watch.tick() == []
    bench.clock.elapsed_s += REST_S
    assert _causes(bench.watch.tick()) == [("", "queue-overflow")]
    bench.clock.elapsed_s += REST_S
    assert bench.watch.tick() == []


def test_watches_of_lost_directories_are_given_back_after_an_overflow(bench: Bench) -> None:
    """Directories whose end or departure was never announced are not watched for ever."""
    (bench.root / STORE).mkdir(parents=True)
    (bench.root / "app2").mkdir()
    bench.step()
    shutil.rmtree(bench.root / "app2")
    (bench.root / "app").rename(bench.root.with_name("gone"))
    bench.queue.read()
    bench.clock.elapsed_s += REST_S
    bench.watch.handle([OVERFLOW])
    bench.watch.tick()
    assert bench.watch.counters().watches == 1
    assert bench.kernel_watches() == 1


def test_directory_is_watched_before_it_is_listed(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is made right after the listing is not lost: the watch stands already."""
    bench.root.mkdir()
    bench.step()
    (bench.root / "app").mkdir()

    def list_slowly(directory: int) -> list[tuple[str, bool]]:
        found = list_names(directory)
        (bench.root / "app" / ".lock").touch()
        return found

    monkeypatch.setattr(tree_watch, "list_names", list_slowly)
    assert ("app/.lock", HintKind.CREATED) in bench.names()


def test_new_directory_is_announced_with_everything_in_it(bench: Bench) -> None:
    """What was made before the watch stood is found by the listing that follows it."""
    bench.root.mkdir()
    bench.step()
    (bench.root / STORE).mkdir(parents=True)
    (bench.root / STORE / "LOCK").touch()
    hints = bench.step()
    made = [(hint.path, hint.is_directory) for hint in hints if hint.kind is HintKind.CREATED]
    above = [("app", True), ("app/0_1", True), ("app/0_1/rocksdb", True)]
    assert made == [*above, (STORE, True), (f"{STORE}/LOCK", False)]


def test_deleted_directory_is_reported_and_its_successor_is_watched(bench: Bench) -> None:
    """A directory recreated under its old name is watched; its predecessor's late farewell does not matter."""
    (bench.root / "app" / "0_1").mkdir(parents=True)
    bench.step()
    keeps_inode_alive = os.open(bench.root / "app" / "0_1", os.O_RDONLY)
    (bench.root / "app" / "0_1").rmdir()
    (bench.root / "app" / "0_1").mkdir()
    assert bench.names() == [("app/0_1", HintKind.DELETED), ("app/0_1", HintKind.CREATED)]
    os.close(keeps_inode_alive)
    assert bench.names() == [("app/0_1", HintKind.SELF_GONE)]
    (bench.root / "app" / "0_1" / ".lock").touch()
    assert ("app/0_1/.lock", HintKind.CREATED) in bench.names()


def test_directory_renamed_inside_the_tree_is_followed(bench: Bench) -> None:
    """After a rename, news from below carry the new path."""
    (bench.root / STORE).mkdir(parents=True)
    bench.step()
    (bench.root / "app").rename(bench.root / "app2")
    assert bench.names()[:2] == [("app", HintKind.MOVED_OUT), ("app2", HintKind.MOVED_IN)]
    (bench.root / "app2" / "0_1" / "rocksdb" / "store" / "LOCK").touch()
    assert {path for path, _ in bench.names()} == {"app2/0_1/rocksdb/store/LOCK"}
    assert bench.watch.counters().watches == 5


def test_directory_moved_out_of_the_tree_is_left_alone(bench: Bench) -> None:
    """What happens to a directory after it left is not announced."""
    (bench.root / STORE).mkdir(parents=True)
    bench.step()
    gone = (bench.root / "app").rename(bench.root.with_name("gone"))
    assert bench.names() == [("app", HintKind.MOVED_OUT)]
    (gone / "0_1" / "f").touch()
    assert bench.step() == []
    assert bench.watch.counters().watches == 1


def test_symbolic_links_are_never_followed(bench: Bench) -> None:
    """Neither a link that lies there, nor one that comes, nor one that takes a new directory's place."""
    outside = bench.root.with_name("outside")
    (outside / "0_1").mkdir(parents=True)
    (bench.root / "app").mkdir(parents=True)
    (bench.root / "there").symlink_to(outside)
    bench.step()
    (bench.root / "app" / "0_1").symlink_to(outside / "0_1")
    (bench.root / "app" / "0_2").mkdir()
    (bench.root / "app" / "0_2").rmdir()
    (bench.root / "app" / "0_2").symlink_to(outside / "0_1")
    bench.step()
    (outside / "f").touch()
    (outside / "0_1" / "f").touch()
    assert bench.step() == []
    assert bench.watch.counters().unwatched == 0


def test_watch_limit_is_reported_and_tried_again(bench: Bench) -> None:
    """Directories beyond the limit end in a rescan that names it; when there is room, they are watched."""
    (bench.root / "app").mkdir(parents=True)
    bench.step()
    bench.queue.room = 0
    (bench.root / "app" / "0_1").mkdir()
    assert _causes(bench.step()) == [("app/0_1", "watch-limit")]
    assert "fs.inotify.max_user_watches=" in bench.watch.degraded()["watch-limit"]
    assert bench.watch.counters().unwatched == 1
    bench.queue.room = 100
    assert bench.step() == []
    bench.clock.elapsed_s += RETRY_S
    assert _causes(bench.step()) == [("", "watch-limit")]
    assert bench.watch.degraded() == {}
    (bench.root / "app" / "0_1" / ".lock").touch()
    assert ("app/0_1/.lock", HintKind.CREATED) in bench.names()


def test_limit_reached_at_the_start_is_reported_once(bench: Bench) -> None:
    """The first rescan is joined by one that names the limit; later walks that change nothing are silent."""
    (bench.root / STORE).mkdir(parents=True)
    for causes in ([("", "start"), ("", "watch-limit")], []):
        bench.queue.room = 2
        assert _causes(bench.step()) == causes
        bench.clock.elapsed_s += RETRY_S


NAMES = ("app", "app/0_0", "app/0_1", "app/0_0/rocksdb", "app/0_0/rocksdb/s", "app/0_1/rocksdb")
ACTIONS = st.sampled_from(["make", "delete", "rename", "read", "lose"])
operations = st.lists(st.tuples(ACTIONS, st.sampled_from(NAMES), st.sampled_from(NAMES)), max_size=25)


@settings(max_examples=60, deadline=None)
@given(operations)
@example(
    [("make", "app/0_0", ""), ("read", "", ""), ("make", "app/0_1", ""), ("rename", "app/0_0", "app/0_1")]
)
def test_any_history_ends_with_everything_watched(steps: list[tuple[str, str, str]]) -> None:
    """However directories came, went, were renamed and news got lost, a new file in each is announced."""
    with tempfile.TemporaryDirectory() as folder, closing(CountedQueue()) as queue:
        clock = HandClock()
        bench = Bench(Path(folder), queue, clock, TreeWatch(Path(folder), queue, clock))
        bench.step()
        for operation, path, other in steps:
            if operation == "read":
                bench.step()
            elif operation == "lose":
                queue.read()
                bench.watch.handle([OVERFLOW])
            else:
                _try(operation, bench.root / path, bench.root / other)
        clock.elapsed_s += REST_S
        bench.step()
        expected = _of_interest(bench.root)
        for path in expected:
            (bench.root / path / "f").touch()
        made = {path for path, kind in bench.names() if kind is HintKind.CREATED}
        assert made == {f"{path}/f" for path in expected}
        assert bench.watch.counters().watches == len(expected) + 1


def _of_interest(root: Path) -> set[str]:
    found = {str(path.relative_to(root)) for path in root.rglob("*") if path.is_dir()}
    return {path for path in found if classify(path).role in WATCHED_EVENTS}


def _try(operation: str, path: Path, other: Path) -> None:
    try:
        if operation == "make":
            path.mkdir(parents=True, exist_ok=True)
        elif operation == "delete":
            shutil.rmtree(path)
        else:
            path.rename(other)
    except OSError:
        return  # not there, or below itself: no history either
