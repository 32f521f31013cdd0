"""Looks: what is there now, or why it could not be seen."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from agent.contract.events import Source
from agent.inventory.disk import Disk, Entry, FileStat, LockState, Unseen
from agent.inventory.observations import DatabaseReading
from agent.layout.checkpoint import MAX_CHECKPOINT_BYTES, OffsetEntry
from agent.layout.paths import classify
from agent.observe.observer import TRIES, Observer
from agent.replay.memory_disk import MemoryDisk
from agent.replay.trace import Operation, read_trace

AT_US, NOW = 77, Source.RESCAN
APP, TASK, STORE = classify("app"), classify("app/0_0"), classify("app/0_0/rocksdb/s")
CHECKPOINT, LOCK = classify("app/0_0/.checkpoint"), classify("app/0_0/rocksdb/s/LOCK")
UNSEEN = sorted(Unseen)


class Refusing:
    """A disk that answers some paths with a reason instead."""

    def __init__(self, disk: Disk, reason: Unseen, *calls: tuple[str, str]) -> None:
        self._disk, self._reason, self._calls = disk, reason, frozenset(calls)
        self.stay_in, self.stay_on, self.processes = disk.stay_in, disk.stay_on, disk.processes

    def list(self, path: str) -> tuple[Entry, ...] | Unseen:
        return self._reason if ("list", path) in self._calls else self._disk.list(path)

    def stat(self, path: str) -> FileStat | Unseen:
        return self._reason if ("stat", path) in self._calls else self._disk.stat(path)

    def read_at(self, path: str, offset: int, length: int) -> bytes | Unseen:
        return self._reason if ("read", path) in self._calls else self._disk.read_at(path, offset, length)

    def read_dated(self, path: str, most_bytes: int) -> tuple[FileStat, bytes] | Unseen:
        found = self._disk.read_dated(path, most_bytes)
        is_read = not isinstance(found, Unseen) and bool(found[1])
        is_refused = ("stat", path) in self._calls or (is_read and ("read", path) in self._calls)
        return self._reason if is_refused else found

    def lock_state(self, path: str) -> LockState | Unseen:
        return self._reason if ("lock", path) in self._calls else self._disk.lock_state(path)


def disk_with(disk: MemoryDisk | None = None, **files: bytes) -> MemoryDisk:
    """Make a disk with one task and one store; names of files as keywords are not paths, so a table maps them."""
    disk = MemoryDisk() if disk is None else disk
    for number, path in enumerate(("app", "app/0_0", "app/0_0/rocksdb", "app/0_0/rocksdb/s"), start=1):
        disk.apply(Operation(number, "mkdir", path))
    for number, (key, content) in enumerate(files.items(), start=10):
        write(disk, PATHS[key], content, number)
    return disk


PATHS = {
    "lock": "app/.lock",
    "process": "app/kafka-streams-process-metadata",
    "task_lock": "app/0_0/.lock",
    "checkpoint": "app/0_0/.checkpoint",
    "store_lock": "app/0_0/rocksdb/s/LOCK",
    "identity": "app/0_0/rocksdb/s/IDENTITY",
    "current": "app/0_0/rocksdb/s/CURRENT",
    "sst": "app/0_0/rocksdb/s/000009.sst",
    "old_options": "app/0_0/rocksdb/s/OPTIONS-000005",
    "options": "app/0_0/rocksdb/s/OPTIONS-000012",
    "log": "app/0_0/rocksdb/s/LOG.old.1700000000000001",
}


def write(disk: MemoryDisk, path: str, content: bytes, at_us: int) -> None:
    if isinstance(disk.stat(path), FileStat):
        disk.apply(Operation(at_us, "unlink", path))
    for operation in (Operation(at_us, "create", path), Operation(at_us, "open_w", path)):
        disk.apply(operation)
    if content:
        disk.apply(Operation(at_us, "write", path, data=content))


# -- applications -------------------------------------------------------------------------------------


def test_an_application() -> None:
    """Lock, its inode and the process id are there; absent files are absent, not free and not malformed."""
    disk = disk_with(lock=b"", process=b'{"processId":"5f4d3a30-1111-4222-8333-944445555566"}')
    disk.apply(Operation(20, "lock", "app/.lock"))
    look = Observer(disk).application(APP, AT_US, NOW)
    assert (look.place, look.at_us, look.source, look.unseen) == (APP, AT_US, NOW, None)
    known = (look.lock, look.process_id, look.process_hidden)
    assert known == (LockState.HELD, "5f4d3a30-1111-4222-8333-944445555566", None)
    assert look.lock_inode == getattr(disk.stat("app/.lock"), "inode", None)
    bare = Observer(disk_with()).application(APP, AT_US, NOW)
    assert (bare.unseen, bare.lock, bare.process_id, bare.process_hidden) == (None, None, None, None)
    file = MemoryDisk()
    file.apply(Operation(1, "create", "app"))
    assert Observer(file).application(APP, AT_US, NOW).unseen is Unseen.VANISHED


@pytest.mark.parametrize("content", [b"garbage", b"{}", b"\xff", b""])
def test_a_process_file_that_says_nothing(content: bytes) -> None:
    """A malformed one is the file of an application all the same; an empty one is being written."""
    look = Observer(disk_with(process=content)).application(APP, AT_US, NOW)
    assert (look.unseen, look.process_id, look.process_hidden) == (None, None, None)
    assert (look.process_problem is not None) is bool(content)


# -- "could not look" is a value ------------------------------------------------------------------------


@pytest.mark.parametrize("reason", UNSEEN)
def test_what_cannot_be_seen_says_why(reason: Unseen) -> None:
    """Every kind of look passes the disk's reason on, and nothing that was not seen."""
    disk = disk_with(identity=b"id", checkpoint=b"0\n0\n")
    blind = Observer(Refusing(disk, reason, *[("stat", x.path) for x in (APP, TASK, STORE, CHECKPOINT)]))
    for look in (
        blind.application(APP, AT_US, NOW),
        blind.task(TASK, AT_US, NOW),
        blind.database(STORE, AT_US, NOW),
        blind.checkpoint(CHECKPOINT, AT_US, NOW),
    ):
        assert look.unseen is reason
    unlisted = Observer(Refusing(disk, reason, ("list", TASK.path), ("list", STORE.path)))
    assert unlisted.task(TASK, AT_US, NOW).unseen is reason
    assert unlisted.database(STORE, AT_US, NOW).unseen is reason
    unread = Observer(Refusing(disk, reason, ("read", CHECKPOINT.path)))
    assert unread.checkpoint(CHECKPOINT, AT_US, NOW).unseen is reason


@pytest.mark.parametrize("reason", UNSEEN)
def test_a_lock_that_cannot_be_asked(reason: Unseen) -> None:
    """No file is no lock; any other reason is `unknown`, never `free`."""
    disk = Refusing(disk_with(store_lock=b""), reason, ("lock", LOCK.path))
    look = Observer(disk).lock(LOCK, AT_US, NOW)
    assert look.lock is (None if reason is Unseen.VANISHED else LockState.UNKNOWN)
    assert look.inode == 0


# -- tasks and checkpoints ------------------------------------------------------------------------------


def test_a_task() -> None:
    """Children, times and, where there is one, the task's own lock."""
    disk = disk_with(checkpoint=b"")
    look = Observer(disk).task(TASK, AT_US, NOW)
    assert (look.names, look.lock, look.mtime_us) == (frozenset({"rocksdb", ".checkpoint"}), None, 10)
    write(disk, PATHS["task_lock"], b"", 30)
    disk.apply(Operation(31, "lock", PATHS["task_lock"]))
    assert Observer(disk).task(TASK, AT_US, NOW).lock is LockState.HELD


def test_a_checkpoint() -> None:
    """Entries and the time at which they were written."""
    disk = disk_with()
    write(disk, CHECKPOINT.path, b"0\n2\napp-s-changelog 0 41\nother 3 -4\n", 55)
    look = Observer(disk).checkpoint(CHECKPOINT, AT_US, NOW)
    assert (look.unseen, look.problem, look.mtime_us) == (None, None, 55)
    assert look.entries == (OffsetEntry("app-s-changelog", 0, 41), OffsetEntry("other", 3, -4))


@pytest.mark.parametrize("content", [b"", b"garbage", b"0\n2\na 0 1\n", b"\xff\xfe", b"7\n0\n"])
def test_a_malformed_checkpoint(content: bytes) -> None:
    """It is seen, has no entries, and a reason says what is wrong."""
    look = Observer(disk_with(checkpoint=content)).checkpoint(CHECKPOINT, AT_US, NOW)
    assert (look.unseen, look.entries, bool(look.problem), look.mtime_us) == (None, (), True, 10)


def test_a_huge_checkpoint_is_not_read() -> None:
    """A file beyond the bound is named with its size; nothing of it is kept."""
    disk = disk_with(checkpoint=b"0\n")
    disk.apply(Operation(12, "truncate", CHECKPOINT.path, size=MAX_CHECKPOINT_BYTES + 1))
    unread = Refusing(disk, Unseen.DENIED, ("read", CHECKPOINT.path))
    look = Observer(unread).checkpoint(CHECKPOINT, AT_US, NOW)
    assert look.unseen is None
    assert str(MAX_CHECKPOINT_BYTES + 1) in str(look.problem)


# -- databases ------------------------------------------------------------------------------------------


def test_a_store_that_is_being_made() -> None:
    """Without CURRENT there is no manifest yet: identity and lock are told all the same."""
    disk = disk_with(identity=b"id-1\n", store_lock=b"")
    disk.apply(Operation(20, "lock", LOCK.path))
    look = Observer(disk).database(STORE, AT_US, NOW)
    assert (look.identity, look.identity_born_us, look.lock) == ("id-1", 10, LockState.HELD)
    assert (look.manifest, look.puts, look.flushes, look.offsets) == (None, 0, (), None)
    assert look.manifest_problem


def test_an_empty_directory_is_no_incarnation() -> None:
    """Neither identity nor lock nor history."""
    look = Observer(disk_with()).database(STORE, AT_US, NOW)
    assert (look.unseen, look.identity, look.identity_born_us) == (None, None, 0)
    assert (look.lock, look.reopened_us) == (None, ())


def test_leftovers_of_a_torn_deletion() -> None:
    """Data files are leftovers only where CURRENT or IDENTITY is gone."""
    whole: dict[str, Any] = {"sst": b"x", "identity": b"id", "current": b"MANIFEST-000001\n"}
    assert Observer(disk_with(**whole)).database(STORE, AT_US, NOW).leftovers == 0
    del whole["current"]
    assert Observer(disk_with(**whole)).database(STORE, AT_US, NOW).leftovers == 1


OPTIONS = b'[Version]\n  rocksdb_version=%s\n\n[CFOptions "default"]\n'


def test_the_newest_options_file_speaks() -> None:
    """An upgrade leaves older option files behind; the highest number counts, with its time."""
    disk = disk_with(identity=b"id", options=OPTIONS % b"9.7.3", old_options=OPTIONS % b"5.18.4")
    look = Observer(disk).database(STORE, AT_US, NOW)
    assert (look.rocksdb_version, look.families, look.options_written_us) == ("9.7.3", ("default",), 11)


NO_TRACE = {b"keep_log_file_num=1": 1, b"db_log_dir=/logs": 0, b"max_log_file_size=65536": 0}


@pytest.mark.parametrize(("line", "seen"), [(b"keep_log_file_num=1000", 1), *NO_TRACE.items()])
def test_reopens_that_leave_no_trace(line: bytes, seen: int) -> None:
    """As many old logs as RocksDB keeps: there may have been more. A log that rolls gets the same name."""
    text = b"[Version]\n  rocksdb_version=9.7.3\n\n[DBOptions]\n  %s\n" % line
    look = Observer(disk_with(identity=b"id", log=b"", options=text)).database(STORE, AT_US, NOW)
    assert (look.reopened_us, look.all_reopens) == ((1_700_000_000_000_001,) * seen, line not in NO_TRACE)
    silent = Observer(disk_with(identity=b"id", log=b"")).database(STORE, AT_US, NOW)
    assert (silent.reopened_us, silent.all_reopens) == ((1_700_000_000_000_001,), True)


@pytest.fixture(scope="module")
def recorded(repository: Path) -> MemoryDisk:
    """Give the disk at the end of a recorded 4.3.1 run that was killed between close and wipe."""
    disk = MemoryDisk()
    for operation in read_trace(repository / "tests/data/traces/dirty-close-kill-4.3.1/trace-pod-a.jsonl.gz"):
        disk.apply(operation)
        if operation.killed:
            break
    return disk


def recorded_store(disk: MemoryDisk) -> str:
    (application,) = [entry.name for entry in disk.list("") if isinstance(entry, Entry)]
    return f"{application}/0_0/rocksdb/s"


def test_a_real_store(recorded: MemoryDisk) -> None:
    """Manifest, flushes, live files and the offsets family of a recorded store are all there."""
    path = recorded_store(recorded)
    look = Observer(recorded).database(classify(path), AT_US, NOW)
    assert (look.unseen, look.manifest_problem, look.lock) == (None, None, LockState.FREE)
    assert look.rocksdb_version == "10.1.3"
    assert "offsets" in look.families
    assert look.families_in_use == ("default", "offsets")
    assert look.puts == max(flush.sequence for flush in look.flushes) > 0
    assert [flush.sequence for flush in look.flushes] == sorted(flush.sequence for flush in look.flushes)
    assert look.missing_files == ()
    assert look.offsets is not None
    assert look.offsets.status == 0
    names = recorded.list(path)
    assert isinstance(names, tuple)
    assert look.files == sum(entry.name.endswith(".sst") for entry in names)


def test_the_age_of_the_data_is_its_own(recorded: MemoryDisk) -> None:
    """By the properties of the files, whatever the times of the files; unknown where those are not read."""
    place = classify(recorded_store(recorded))
    observer = Observer(recorded)
    look = observer.database(place, AT_US, NOW)
    assert observer.database(place, AT_US, NOW) == look == Observer(recorded).database(place, AT_US, NOW)
    written_us = min(flush.written_at_us for flush in look.flushes if flush.written_at_us)
    assert look.identity_born_us - 1_000_000 < look.oldest_data_us <= written_us
    assert look.oldest_data_us % 1_000_000 == 0
    observer.set_detail(with_counters=False)
    offsets_only = observer.database(place, AT_US, NOW).oldest_data_us
    assert offsets_only >= look.oldest_data_us


class RestlessDisk(MemoryDisk):
    """A disk on which IDENTITY is there at every second look only: a store recreated again and again."""

    asked = 0

    def read_at(self, path: str, offset: int, length: int) -> bytes | Unseen:
        """Read, or say that the file is not there."""
        if path.endswith("/IDENTITY"):
            self.asked += 1
            if self.asked % 2:
                return Unseen.VANISHED
        return super().read_at(path, offset, length)


def test_a_store_that_never_rests_is_given_up_for_now() -> None:
    """A store that is recreated within every look is told as raced after a few tries, not looked at for ever."""
    disk = RestlessDisk()
    disk_with(identity=b"id-1", disk=disk)
    look = Observer(disk).database(STORE, AT_US, NOW)
    assert look.unseen is Unseen.RACED
    assert disk.asked == 2 * TRIES


def test_a_new_incarnation_inherits_nothing() -> None:
    """A store that was recreated under the same name is read again."""
    disk = disk_with(identity=b"id-1", options=OPTIONS % b"9.7.3")
    observer = Observer(disk)
    before = observer.database(STORE, AT_US, NOW)
    observer.note_written(classify(PATHS["sst"]), 5)
    write(disk, PATHS["identity"], b"id-2", 60)
    disk.apply(Operation(61, "unlink", PATHS["options"]))
    after = observer.database(STORE, AT_US, NOW)
    assert (before.rocksdb_version, after.rocksdb_version) == ("9.7.3", None)
    assert (after.identity, after.identity_born_us) == ("id-2", 60)


def test_a_vanished_store_is_forgotten() -> None:
    """Deleted and recreated with the same name: nothing of the first is remembered."""
    disk = disk_with(identity=b"id-1", options=OPTIONS % b"9.7.3")
    observer = Observer(disk)
    observer.database(STORE, AT_US, NOW)
    for path in (PATHS["identity"], PATHS["options"]):
        disk.apply(Operation(70, "unlink", path))
    disk.apply(Operation(70, "rmdir", STORE.path))
    gone = observer.database(STORE, AT_US, NOW)
    assert gone == DatabaseReading(STORE, AT_US, NOW, Unseen.VANISHED)
    disk.apply(Operation(71, "mkdir", STORE.path))
    write(disk, PATHS["identity"], b"id-1", 72)
    assert observer.database(STORE, AT_US, NOW).rocksdb_version is None


def test_an_announced_reading_says_so() -> None:
    """That somebody closed the lock file is passed on to the reducer."""
    observer = Observer(disk_with(identity=b"id", store_lock=b""))
    plain = observer.database(STORE, AT_US, NOW)
    assert observer.database(STORE, AT_US, NOW, announced_us=66) == replace(plain, announced_us=66)
    lock = observer.lock(LOCK, AT_US, NOW)
    assert observer.lock(LOCK, AT_US, NOW, announced=True) == replace(lock, announced=True)


class MadeMeanwhile(Refusing):
    """A disk on which IDENTITY appears right after somebody found it missing."""

    def read_dated(self, path: str, most_bytes: int) -> tuple[FileStat, bytes] | Unseen:
        found = super().read_dated(path, most_bytes)
        if path.endswith("/IDENTITY"):
            self._calls = frozenset()
        return found


def test_store_that_is_made_while_it_is_read() -> None:
    """What was read before its IDENTITY came belongs to no single life: the look is taken again."""
    disk = disk_with(identity=b"identity-2")
    refusals = [(call, f"{STORE.path}/IDENTITY") for call in ("read", "stat")]
    look = Observer(MadeMeanwhile(disk, Unseen.VANISHED, *refusals)).database(STORE, AT_US, NOW)
    assert look.identity == "identity-2"
    look = Observer(Refusing(disk, Unseen.VANISHED, *refusals)).database(STORE, AT_US, NOW)
    assert look.identity is None


@pytest.mark.parametrize(
    ("name", "touched_us"),
    [("000009.sst", 90), (".000009.sst.xYz123", 90), ("000009.blob", 90), ("LOG", 80)],
    ids=["a data file", "a name of rsync", "a blob file", "not what a copy would wait for"],
)
def test_what_is_being_copied_is_written_to_after_it_got_its_name(name: str, touched_us: int) -> None:
    """A large file grows for minutes, in which nothing happens to its directory."""
    disk = disk_with()
    for file in ("000008.sst", name):
        write(disk, f"{STORE.path}/{file}", b"x", 80)
    node = disk._find(f"{STORE.path}/{name}")
    assert node is not None
    node.mtime_us = 90
    reading = Observer(disk).database(STORE, AT_US, NOW)
    assert (reading.leftovers > 0, reading.touched_us) == (True, touched_us)
