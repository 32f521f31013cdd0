"""Visible processes: children that carry a JVM's name and hold a JVM's files."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest

from agent.inventory.disk import ProcessFact
from agent.observe import process
from agent.observe.process import ProcessView, visible_processes

ROOT = Path(__file__).resolve().parents[3]
HOLD = """
import sys
held = [open(path, "rb") for path in sys.argv[1:]]
print("holding", flush=True)
sys.stdin.read()
"""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Make a state directory with one lock file."""
    (tmp_path / "state" / "app" / "0_1" / "rocksdb" / "s").mkdir(parents=True)
    (tmp_path / "state" / "app" / "0_1" / "rocksdb" / "s" / "LOCK").touch()
    return tmp_path / "state"


@contextmanager
def _holding(folder: Path, name: str, *paths: Path) -> Iterator[int]:
    """Run a process of this name with these files open; gives its id."""
    program = folder / name
    program.symlink_to(os.path.realpath(sys.executable))
    for path in paths:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    with subprocess.Popen(
        [program, "-S", "-E", "-c", HOLD, *paths], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == b"holding\n"
        yield child.pid
        child.kill()


def test_jvm_on_the_state_directory_is_seen_with_its_release(tmp_path: Path, root: Path) -> None:
    """A JVM with a file below the root is seen; the release comes from its open jar."""
    lock = root / "app" / "0_1" / "rocksdb" / "s" / "LOCK"
    jars = [tmp_path / "kafka-streams-scala_2.13-9.9.9.jar", tmp_path / "kafka-streams-4.1.2.jar"]
    with _holding(tmp_path, "java", lock, *jars) as pid:
        started_at_us = int(psutil.Process(pid).create_time() * 1_000_000)
        assert visible_processes(root) == (ProcessFact(pid, started_at_us, "4.1.2", frozenset({"app"})),)
    assert visible_processes(root) == ()


STORE = "state/app/0_1/rocksdb/s"


@pytest.mark.parametrize(
    ("name", "files", "release"),
    [
        (
            "java",
            ("state/app/.lock", "kafka-streams-test-utils-4.1.2.jar"),
            [None],
        ),  # a fat jar hides the release
        (
            "java",
            ("state-of-others/app/0_1/.lock",),
            [],
        ),  # beside the root, in a directory whose name begins the same
        ("rsync", (f"{STORE}/LOCK",), []),  # a backup that reads the state directory is not an owner
        ("java", (f"{STORE}/000012.sst",), []),  # nor is a reader of data files without a lock
    ],
)
def test_who_is_seen(tmp_path, root, name, files, release):
    """JVMs that hold a lock below the root."""
    with _holding(tmp_path, name, *(tmp_path / x for x in files)):
        assert [fact.kafka_streams_version for fact in visible_processes(root)] == release


def test_volume_mounted_elsewhere_is_recognised_by_its_lock_file(tmp_path: Path, root: Path) -> None:
    """A neighbour container sees the volume under another path; the open lock file is the same file."""
    there = tmp_path / "other-mount" / "app" / "0_1" / "rocksdb" / "s" / "LOCK"
    there.parent.mkdir(parents=True)
    there.hardlink_to(root / "app" / "0_1" / "rocksdb" / "s" / "LOCK")
    with _holding(tmp_path, "java", there) as pid:
        found = [(fact.pid, fact.applications) for fact in visible_processes(root)]
        assert found == [(pid, frozenset({"app"}))]


def test_same_path_on_another_volume_is_another_directory(tmp_path, root, monkeypatch):
    """The name that /proc gives is one of the process's own mount namespace: what counts is the file, not its name."""
    inner = Path("app", "0_1", "rocksdb", "s", "LOCK")
    real, seen = process._open_files, tmp_path / "other-volume"
    there = lambda pid: ((name.replace(str(seen), str(root)), link) for name, link in real(pid))  # noqa: E731
    monkeypatch.setattr(process, "_open_files", there)
    with _holding(tmp_path, "java", seen / inner, tmp_path / "kafka-streams-4.1.2.jar"):
        assert visible_processes(root) == ()
        (root / inner).unlink()
        (root / inner).hardlink_to(seen / inner)
        assert [x.applications for x in visible_processes(root)] == [{"app"}]


def test_every_application_is_named_once(tmp_path: Path, root: Path) -> None:
    """A JVM with many locks in two applications works in both."""
    locks = [root / app / task / ".lock" for app in ("app", "other") for task in ("0_0", "0_1", "0_2")]
    with _holding(tmp_path, "java", *locks):
        assert [x.applications for x in visible_processes(root)] == [{"app", "other"}]


def test_no_process_table_is_an_empty_answer(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A system that shows nothing is no reason to stop."""

    def refuse(path: str) -> list[str]:
        raise PermissionError(path)

    monkeypatch.setattr(os, "listdir", refuse)
    assert visible_processes(root) == ()


def test_without_a_jvm_psutil_is_not_loaded(tmp_path: Path) -> None:
    """Most sidecars see no process of the application: they do without 3.5 MiB."""
    code = (
        "import sys; from pathlib import Path; from agent.observe import process;"
        "process._JAVA = (b'no such name',); print(process.visible_processes(Path('.')), 'psutil' in sys.modules)"
    )
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    assert told.stdout == "() False\n"


class HandClock:
    """A clock that moves only when told to."""

    elapsed_s = 5.0

    def now_us(self) -> int:
        """Tell no time: nobody asks."""
        raise AssertionError

    def monotonic_s(self) -> float:
        """Tell the seconds since some fixed point."""
        return self.elapsed_s


def test_reading_is_repeated_only_when_it_is_old(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Within the allowed age the last answer holds; after it the next question looks again."""
    answers = iter([(ProcessFact(1, 1),), (ProcessFact(2, 2),)])
    monkeypatch.setattr(process, "visible_processes", lambda _: next(answers))
    clock = HandClock()
    view = ProcessView(root, clock, max_age_s=10)
    assert [view.visible(), view.visible()] == [(ProcessFact(1, 1),)] * 2
    clock.elapsed_s += 10
    assert view.visible() == (ProcessFact(2, 2),)
