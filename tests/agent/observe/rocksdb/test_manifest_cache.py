"""Manifests that are read piece by piece and remembered: never another answer than without the memory."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.inventory.disk import FileStat, Unseen
from agent.observe.rocksdb import manifest
from agent.observe.rocksdb.coding import Unread
from agent.observe.rocksdb.manifest import ManifestCache, parse_manifest, read_manifest
from agent.observe.rocksdb.replay import ManifestView
from tests.agent.observe.rocksdb.test_manifest import GOOD, db
from tests.support.rocksdb_writer import added, counters, deleted, frame, string, varint
from tests.support.tree_disk import FilesDisk

EDITS = [
    counters(2),
    *(added(n, n * 10) + counters(n + 1, n * 10) for n in range(3, 9)),
    deleted(3) + counters(9),
]


class Disk(FilesDisk):
    """All contents of a path have one inode, as after an append, and a time that tells them apart."""

    def stat(self, path: str) -> FileStat | Unseen:
        found = super().stat(path)
        if not isinstance(found, FileStat):
            return found
        return FileStat(found.kind, 7, found.size_bytes, hash(self.files[path]))


def store_of(name: str, content: bytes) -> dict[str, bytes]:
    return {f"{name}/CURRENT": b"MANIFEST-000005\n", f"{name}/MANIFEST-000005": content}


def look(disk: FilesDisk, content: bytes, cache: ManifestCache) -> ManifestView | Unread:
    """The store's manifest has this content now."""
    disk.files = store_of("s", content)
    return read_manifest(disk, "s", cache)


@given(st.lists(st.tuples(st.permutations(EDITS), st.integers(0, len(EDITS)), st.integers(0, 9)), max_size=8))
def test_same_as_without(looks):
    """Growing, torn, shrunk and replaced manifests under one name and inode are read as if for the first time."""
    disk, cache = Disk({}), ManifestCache()
    for order, count, torn in looks:
        content = frame(order[:count])
        content = content[: len(content) - torn]
        assert look(disk, content, cache) == parse_manifest(content, 5)


def test_unchanged_is_not_read():
    """A second look at an unchanged manifest reads CURRENT and nothing else."""
    disk, cache = Disk({}), ManifestCache()
    first = look(disk, frame(EDITS), cache)
    disk.reads.clear()
    assert look(disk, frame(EDITS), cache) == first
    assert {path for path, _, _ in disk.reads} == {"s/CURRENT"}


def test_bounded():
    """No more manifests are kept than the limit; the one that was asked for last stays."""
    disk, cache = Disk({}), ManifestCache(limit=2)
    for name in ("a", "b", "a", "c"):
        disk.files = store_of(name, frame(EDITS))
        read_manifest(disk, name, cache)
    assert len(cache) == 2
    disk.files = store_of("a", frame(EDITS))
    disk.reads.clear()
    read_manifest(disk, "a", cache)
    assert len(disk.reads) == 1, "CURRENT: a is still known"


def test_bounded_bytes():
    """Long manifests push each other out; one that is longer than the bound is not kept at all."""
    content = frame(EDITS)
    disk, cache = Disk({}), ManifestCache(limit_bytes=2 * len(content) - 1)
    for name in ("a", "b"):
        disk.files = store_of(name, content)
        read_manifest(disk, name, cache)
    assert len(cache) == 1
    small = ManifestCache(limit_bytes=len(content) - 1)
    assert look(disk, content, small) == parse_manifest(content, 5)
    assert len(small) == 0


class Preallocated(FilesDisk):
    """A file that was made long in advance: neither size, nor inode, nor time tell that it was written to."""

    def stat(self, path: str) -> FileStat | Unseen:
        found = super().stat(path)
        return FileStat(found.kind, 7, found.size_bytes, 0) if isinstance(found, FileStat) else found


def test_preallocated_rest_is_read_again():
    """Zeros behind the last record can become records while the file looks the same from outside."""
    before, after = frame(EDITS[:3]), frame(EDITS)
    disk, cache = Preallocated({}), ManifestCache()
    assert look(disk, before + bytes(len(after) + 64 - len(before)), cache) == parse_manifest(before, 5)
    assert look(disk, after + bytes(64), cache) == parse_manifest(after, 5)


PADDING = varint(5) + string(bytes(30_000))


@pytest.fixture(scope="module")
def weeks():
    """A manifest of 9 MiB, as a process has after weeks, of 300 flushes that were compacted away one by one."""
    pairs = (
        added(n, n, custom=PADDING) + counters(n + 1, n) + (deleted(n - 1) if n > 7 else b"")
        for n in range(7, 320)
    )
    content = frame([counters(2), *pairs])
    assert len(content) > 8 << 20
    return content


def test_no_size_ends_it(weeks):
    """A manifest of any size is read, in a few looks, and from then on only what is new of it."""
    disk, cache = Disk({}), ManifestCache()
    first = look(disk, weeks, cache)
    assert isinstance(first, Unread)
    assert (first.unseen, first.goes_on) == (Unseen.TOO_LARGE, True)
    while isinstance(seen := look(disk, weeks, cache), Unread):
        assert seen.goes_on
    assert (seen.flushed_sequence, [one.number for one in seen.live], seen.torn) == (319, [319], False)
    most = max(len(piece) for _, _, piece in disk.reads)
    assert most <= 256 << 10
    disk.reads.clear()
    more = frame([added(900, 901) + counters(902, 901)])
    after = look(disk, weeks + more, cache)
    assert isinstance(after, ManifestView)
    assert after.flushed_sequence == 901
    assert sum(len(piece) for path, _, piece in disk.reads if "MANIFEST" in path) < 4_000


def test_no_reading_reads_it_all(weeks, monkeypatch):
    """The work of one look is bounded, whatever the file has."""
    monkeypatch.setattr(manifest, "BYTES_PER_READING", 1 << 20)
    disk, cache = Disk({}), ManifestCache()
    looks = 0
    while isinstance(look(disk, weeks, cache), Unread):
        assert sum(len(piece) for _, _, piece in disk.reads) < (1 << 20) + (600 << 10)
        disk.reads.clear()
        looks += 1
    assert looks >= 7


def test_expensive_ones_stay(weeks):
    """Many small manifests do not push a long one out, which would be read from its start again."""
    disk, cache = Disk({}), ManifestCache(limit=3)
    while isinstance(look(disk, weeks, cache), Unread):
        pass
    for name in "abcdefgh":
        disk.files = store_of(name, frame(EDITS))
        read_manifest(disk, name, cache)
    assert len(cache) == 3
    disk.reads.clear()
    assert isinstance(look(disk, weeks, cache), ManifestView)
    assert {path for path, _, _ in disk.reads} == {"s/CURRENT"}


def test_damage_is_not_read_from_the_start(weeks):
    """Behind the last good record a damaged manifest is read again and again, before it never."""
    disk, cache = Disk({}), ManifestCache()
    torn = weeks[:-1] + bytes([weeks[-1] ^ 1])
    while isinstance(seen := look(disk, torn, cache), Unread):
        pass
    assert seen.ending.value == "corrupt"
    disk.reads.clear()
    assert look(disk, torn, cache) == seen
    assert sum(len(piece) for path, _, piece in disk.reads if "MANIFEST" in path) < 200_000
    whole = look(disk, weeks, cache)
    assert isinstance(whole, ManifestView)
    assert not whole.torn


@pytest.fixture
def days(monkeypatch):
    """A manifest that takes seven looks."""
    monkeypatch.setattr(manifest, "BYTES_PER_READING", 400)
    monkeypatch.setattr(manifest, "_PIECE_BYTES", 200)
    content = frame([counters(2), *(added(n, n) + counters(n + 1, n) for n in range(7, 70))])
    assert len(content) > 2_800
    return content


def test_two_at_once(days):
    """Only so many long manifests are read side by side; the others wait for their turn, and it comes."""
    disk, cache = Disk({}), ManifestCache()
    for name in "abcd":
        disk.files |= store_of(name, days)
    seen = {name: read_manifest(disk, name, cache) for name in "abcd"}
    assert [isinstance(x, Unread) and x.waits for x in seen.values()] == [False, False, True, True]
    for _ in range(30):
        seen |= {name: read_manifest(disk, name, cache) for name in "abcd"}
    assert all(isinstance(x, ManifestView) for x in seen.values())


def test_turn_of_one_that_is_gone(days):
    """A half-read manifest whose database was opened again keeps nobody waiting."""
    disk, cache = Disk(store_of("a", days) | store_of("b", days)), ManifestCache()
    for name in "ab":
        read_manifest(disk, name, cache)
    assert cache.is_busy
    disk.files |= {"a/CURRENT": b"MANIFEST-000007\n", "a/MANIFEST-000007": frame(EDITS[:3])}
    assert isinstance(read_manifest(disk, "a", cache), ManifestView)
    assert not cache.is_busy


def test_who_waits_forgets_nothing(days):
    """A manifest that grew much while others are read is continued when its turn comes, not started again."""
    disk, cache = Disk(store_of("a", days[:300])), ManifestCache()
    while isinstance(read_manifest(disk, "a", cache), Unread):
        pass
    disk.files = store_of("b", days) | store_of("c", days) | store_of("a", days)
    assert all(isinstance(read_manifest(disk, name, cache), Unread) for name in "bca")
    disk.files = store_of("a", days)
    cache.remove("b")
    disk.reads.clear()
    while isinstance(read_manifest(disk, "a", cache), Unread):
        pass
    assert ("a/MANIFEST-000005", 0, days[:200]) not in disk.reads


def test_half_read_ones_stay(days):
    """What is being read is not pushed out, however many others come: it would never end."""
    disk, cache = Disk(store_of("a", days)), ManifestCache(limit=1)
    outcomes = []
    for _ in range(20):
        outcomes.append(read_manifest(disk, "a", cache))
        disk.files |= store_of("b", frame(EDITS[:3]))
        read_manifest(disk, "b", cache)
    assert any(isinstance(x, ManifestView) for x in outcomes)


def test_long_manifest():
    """A manifest of many blocks is read to its end, piece by piece."""
    records = [counters(5)] + [added(n, n) + counters(n + 1, n) for n in range(6, 9000)]
    disk = FilesDisk(db(content=frame(records)))
    view = read_manifest(disk, "s")
    assert isinstance(view, ManifestView)
    assert (view.flushed_sequence, len(view.live), view.torn) == (8999, 8994, False)
    assert max(len(piece) for _, _, piece in disk.reads) <= 256 << 10


@pytest.mark.parametrize("size", [0, 1, 7, 100, 4096])
def test_pieces(monkeypatch, size):
    """Where a piece ends makes no difference, and a record of many pieces is read."""
    records = [counters(5), *(added(n, n, custom=varint(5) + string(bytes(n * 9))) for n in range(6, 60))]
    content = frame([*records, counters(60, 59)]) + bytes(size)
    monkeypatch.setattr(manifest, "_PIECE_BYTES", 97)
    assert read_manifest(FilesDisk(db(content=content)), "s") == parse_manifest(content, 5)


@pytest.mark.parametrize("rest", [b"", b"x"])
def test_rest_of_many_pieces(monkeypatch, rest):
    """A long rest of zeros is none of the file's content; something behind it is damage."""
    monkeypatch.setattr(manifest, "_PIECE_BYTES", 97)
    view = read_manifest(FilesDisk(db(content=GOOD + bytes(5_000) + rest)), "s")
    assert isinstance(view, ManifestView)
    assert view.torn is bool(rest)


def test_record_without_end(monkeypatch):
    """A record that goes on and on is given up."""
    monkeypatch.setattr(manifest, "_PIECE_BYTES", 64)
    monkeypatch.setattr(manifest, "_MAX_RECORD_BYTES", 1_000)
    view = read_manifest(FilesDisk(db(content=frame([counters(5), bytes(5_000)]))), "s")
    assert isinstance(view, ManifestView)
    assert view.ending.value == "unsupported"
