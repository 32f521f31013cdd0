"""Manifests: live files, how far data was flushed, and races with a writer."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.inventory.disk import Unseen
from agent.observe.rocksdb import replay
from agent.observe.rocksdb.coding import Unread
from agent.observe.rocksdb.manifest import ManifestCache, parse_manifest, read_manifest
from agent.observe.rocksdb.replay import ManifestView, Origin
from tests.support.rocksdb_writer import (
    OTHER_KEY,
    SNAPSHOT_KEY,
    added,
    counters,
    deleted,
    family,
    family_add,
    frame,
    in_group,
    string,
    varint,
)
from tests.support.tree_disk import FilesDisk

# RocksDB, last sequence, flushed, flushed in snapshot, origins (s snapshot, f flush, c compaction), families
RECORDED = [
    ("5.7.3", 2000, 2000, 0, "fff", ("default",)),
    ("5.14.2", 3000, 1000, 1000, "s", ("default",)),
    ("5.15.10", 2000, 2000, 2000, "ss", ("default",)),
    ("5.18.3", 3131, 2221, 100, "sf", ("default", "keyValueWithTimestamp")),
    ("5.18.4", 3000, 3000, 0, "fff", ("default", "keyValueWithTimestamp")),
    ("7.1.2", 1600, 1600, 800, "sf", ("default", "keyValueWithTimestamp")),
    ("7.9.2", 600, 600, 0, "f", ("default", "keyValueWithTimestamp")),
    ("9.7.3", 7362, 7362, 2000, "ssffcf", ("default",)),
    ("10.1.3", 3010, 3005, 0, "fffff", ("default", "keyValueWithTimestamp", "offsets")),
    ("10.1.3-dirty-close", 8014, 8013, 2003, "sssssffcffcff", ("default", "offsets")),
    ("10.1.3-killed-fresh", 0, 0, 0, "", ("default", "keyValueWithTimestamp", "offsets")),
]


@pytest.mark.parametrize(("name", "last", "flushed", "before", "origins", "families"), RECORDED)
def test_recorded(recorded, name, last, flushed, before, origins, families):
    """Manifests of every RocksDB that Kafka Streams shipped are read whole; live files are those on disk."""
    view = read_manifest(recorded, name)
    assert isinstance(view, ManifestView)
    assert not view.torn
    assert (view.last_sequence, view.flushed_sequence, view.snapshot_sequence) == (last, flushed, before)
    assert "".join(one.origin.value[0] for one in view.new_files) == origins
    assert tuple(name for _, name in view.families) == families
    on_disk = {int(path.stem): path.stat().st_size for path in (recorded.root / name).glob("*.sst")}
    assert {file.number: file.size_bytes for file in view.live} == on_disk
    assert view.next_file > max(on_disk, default=0)


def test_offsets_family_is_not_data(recorded):
    """What was written to `offsets` does not count as flushed data."""
    view = read_manifest(recorded, "10.1.3-dirty-close")
    assert isinstance(view, ManifestView)
    assert view.offsets_family_id == 1
    assert all(one.family_id == 0 for one in view.data_files)
    assert max(one.largest_sequence for one in view.new_files) == 8014


def edits(*records: bytes, number: int = 5) -> ManifestView:
    return parse_manifest(frame(records), number)


def test_flush_compaction_and_move():
    """A compaction and a trivial move are no flushes, and a high-water mark survives them."""
    view = edits(
        varint(1) + string(b"comparator"),
        added(3, 40),
        counters(10, 40),
        added(11, 70) + counters(12, 70),
        deleted(3) + deleted(11) + added(12, 0, level=6) + counters(13, 71),
        added(13, 90) + counters(14, 90),
        deleted(13) + added(13, 90, level=5) + counters(14, 90),
    )
    origins = {3: Origin.SNAPSHOT, 11: Origin.FLUSH, 12: Origin.COMPACTION, 13: Origin.FLUSH}
    assert {one.number: one.origin for one in view.new_files} == origins
    assert [(file.number, file.level) for file in view.live] == [(12, 6), (13, 5)]
    assert (view.flushed_sequence, view.snapshot_sequence, view.last_sequence) == (90, 40, 90)
    assert (view.next_file, view.torn) == (14, False)


def test_families_added_and_dropped():
    """Files of a dropped family are no longer live; a family id applies to the files before it."""
    view = edits(
        family_add(1, "offsets"),
        family_add(2, "old") + counters(5),
        added(6, 50) + family(1) + counters(7, 50),
        added(7, 30) + family(2) + counters(8, 50),
        family(2) + varint(202) + counters(9, 50),
    )
    assert view.families == ((0, "default"), (1, "offsets"))
    assert [(file.number, file.family_id) for file in view.live] == [(6, 1)]
    assert view.families_in_use == ("offsets",)
    assert view.flushed_sequence == 30


def test_atomic_group():
    """A group of edits counts only as a whole."""
    first = added(6, 50) + in_group(1) + counters(7, 50)
    second = added(7, 60) + in_group(0) + counters(8, 60)
    assert [file.number for file in edits(counters(5), first, second).live] == [6, 7]
    alone = edits(counters(5), first)
    assert (alone.live, alone.torn) == ((), True)


KEYS, LOW_HIGH = string(b"k") * 2, varint(1) + varint(9)
OLD_FORMS = {
    "kNewFile": varint(7) + varint(0) + varint(6) + varint(100) + KEYS,
    "kNewFile2": varint(100) + varint(0) + varint(6) + varint(100) + KEYS + LOW_HIGH,
    "kNewFile3": varint(102) + varint(0) + varint(6) + varint(0) + varint(100) + KEYS + LOW_HIGH,
    "custom fields": added(6, 9, custom=varint(65) + string(b"\0") + varint(5) + string(varint(1))),
}


@pytest.mark.parametrize("form", OLD_FORMS)
def test_forms_of_added_files(form):
    """Every form in which RocksDB wrote an added file is read."""
    view = edits(counters(5), OLD_FORMS[form] + counters(7, 9))
    assert [(file.number, file.size_bytes) for file in view.live] == [(6, 100)]
    assert view.flushed_sequence == (0 if form == "kNewFile" else 9)
    assert not view.torn


@pytest.mark.parametrize(
    "part",
    [
        varint(99),
        varint(301) + string(b"x"),
        added(8, 9, custom=varint(64 + 9) + string(b"must not be ignored")),
        varint(8196) + varint(4) + varint(7),
        varint(103) + varint(0) + varint(6) + varint(100) + varint(10**9),
        b"\x80",
    ],
)
def test_parts_not_understood(part):
    """A part that must not be ignored, or is damaged, ends the replay and is told."""
    after = added(9, 20) + counters(10, 20)
    view = edits(counters(5), added(6, 9) + counters(7, 9), part + counters(9, 9), after)
    assert [file.number for file in view.live] == [6]
    assert view.torn


def test_keys_are_not_kept():
    """The key ranges of files leave no trace in what is told."""
    told = repr(edits(counters(5), varint(5) + varint(1) + string(OTHER_KEY) + added(6, 9) + counters(7, 9)))
    assert SNAPSHOT_KEY.decode() not in told
    assert OTHER_KEY.decode() not in told


@given(st.data())
def test_damage_never_raises(recorded_manifest, data):
    """Cut or bit-flipped manifests give a view of what came before."""
    content = bytearray(recorded_manifest)
    for _ in range(data.draw(st.integers(0, 3))):
        bit = data.draw(st.integers(0, len(content) * 8 - 1))
        content[bit // 8] ^= 1 << bit % 8
    cut = bytes(content[: data.draw(st.integers(0, len(content)))])
    view = parse_manifest(cut, 24)
    if cut != bytes(recorded_manifest[: len(cut)]):
        assert view.torn
    assert view.flushed_sequence <= 8013


@pytest.fixture(scope="module")
def recorded_manifest(recorded):
    return (recorded.root / "10.1.3-dirty-close" / "MANIFEST-000024").read_bytes()


GOOD = frame([counters(5), added(6, 9) + counters(7, 9)])
LATER = frame([added(6, 9), counters(9, 9), added(9, 20) + counters(10, 20)])


class Scripted(FilesDisk):
    """Changes its files before it is asked for the n-th time: CURRENT twice, the manifest, CURRENT, ..."""

    def __init__(self, files, steps) -> None:
        super().__init__(files)
        self._steps = dict(steps)
        self._count = 0

    def stat(self, path):
        self._step()
        return super().stat(path)

    def read_at(self, path, offset, length):
        self._step()
        return super().read_at(path, offset, length)

    def _step(self) -> None:
        self._count += 1
        for name, content in self._steps.get(self._count, {}).items():
            if content is None:
                self.files.pop(name, None)
            else:
                self.files[name] = content


def db(number: int = 5, content: bytes = GOOD) -> dict[str, bytes]:
    return {"s/CURRENT": b"MANIFEST-%06d\n" % number, f"s/MANIFEST-{number:06d}": content}


def swap(to: int = 7) -> dict[str, bytes | None]:
    """The store is opened again: a new manifest, CURRENT names it, the old one goes."""
    return {**db(to, LATER), "s/MANIFEST-000005": None}


GONE = {"s/CURRENT": None, "s/MANIFEST-000005": None}
AGAIN = {
    3 * n: {"s/CURRENT": b"MANIFEST-%06d\n" % (5 + n), f"s/MANIFEST-{5 + n:06d}": GOOD} for n in range(1, 30)
}
RACES = {
    "replaced before it was read": (GOOD, {3: swap()}, (7, 20, False)),
    "replaced after it was read": (GOOD, {4: swap()}, (7, 20, False)),
    "replaced in every try": (GOOD, AGAIN, Unread(Unseen.RACED)),
    "a torn end that is whole at the next look was a writer at work": (GOOD[:-3], {5: db()}, (5, 9, False)),
    "a torn end that stays": (GOOD[:-3], {}, (5, 0, True)),
    "deleted between two reads": (GOOD, {3: GONE}, Unread(Unseen.VANISHED)),
    "deleted after it was read": (GOOD, {4: GONE}, Unread(Unseen.VANISHED)),
}


@pytest.mark.parametrize(("content", "steps", "outcome"), RACES.values(), ids=RACES)
def test_races_with_a_writer(content, steps, outcome):
    """What was read belongs together, or says so."""
    found = read_manifest(Scripted(db(content=content), steps), "s")
    if isinstance(found, ManifestView):
        assert (found.number, found.flushed_sequence, found.torn) == outcome
    else:
        assert found == outcome


MISSING = "MANIFEST-000005: gone: CURRENT names it, and it is not there"
NO_NAME = "CURRENT: corrupt: it names no manifest"


@pytest.mark.parametrize(
    ("files", "unseen", "problem"),
    [
        ({}, Unseen.VANISHED, ""),
        ({"s/CURRENT": b"MANIFEST-000005\n"}, Unseen.VANISHED, MISSING),
        ({"s/CURRENT": b""}, Unseen.UNREADABLE, NO_NAME),
        ({"s/CURRENT": b"MANIFEST-000005"}, Unseen.UNREADABLE, NO_NAME),
        ({"s/CURRENT": b"garbage" * 100}, Unseen.UNREADABLE, NO_NAME),
        ({"s/CURRENT": b"MANIFEST-%d\n" % 2**62}, Unseen.UNREADABLE, NO_NAME),  # no RocksDB can have given it
    ],
)
def test_unseen(files, unseen, problem):
    """What cannot be read is told by its reason; only where no CURRENT is, nothing is wrong."""
    assert read_manifest(FilesDisk(files), "s") == Unread(unseen, problem)


class Denying(FilesDisk):
    """Refuses to read files of one kind."""

    def __init__(self, files, word) -> None:
        super().__init__(files)
        self._word = word

    def read_at(self, path, offset, length):
        return Unseen.DENIED if self._word in path else super().read_at(path, offset, length)


@pytest.mark.parametrize("word", ["CURRENT", "MANIFEST"])
@pytest.mark.parametrize("cache", [None, ManifestCache()])
def test_refused(word, cache):
    """What may not be read says so, with the file."""
    outcome = read_manifest(Denying(db(), word), "s", cache)
    assert isinstance(outcome, Unread)
    assert (outcome.unseen, outcome.problem.endswith(": denied")) == (Unseen.DENIED, True)
    assert word in outcome.problem


@pytest.mark.parametrize(
    ("content", "ending"),
    [
        (lambda data: data, "whole"),
        (lambda data: data + bytes(100), "whole"),
        (lambda data: data[:-1], "cut"),
        (lambda data: data + data[:20], "cut"),
        (lambda data: data + data[:-1], "cut"),
        (lambda data: data + b"garbage of thirty bytes or more", "cut"),
        (lambda data: data[:-1] + bytes([data[-1] ^ 1]), "corrupt"),
        (lambda data: bytes([data[0] ^ 1]) + data[1:], "corrupt"),
        (lambda data: b"", "corrupt"),
        (lambda data: bytes(100), "corrupt"),
        (lambda data: frame([added(6, 9)]), "corrupt"),
        (lambda data: frame([counters(5), varint(99)]), "unsupported"),
    ],
)
def test_endings(content, ending):
    """What RocksDB passes over (a cut record) is told apart from what it refuses, and that from what is new to us."""
    view = read_manifest(FilesDisk(db(content=content(GOOD))), "s")
    assert isinstance(view, ManifestView)
    assert view.ending.value == ending
    assert (view.problem is None) == (ending == "whole")
    assert view.problem is None or view.problem.startswith(f"MANIFEST-000005: {ending}: ")


def test_number_of_files_is_bounded(monkeypatch):
    """A manifest with more live files than any store has is not replayed to its end."""
    monkeypatch.setattr(replay, "_MAX_LIVE_FILES", 3)
    view = edits(counters(5), *(added(n, n) + counters(n + 1, n) for n in range(6, 20)))
    assert view.torn
    assert len(view.new_files) == 4


def test_number_of_families_is_bounded(monkeypatch):
    """A manifest that adds families without end is not replayed to its end, even if it drops them again."""
    monkeypatch.setattr(replay, "_MAX_FAMILIES", 3)
    dropped = [family_add(n, "f") + family(n) + varint(202) for n in range(1, 5)]
    assert not edits(counters(5), *dropped[:3]).torn
    assert edits(counters(5), *dropped).torn


SENSELESS = [added(2**62, 9), added(6, 9, size=2**45 + 1), added(6, 9, level=64), counters(2**62), counters(7,
         2**56), family(2**62)]  # fmt: skip


@pytest.mark.parametrize("part", SENSELESS)
def test_numbers_beyond_sense(part):
    """Numbers that RocksDB cannot have written are damage: sums of them would not fit into an event."""
    assert edits(counters(5), part).torn
