"""The real disk: what it shows, what it refuses, and that it leaves no trace."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import agent
from agent.inventory.disk import Disk, Entry, EntryKind, FileStat, LockState, ProcessFact, Unseen
from agent.observe import kernel_disk
from agent.observe.kernel_disk import KernelDisk


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Make a state directory with one of everything, and a file outside of it."""
    root = tmp_path / "state"
    (root / "app" / "0_1").mkdir(parents=True)
    (root / "app" / "0_1" / ".checkpoint").write_bytes(b"0\n1\ntopic 0 42\n")
    (root / "app" / "link").symlink_to("0_1")
    (root / "app" / "file-link").symlink_to("0_1/.checkpoint")
    os.mkfifo(root / "app" / "fifo")
    (tmp_path / "outside").write_bytes(b"secret")
    return root


def test_listing_shows_the_kind_of_every_entry(root: Path) -> None:
    """Directories, links and odd files are told apart; links are links, wherever they lead."""
    disk: Disk = KernelDisk(root)
    listing = disk.list("app")
    assert not isinstance(listing, Unseen)
    assert set(listing) == {
        Entry("0_1", EntryKind.DIRECTORY),
        Entry("link", EntryKind.SYMLINK),
        Entry("file-link", EntryKind.SYMLINK),
        Entry("fifo", EntryKind.OTHER),
    }
    assert disk.list("") == (Entry("app", EntryKind.DIRECTORY),)
    assert disk.list("app/0_1") == (Entry(".checkpoint", EntryKind.FILE),)


def test_overlong_listing_is_too_large(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A listing beyond the cap is not cut silently."""
    monkeypatch.setattr(kernel_disk, "MAX_ENTRIES", 3)
    assert KernelDisk(root).list("app") is Unseen.TOO_LARGE
    assert KernelDisk(root).list("app/0_1") == (Entry(".checkpoint", EntryKind.FILE),)


def test_stat_is_that_of_the_entry_itself(root: Path) -> None:
    """Kind, inode, size and time come from lstat; the root has them too."""
    path = root / "app" / "0_1" / ".checkpoint"
    os.utime(path, ns=(0, 1_700_000_000_123_456_789))
    disk = KernelDisk(root)
    inode = path.stat().st_ino
    assert disk.stat("app/0_1/.checkpoint") == FileStat(EntryKind.FILE, inode, 15, 1_700_000_000_123_456)
    for name, kind in (("link", EntryKind.SYMLINK), ("fifo", EntryKind.OTHER), ("0_1", EntryKind.DIRECTORY)):
        found = disk.stat(f"app/{name}")
        assert isinstance(found, FileStat)
        assert found.kind is kind
    top = disk.stat("")
    assert isinstance(top, FileStat)
    assert (top.kind, top.inode) == (EntryKind.DIRECTORY, root.stat().st_ino)


def test_stamps_are_those_of_single_questions(root: Path) -> None:
    """Inode and time of each directory, whatever their order; one that is gone, or behind a link, is told as such."""
    disk = KernelDisk(root)
    (root / "app" / "0_1" / "rocksdb" / "s").mkdir(parents=True)
    os.utime(root / "app" / "0_1" / "rocksdb", ns=(0, 1_700_000_000_123_456_789))
    paths = ["app/0_1", "app/0_1/rocksdb/s", "app/0_1/rocksdb"]
    single = [disk.stat(path) for path in paths]
    facts = [fact for x in single if isinstance(x, FileStat) for fact in (x.inode, x.mtime_us)]
    descriptors = open_count()
    assert disk.stamps(paths) == tuple(facts)
    assert disk.stamps([*paths, "app/0_1/gone"]) is Unseen.VANISHED
    for path in ("app/link/rocksdb", "app/../app/0_1", "../outside", "app//0_1", ""):
        assert disk.stamps([path]) is Unseen.VANISHED
    assert open_count() == descriptors


CUT = {(0, 100): b"0\n1\ntopic 0 42\n", (4, 5): b"topic", (12, 100): b"42\n", (15, 1): b"", (99, 9): b"", (0,
         0): b"", (14, 2**62): b"\n"}  # fmt: skip


@pytest.mark.parametrize(("offset", "length"), CUT)
def test_read_is_cut_at_the_end_of_the_file(root: Path, offset: int, length: int) -> None:
    """A read gives what is there, and reserves no memory for a length that no machine has."""
    assert KernelDisk(root).read_at("app/0_1/.checkpoint", offset, length) == CUT[offset, length]


def test_answers_in_parts_are_put_together(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file system that gives less than asked for is asked again."""
    whole = os.pread
    monkeypatch.setattr(os, "pread", lambda descriptor, _, offset: whole(descriptor, 4, offset))
    assert KernelDisk(root).read_at("app/0_1/.checkpoint", 0, 100) == b"0\n1\ntopic 0 42\n"


def asked(disk: KernelDisk, path: str) -> list[object]:
    """All that can be asked of a path."""
    return [disk.list(path), disk.stat(path), disk.read_at(path, 0, 10), disk.lock_state(path)]


VANISHED = ["missing", "app/missing", "app/missing/deep", "app/0_1/.checkpoint/below", "app/link/.checkpoint"]
DETOURS = ["../outside", "app/../../outside", "/outside", "app//0_1", "app/./0_1", "app/"]


@pytest.mark.parametrize("path", VANISHED + DETOURS)
def test_what_is_not_there_has_vanished(root: Path, path: str) -> None:
    """A missing name, a file or link in place of a directory, dots and doubled slashes: all mean: not there."""
    assert set(asked(KernelDisk(root), path)) == {Unseen.VANISHED}
    nowhere = KernelDisk(root / "missing")
    assert {nowhere.list(""), nowhere.stat(""), nowhere.list("app")} == {Unseen.VANISHED}


def test_links_are_never_followed(root: Path) -> None:
    """A link ends the look at the end of the way, too."""
    disk = KernelDisk(root)
    assert disk.list("app/link") is Unseen.UNREADABLE
    assert disk.read_at("app/file-link", 0, 10) is disk.lock_state("app/file-link") is Unseen.UNREADABLE


def test_odd_files_are_unreadable_at_once(root: Path) -> None:
    """A FIFO in the place of a checkpoint neither blocks nor is opened; a directory has no content."""
    os.mkfifo(root / "app" / "0_1" / ".checkpoint.fifo")
    disk = KernelDisk(root)
    for path in ("app/0_1/.checkpoint.fifo", "app/0_1", ""):
        assert disk.read_at(path, 0, 10) is Unseen.UNREADABLE
        assert disk.lock_state(path) is Unseen.UNREADABLE
    assert disk.list("app/0_1/.checkpoint") is Unseen.UNREADABLE


def test_fifo_is_not_opened_for_its_writer(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Opening a FIFO would wake whoever waits to write to it, so it is recognised before."""
    opened: list[object] = []
    real_open = os.open

    def spy(name: str, flags: int, **options: int) -> int:
        opened.append(name)
        return real_open(name, flags, **options)

    monkeypatch.setattr(os, "open", spy)
    assert KernelDisk(root).read_at("app/fifo", 0, 10) is Unseen.UNREADABLE
    assert opened == [str(root), "app"]


def test_content_and_time_belong_together(root: Path) -> None:
    """A dated read gives what two looks at an unchanged file give; of a longer file it reads nothing."""
    disk, path = KernelDisk(root), "app/0_1/.checkpoint"
    stat = disk.stat(path)
    assert isinstance(stat, FileStat)
    content = disk.read_at(path, 0, stat.size_bytes)
    assert content
    assert disk.read_dated(path, stat.size_bytes) == (stat, content)
    assert disk.read_dated(path, stat.size_bytes - 1) == (stat, b"")
    assert disk.read_dated("app/0_1", 10) is Unseen.UNREADABLE
    assert disk.read_dated("app/none", 10) is Unseen.VANISHED


def test_names_that_are_not_text_survive(root: Path) -> None:
    """A name of any bytes is listed, and can be looked at by the listed name."""
    (root / os.fsdecode(b"b\xff\xfed")).mkdir()
    disk = KernelDisk(root)
    listing = disk.list("")
    assert not isinstance(listing, Unseen)
    names = [entry.name for entry in listing if entry.name != "app"]
    assert [os.fsencode(name) for name in names] == [b"b\xff\xfed"]
    assert disk.list(names[0]) == ()


@given(st.text(st.characters(categories=["Cs", "Cc", "L", "P", "N"]), min_size=1, max_size=30))
@example("\0")
@example("app/\ud800")
@example("x" * 5000)
def test_no_path_raises(tmp_path_factory: pytest.TempPathFactory, path: str) -> None:
    """Whatever is asked for below an existing root, the answer is a value."""
    disk = KernelDisk(tmp_path_factory.getbasetemp())
    assert all(isinstance(x, Unseen | tuple | bytes | LockState) for x in asked(disk, path))


UNPRIVILEGED = """
import os
from pathlib import Path
from agent.observe.kernel_disk import KernelDisk
if os.geteuid() == 0:
    os.setgroups([])
    os.setgid(65534)
    os.setuid(65534)
disk = KernelDisk(Path("."))
for answer in (
    disk.list("closed"), disk.stat("closed/file"), disk.read_at("closed/file", 0, 1),
    disk.read_at("open/file", 0, 1), disk.lock_state("open/file"),
):
    print(answer)
stat = disk.stat("closed")
print(stat.kind)
"""


def test_missing_permission_is_denied(tmp_path: Path) -> None:
    """What the agent's user may not read is denied, not missing; the directory itself can still be seen."""
    tmp_path.chmod(0o755)
    for name, mode in (("closed", 0), ("open", 0o755)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "file").touch()
        (tmp_path / name / "file").chmod(0)
        (tmp_path / name).chmod(mode)
    repository = Path(agent.__file__).parents[1]
    # The child works from inside the directory: it may not pass the folders above once it is nobody.
    answer = subprocess.run(
        [sys.executable, "-c", UNPRIVILEGED],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(repository)},
        capture_output=True,
        text=True,
        check=False,
    )
    (tmp_path / "closed").chmod(0o755)
    assert answer.stdout.split() == ["denied"] * 5 + ["directory"], answer.stderr


def photograph(root: Path) -> dict[str, tuple[int, ...]]:
    """What would show that something was touched, and the number of open descriptors."""
    looks = {str(path): path.lstat() for path in sorted([root, *root.rglob("*")])}
    found = {
        path: (x.st_ino, x.st_mode, x.st_size, x.st_mtime_ns, x.st_ctime_ns) for path, x in looks.items()
    }
    return {**found, "open": (len(os.listdir("/proc/self/fd")),)}


def test_reading_leaves_no_trace(root: Path) -> None:
    """Inode, mode, size, times and descriptors are the same after every kind of look and refusal."""
    before = photograph(root)
    disk = KernelDisk(root)
    odd = ("app/link/x", "app/missing/x", "app/../x", "app/\0/x", "app/\ud800/x")
    for path in ("", "app", "app/0_1", "app/0_1/.checkpoint", "app/fifo", "app/link", *odd):
        asked(disk, path)
    assert asked(disk, "app/0_1/.checkpoint")[3] is LockState.FREE
    assert photograph(root) == before


def test_processes_come_from_what_searches_for_them(root: Path) -> None:
    """Without a way to look there are none; with one, its answer is passed on."""
    fact = ProcessFact(42, 1, "4.1.2")
    assert KernelDisk(root).processes() == ()
    assert KernelDisk(root, lambda: (fact,)).processes() == (fact,)


def test_a_reading_stays_with_the_directory_it_began_with(root: Path) -> None:
    """A directory that is recreated during a look is what it was as long as it is there; then the successor shows."""
    disk = KernelDisk(root)
    before = disk.stat("app/0_1")
    with disk.stay_in("app/0_1"):
        (root / "app" / "0_1").rename(root / "app" / "old")
        (root / "app" / "0_1").mkdir()
        (root / "app" / "0_1" / "new").touch()
        assert disk.read_at("app/0_1/.checkpoint", 0, 1) == b"0"
        assert disk.stat("app/0_1/new") is Unseen.VANISHED
        assert disk.list("app/0_1") == (Entry(".checkpoint", EntryKind.FILE),)
        assert disk.stat("app/0_1") == before
        shutil.rmtree(root / "app" / "old")
        assert disk.stat("app/0_1") is Unseen.VANISHED
    assert isinstance(disk.stat("app/0_1/new"), FileStat)


def test_what_is_in_a_directory_that_is_kept_open_is_reached_from_there(root: Path) -> None:
    """And what is below it, whatever becomes of its name; what is elsewhere is reached by its own name."""
    (root / "app/0_1/rocksdb/s").mkdir(parents=True)
    disk = KernelDisk(root)
    before = open_count()
    with disk.stay_in("app/0_1"):
        (root / "app/0_1").rename(root / "app/old")
        assert disk.read_at("app/0_1/.checkpoint", 0, 1) == b"0"
        assert disk.stat("app/0_1/..") is Unseen.VANISHED
        assert disk.list("app/0_1/rocksdb") == (Entry("s", EntryKind.DIRECTORY),)
        assert disk.list("app/0_1/rocksdb/s") == ()
        with disk.stay_in("app/0_1/rocksdb/s"):
            assert disk.list("app/0_1/rocksdb/s") == ()
            assert disk.read_at("app/0_1/.checkpoint", 0, 1) is Unseen.VANISHED  # it is no other's
        assert disk.read_at("app/0_1/.checkpoint", 0, 1) == b"0"
        assert isinstance(disk.stat("app/old/.checkpoint"), FileStat)
        assert disk.read_at("app/0_10/.checkpoint", 0, 1) is Unseen.VANISHED
    assert disk.list("app/0_1") is Unseen.VANISHED
    assert open_count() == before


def open_count() -> int:
    """Descriptors that are open."""
    return len(os.listdir("/proc/self/fd"))


NEITHER = ["app/fifo", "app/gone", "app/../app", "a\0b", ""]


@pytest.mark.parametrize(
    ("stay", "path"),
    [
        *(("stay_in", x) for x in ("app/link", *NEITHER)),
        *(("stay_on", x) for x in ("app/file-link", "app/0_1", *NEITHER)),
    ],
)
def test_what_is_none_is_not_kept_open(root: Path, stay: str, path: str) -> None:
    """A link is not followed, a FIFO not opened, and every look says so by itself; what is kept open ends with it."""
    disk, good = KernelDisk(root), "app/0_1" if stay == "stay_in" else "app/0_1/.checkpoint"
    before = open_count()
    with getattr(disk, stay)(path):
        assert open_count() == before
        below = path if stay == "stay_on" else f"{path}/.checkpoint"
        assert isinstance(disk.read_at(below, 0, 1), Unseen)
    with getattr(disk, stay)(good):
        assert open_count() == before + 1
        assert {disk.stat(f"app/0_1/{name}") for name in ("..", ".", "")} == {Unseen.VANISHED}
    assert open_count() == before


def test_a_file_that_is_kept_open_is_read_as_it_was(root: Path) -> None:
    """Its successor, and what is appended meanwhile, show in the next reading; other files are not concerned."""
    disk = KernelDisk(root)
    path = root / "app" / "0_1" / ".checkpoint"
    (root / "app" / "0_1" / "other").write_bytes(b"other")
    with disk.stay_in("app/0_1"), disk.stay_on("app/0_1/.checkpoint"):
        with path.open("ab") as file:
            file.write(b"more")
        path.rename(root / "app" / "old")
        path.write_bytes(b"new")
        assert disk.read_at("app/0_1/.checkpoint", 12, 100) == b"42\n"
        assert disk.read_at("app/0_1/other", 0, 100) == b"other"
    assert disk.read_at("app/0_1/.checkpoint", 0, 100) == b"new"
