"""Replayed manifests that are remembered: never another answer than without the memory."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from agent.inventory.disk import FileStat, Unseen
from agent.observe.rocksdb.manifest import ManifestCache, ManifestView, parse_manifest, read_manifest
from tests.support.rocksdb_writer import added, counters, deleted, frame
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


def look(disk: FilesDisk, content: bytes, cache: ManifestCache) -> ManifestView | Unseen:
    """The store's manifest has this content now."""
    disk.files = {"s/CURRENT": b"MANIFEST-000005\n", "s/MANIFEST-000005": content}
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
        disk.files = {f"{name}/CURRENT": b"MANIFEST-000005\n", f"{name}/MANIFEST-000005": frame(EDITS)}
        read_manifest(disk, name, cache)
    assert len(cache) == 2
    disk.files = {"a/CURRENT": b"MANIFEST-000005\n", "a/MANIFEST-000005": frame(EDITS)}
    disk.reads.clear()
    read_manifest(disk, "a", cache)
    assert len(disk.reads) == 2, "CURRENT, twice: a is still known"


def test_bounded_bytes():
    """Long manifests push each other out; one that is longer than the bound is not kept at all."""
    content = frame(EDITS)
    disk, cache = Disk({}), ManifestCache(limit_bytes=2 * len(content) - 1)
    for name in ("a", "b"):
        disk.files = {f"{name}/CURRENT": b"MANIFEST-000005\n", f"{name}/MANIFEST-000005": content}
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
