"""A database read as a whole: counters, offsets, what is not read, races and damage."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

import pytest

from agent.inventory.disk import Unseen
from agent.observe.rocksdb import sst
from agent.observe.rocksdb.cache import SstCache
from agent.observe.rocksdb.coding import Unread
from agent.observe.rocksdb.offsets import OffsetsFacts, StoredLong
from agent.observe.rocksdb.store import EntryInterval, StoreFacts, read_store
from tests.support.rocksdb_writer import added, counters, deleted, frame
from tests.support.tree_disk import FilesDisk

# RocksDB, entries per file, bounds of live entries, live entries: as RocksDB itself counted and iterated them
RECORDED = [
    ("5.7.3", [824, 783, 393], (824, 2000), 2000),
    ("5.14.2", [3000], (3000, 3000), 3000),
    ("5.15.10", [1000, 1000], (1000, 2000), 2000),
    ("5.18.3", [900, 1321], (1321, 2221), 2221),
    ("5.18.4", [1311, 1322, 367], (1322, 3000), 3000),
    ("7.1.2", [800, 800], (800, 1600), 1600),
    ("7.9.2", [600], (600, 600), 600),
    ("9.7.3", [5584, 1778], (5584, 7362), 7362),
]
ALL_SAME = [
    "format-2",
    "format-3",
    "format-4-delta",
    "format-5",
    "format-6-hash-index",
    "format-6-two-level",
    "crc32c-6",
    "xxh3",
    "xxhash",
    "xxhash64",
    "no-checksum",
]


def read(disk, name, **options) -> StoreFacts:
    facts = read_store(disk, name, **options)
    assert isinstance(facts, StoreFacts)
    return facts


def offsets_of(facts: StoreFacts) -> OffsetsFacts:
    assert facts.offsets is not None
    return facts.offsets


def in_memory(disk, name) -> FilesDisk:
    root = disk.root / name
    return FilesDisk({f"s/{path.name}": path.read_bytes() for path in root.iterdir()})


@pytest.mark.parametrize(("name", "entries", "live", "truth"), RECORDED)
def test_recorded(recorded, name, entries, live, truth):
    """Files of every RocksDB that Kafka Streams shipped are read, every checksum compared."""
    facts = read(recorded, name)
    assert not facts.problems
    assert not facts.missing_files
    assert sorted(one.properties.entries for one in facts.files if one.properties) == sorted(entries)
    assert (facts.deletions, facts.live) == (0, EntryInterval(*live))
    assert live[0] <= truth <= live[1]
    assert facts.offsets is None


@pytest.mark.parametrize(
    ("name", "flushed", "offsets", "position", "status"),
    [
        ("10.1.3", 3005, [StoredLong(2999, 3008, 13)], 3009, StoredLong(0, 3010, 13)),
        ("10.1.3-while-restoring", 6011, [StoredLong(6000, 6016, 16)], 6017, StoredLong(0, 6018, 16)),
        # a dirty close wrote its status and no offset; one was killed before its first flush
        ("10.1.3-dirty-close", 8013, [StoredLong(1999, 0, 29)], 0, StoredLong(0, 8014, 33)),
        ("10.1.3-killed-fresh", 0, [], None, None),
    ],
)
def test_closes(recorded, name, flushed, offsets, position, status):
    """A clean close writes offset, position and status after the last data."""
    facts = read(recorded, name)
    found = offsets_of(facts)
    assert facts.manifest.flushed_sequence == flushed
    assert [x for _, x in found.offsets] == offsets
    assert (found.position_sequence, found.status, found.problems) == (position, status, ())


def test_segments(recorded):
    """Each segment has its own offset and status."""
    oldest, newest = (offsets_of(read(recorded, f"10.1.3-{which}-segment")) for which in ("oldest", "newest"))
    assert [offset.value for _, offset in oldest.offsets] == [599]
    assert [offset.value for _, offset in newest.offsets] == [3599]
    assert oldest.status is not None
    assert newest.status is not None
    assert (oldest.status.value, newest.status.value) == (0, 1)


@pytest.mark.parametrize("name", ALL_SAME)
def test_encodings(encodings, name):
    """Every encoding gives the same offsets, status and counters."""
    facts = read(encodings, name)
    offsets = offsets_of(facts)
    assert facts.problems == offsets.problems == ()
    expected = {f"app-s-changelog-{n}": (1000 if n % 2 else 2000) + n for n in range(40)}
    assert {key: one.value for key, one in offsets.offsets} == expected
    assert offsets.status is not None
    assert offsets.status.value == 0
    assert (facts.deletions, facts.live) == (50, EntryInterval(150, 200))


def test_compressed(encodings):
    """A compressed `offsets` family is said to be unsupported; counters are never compressed."""
    facts = read(encodings, "compressed")
    offsets = offsets_of(facts)
    assert offsets.status is None
    assert len(offsets.problems) == 2
    assert all("unsupported: compressed block" in problem for problem in offsets.problems)
    assert facts.deletions == 50


def test_no_key_or_value_of_data_is_read(encodings):
    """Nothing that is read from a data file holds a key or value, and all of it lies behind the data."""
    for name in [*ALL_SAME, "compressed"]:
        disk = in_memory(encodings, name)
        facts = read(disk, "s")
        data = {f"s/{one.file.name}": one.file for one in facts.files if one.file.family_id == 0}
        pieces = [(path, offset, piece) for path, offset, piece in disk.reads if path in data]
        assert len(pieces) == 3 * len(data), "footer, metaindex, properties"
        for path, offset, piece in pieces:
            assert b"k0" not in piece
            assert b"vvvv" not in piece
            assert offset >= disk.files[path].rindex(b"k0") + 2, "keys of data and index lie before"


@pytest.mark.parametrize("name", sorted({*ALL_SAME, "compressed"} - {"no-checksum", "xxhash", "xxhash64"}))
def test_blocks_that_an_open_reads(encodings, name):
    """Of a store that nobody has open, index, filter and the like are compared with their checksums; data never is."""
    disk = in_memory(encodings, name)
    facts = read(disk, "s", with_checks=True)
    assert not [x for x in facts.problems if "corrupt" in x]
    data = [one.file for one in facts.files if one.file.family_id == 0]
    for file in data:
        path = f"s/{file.name}"
        index = sst.open_table(disk, path, file.size_bytes).index
        assert not [piece for where, _, piece in disk.reads if where == path and b"vv" in piece]
        whole, at = disk.files[path], index.offset
        disk.files[path] = whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :]
        said = f"{file.name}: corrupt: checksum of the block at {index.offset} is wrong"
        assert said in read(disk, "s", with_checks=True).problems
        assert said not in read(disk, "s").problems
        disk.files[path] = whole


def test_recordings_are_blank(recorded):
    """They hold no keys: everything but footer, metaindex and properties is zeros, and that is no damage."""
    assert read(recorded, "9.7.3", with_checks=True).problems == ()


def test_large_blocks_are_left_out(encodings, monkeypatch):
    """A block that takes long to check, and says nothing else, is not read."""
    monkeypatch.setattr(sst, "MAX_CHECKED_BYTES", 0)
    checked, plain = (in_memory(encodings, "xxh3") for _ in range(2))
    read(checked, "s", with_checks=True)
    read(plain, "s")
    assert checked.reads == plain.reads


def test_large_offsets_file(encodings, monkeypatch):
    """An `offsets` file beyond the bound is not read."""
    monkeypatch.setattr(sst, "MAX_OFFSETS_BYTES", 100)
    facts = read(encodings, "xxh3")
    assert offsets_of(facts).status is None
    assert all("unsupported: `offsets` file of" in problem for problem in offsets_of(facts).problems)


def test_without_counters(encodings):
    """Without counters data files are not even opened."""
    disk = in_memory(encodings, "xxh3")
    facts = read(disk, "s", with_counters=False)
    assert facts.deletions is None
    assert facts.live is None
    assert len(offsets_of(facts).offsets) == 40
    data = {f"s/{one.file.name}" for one in facts.files if one.file.family_id == 0}
    assert not data & {path for path, _, _ in disk.reads}


def test_cache(encodings):
    """A known file is not read again; another file under its name is."""
    disk, cache = in_memory(encodings, "xxh3"), SstCache()
    first = read(disk, "s", cache=cache)
    assert len(cache) == len(first.files) == 4
    disk.reads.clear()
    assert read(disk, "s", cache=cache) == first
    assert not [path for path, _, _ in disk.reads if path.endswith(".sst")]
    name = next(path for path in disk.files if path.endswith(".sst"))
    disk.files[name] = bytes(len(disk.files[name]))
    assert read(disk, "s", cache=cache).problems


def small(*files: int) -> bytes:
    records = [counters(2), *(added(n, n, size=5) + counters(n + 1, n) for n in files)]
    return frame(records)


def store_of(manifest: bytes, tables: Mapping[int, bytes] = MappingProxyType({})) -> dict[str, bytes]:
    """Files of a store with this manifest and these SST files."""
    named = {f"s/{number:06d}.sst": content for number, content in tables.items()}
    return {"s/CURRENT": b"MANIFEST-000005\n", "s/MANIFEST-000005": manifest, **named}


class Compacting(FilesDisk):
    """Runs a step when an SST file is looked at."""

    def __init__(self, files, on_look) -> None:
        super().__init__(files)
        self._on_look = on_look
        self.looks = 0

    def stat(self, path):
        self.looks += 1
        self._on_look(self, self.looks)
        return super().stat(path)


def test_compaction_meanwhile(encodings):
    """A file that a compaction removed is not missing: the manifest is read again."""
    whole = in_memory(encodings, "xxh3").files

    def finish(disk, look):
        if look == 2:
            disk.files.update(whole)
            del disk.files["s/000099.sst"]

    manifest = next(name for name in whole if "MANIFEST" in name)
    before = whole | {
        manifest: whole[manifest] + frame([added(99, 9, size=5) + counters(100, 9)]),
        "s/000099.sst": b"later",
    }
    facts = read(Compacting(before, finish), "s")
    assert not facts.missing_files
    assert not facts.problems
    assert facts.deletions == 50


def test_missing_on_stable_manifest():
    """A file that the manifest still names at a second look is missing."""
    disk = FilesDisk(store_of(small(7, 8), {7: b"short"}))
    facts = read(disk, "s")
    assert facts.missing_files == ("000008.sst",)
    assert facts.deletions is None
    assert facts.problems == ("000007.sst: corrupt: file is too short", "000008.sst: vanished")


def test_torn_manifest_proves_nothing_missing():
    """Behind a torn end the file may have been removed: it is not called missing."""
    disk = FilesDisk(store_of(small(7) + b"torn record"))
    facts = read(disk, "s")
    assert facts.manifest.torn
    assert facts.missing_files == ()


def test_compacting_all_the_time():
    """Files that vanish in every try are a race, never a torn store."""

    def compact(disk, look):
        records = [counters(2), added(look, 9, size=5), deleted(look)]
        disk.files["s/MANIFEST-000005"] = frame([*records, added(look + 1, 9, size=5) + counters(look + 2)])

    disk = Compacting(store_of(small(1)), compact)
    assert read_store(disk, "s") == Unread(Unseen.RACED)


def test_store_deleted_meanwhile(encodings):
    """A store that is deleted while it is read has vanished."""
    disk = Compacting(in_memory(encodings, "xxh3").files, lambda disk, _: disk.files.clear())
    assert read_store(disk, "s") == Unread(Unseen.VANISHED)


@pytest.mark.parametrize("change", [lambda data: data[:-1], lambda data: data + b"x"])
def test_wrong_size(encodings, change):
    """A file that is not as long as the manifest says is corrupt, without being read."""
    disk = in_memory(encodings, "xxh3")
    name = next(path for path in sorted(disk.files) if path.endswith(".sst"))
    disk.files[name] = change(disk.files[name])
    facts = read(disk, "s")
    assert [problem.split(" ")[1] for problem in facts.problems] == ["corrupt:"]
    assert name not in {path for path, _, _ in disk.reads}


def test_offsets_are_decoded(recorded):
    """The offset of the changelog, and that there is a position."""
    found = offsets_of(read(recorded, "10.1.3"))
    assert found.position_sequence
    assert [name.endswith("-s-changelog-0") for name, _ in found.offsets] == [True]
