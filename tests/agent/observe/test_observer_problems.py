"""Looks at stores that cannot be read to the end: what is said of them, and what is not."""

from __future__ import annotations

import pytest

from agent.contract.events import Source
from agent.inventory.disk import EntryKind, Unseen
from agent.layout.paths import classify
from agent.observe.observer import Observer
from agent.observe.rocksdb import manifest
from tests.support.rocksdb_writer import added, counters, deleted, frame, string, varint
from tests.support.tree_disk import FilesDisk

PLACE = classify("app/0_0/rocksdb/s")
GONE = "000003.sst: vanished"
GOOD = frame([counters(2), added(3, 40, size=5) + counters(4, 50)])


class Store(FilesDisk):
    """One database with an identity and a manifest; `stat` answers for its directory, too."""

    def __init__(self, content: bytes, **files: bytes) -> None:
        base = {
            "IDENTITY": b"id-1\n",
            "CURRENT": b"MANIFEST-000005\n",
            "MANIFEST-000005": content,
            "LOCK": b"",
        }
        super().__init__({f"{PLACE.path}/{name}": data for name, data in (base | files).items()})

    def stat(self, path):
        if path != PLACE.path:
            return super().stat(path)
        found = super().stat(f"{path}/IDENTITY")
        return found if isinstance(found, Unseen) else found._replace(kind=EntryKind.DIRECTORY)


def look(disk: FilesDisk, observer: Observer | None = None):
    return (observer or Observer(disk)).database(PLACE, 77, Source.RESCAN)


def test_torn_manifest():
    """What it names before the tear is told, and that it is torn."""
    seen = look(Store(GOOD + GOOD[:9]))
    assert (seen.manifest, seen.puts) == (5, 40)
    assert seen.manifest_problem is not None
    assert seen.manifest_problem.startswith("MANIFEST-000005: cut: ")
    assert seen.manifest_problem in seen.problems


@pytest.mark.parametrize(("name", "content"), [("CURRENT", b""), ("CURRENT", b"x"), ("MANIFEST-000005", b"")])
def test_damage_is_a_problem(name, content):
    """Damage is told both as the reason of the manifest and as a problem."""
    seen = look(Store(GOOD, **{name: content}))
    assert seen.manifest_problem in seen.problems
    assert seen.problems[0].startswith(f"{name}: corrupt: ")


def test_nothing_there_is_no_problem():
    """A database that is being made has no CURRENT yet."""
    disk = Store(GOOD)
    del disk.files[f"{PLACE.path}/CURRENT"]
    seen = look(disk)
    assert (seen.manifest, seen.manifest_problem, seen.problems) == (None, "vanished", ())
    assert seen.offsets_unread


def test_files_that_cannot_be_read():
    """Each damaged or missing SST file is named."""
    records = [counters(2), *(added(n, n, size=5) + counters(n + 1, n) for n in (3, 4))]
    seen = look(Store(frame(records), **{"000003.sst": b"short"}))
    assert seen.problems == ("000003.sst: corrupt: file is too short", "000004.sst: vanished")
    assert (seen.missing_files, seen.manifest_problem, seen.entries_low) == (("000004.sst",), None, None)


class Hidden(Store):
    """One of which a file cannot be read, for a reason."""

    def __init__(self, why: Unseen, **files: bytes) -> None:
        super().__init__(GOOD, **files)
        self.why = why

    def read_at(self, path, offset, length):
        return self.why if path.endswith("OPTIONS-000007") else super().read_at(path, offset, length)


@pytest.mark.parametrize(
    ("why", "problems"),
    [
        (Unseen.DENIED, ("OPTIONS-000007: denied", GONE)),
        (Unseen.UNREADABLE, ("OPTIONS-000007: unreadable", GONE)),
        (Unseen.VANISHED, (GONE,)),
    ],
)
def test_options_that_cannot_be_read(why, problems):
    """The newest options say what RocksDB drops, and who opened the store; an older one is not asked."""
    files = {"OPTIONS-000005": b"[Version]\n  rocksdb_version=1.2.3\n", "OPTIONS-000007": b""}
    seen = look(Hidden(why, **files))
    assert (seen.problems, seen.rocksdb_version, seen.puts) == (problems, None, 40)


ZEROED = [added(3, 0, size=5), counters(4, 5000)]


@pytest.mark.parametrize(
    ("records", "puts", "zeroed", "opened", "sequence"),
    [
        ([*ZEROED, counters(5, 5000)], 0, 5000, 5000, 5000),
        ([*ZEROED, added(6, 5300, size=5) + counters(7, 5310)], 5300, 5000, 5000, 5000),
        # where files say so, what was given out beyond them and lost is not taken for flushed
        ([added(3, 4900, size=5), counters(4, 5000)], 4900, 0, 4900, 5000),
    ],
)
def test_compacted_to_zero(records, puts, zeroed, opened, sequence):
    """Where sequence numbers were compacted away, the open says how far the store had come."""
    seen = look(Store(frame(records)))
    assert (seen.puts, seen.zeroed_puts, seen.opened_puts, seen.opened_sequence) == (
        puts,
        zeroed,
        opened,
        sequence,
    )


def test_long_manifest_goes_on(monkeypatch):
    """A manifest that one look does not read says so, until it was read; its turn ends with the directory."""
    monkeypatch.setattr(manifest, "BYTES_PER_READING", 300)
    monkeypatch.setattr(manifest, "_PIECE_BYTES", 150)
    disk = Store(
        frame([counters(2), *(added(n, n) + counters(n + 1, n) + deleted(n - 1) for n in range(3, 40))])
    )
    observer, other = Observer(disk), Observer(disk)
    seen = look(disk, observer)
    assert (seen.goes_on, seen.waits, seen.manifest) == (True, False, None)
    assert [x.split(": ")[1] for x in seen.problems] == ["too-large"]
    while seen.goes_on:
        seen = look(disk, observer)
    assert (seen.puts, seen.files, seen.manifest_problem) == (39, 1, None)
    assert look(disk, other).goes_on
    disk.files.clear()
    look(disk, other)
    assert len(other._manifests) == 0


def test_other_path():
    """Files on another path are no missing ones; how many entries they have is not known."""
    record = added(3, 9, size=5, custom=varint(65) + string(varint(1))) + counters(4, 9)
    seen = look(Store(frame([counters(2), record])))
    assert (seen.missing_files, seen.entries_low, seen.puts, seen.files) == ((), None, 9, 1)
    assert [x.split(": ")[1] for x in seen.problems] == ["elsewhere"]
