"""Blob files: there, of the size that the manifest says, and with the ends that RocksDB wrote."""

from __future__ import annotations

import pytest

from agent.observe.rocksdb.cache import SstCache
from agent.observe.rocksdb.checksum import masked_crc32c
from agent.observe.rocksdb.store import StoreFacts, read_store
from tests.support.rocksdb_writer import added, counters, frame, string, varint
from tests.support.tree_disk import FilesDisk

VALUES = b"key and value" * 8  # 104 bytes of records, which nothing reads
PATH = "s/000020.blob"
MANIFEST = frame(
    [
        counters(5),
        varint(400) + varint(20) + varint(3) + varint(len(VALUES)) + string(b"") * 2 + varint(0)
        + added(6, 9, size=5, custom=varint(4) + string(varint(20))) + counters(21, 9),
    ]
)  # fmt: skip


def blob(
    *, magic: int = 2_395_959, version: int = 1, family: int = 0, flags: int = 0, values: bytes = VALUES
) -> bytes:
    """A file as `BlobLogWriter` writes it, here with other records."""
    head = b"".join(x.to_bytes(4, "little") for x in (magic, version, family)) + bytes([flags, 0]) + bytes(16)
    foot = magic.to_bytes(4, "little") + (3).to_bytes(8, "little") + bytes(16)
    return head + values + foot + masked_crc32c(foot).to_bytes(4, "little")


def disk_with(content: bytes | None) -> FilesDisk:
    files = {"s/CURRENT": b"MANIFEST-000005\n", "s/MANIFEST-000005": MANIFEST, "s/000006.sst": b"short"}
    return FilesDisk(files if content is None else {**files, PATH: content})


def read(content: bytes | None) -> StoreFacts:
    facts = read_store(disk_with(content), "s")
    assert isinstance(facts, StoreFacts)
    return facts


def of_blob(facts: StoreFacts) -> list[str]:
    return [x.removeprefix("000020.blob: ") for x in facts.problems if x.startswith("000020.blob: ")]


def test_whole():
    """Nothing to say; its size counts."""
    facts = read(blob())
    assert (of_blob(facts), facts.missing_files) == ([], ())
    assert [one.size_bytes for one in facts.manifest.blobs] == [len(blob())]


def test_gone():
    """The manifest still names it at a second look."""
    facts = read(None)
    assert (of_blob(facts), facts.missing_files) == (["vanished"], ("000020.blob",))


CUT = blob()
REFUSED = {
    "file of 0 bytes, the manifest says 166": b"",
    "file of 165 bytes, the manifest says 166": CUT[:-1],
    "file of 167 bytes, the manifest says 166": CUT + b"x",
    "file does not begin like a blob file of its column family": b"x" + CUT[1:],
    "file does not end like a blob file": CUT[:-32] + bytes(32),
    "checksum of the footer is wrong": CUT[:-28] + b"\1" + CUT[-27:],
}


@pytest.mark.parametrize("said", REFUSED)
def test_refused(said):
    """RocksDB opens the database, and fails at every value of the file."""
    facts = read(REFUSED[said])
    assert of_blob(facts) == [f"corrupt: {said}"]
    assert facts.missing_files == ()


@pytest.mark.parametrize("content", [blob(family=1), blob(flags=1), CUT[:14] + b"\1" + CUT[15:]])
def test_header_of_another(content):
    """Of another column family, or with times to live, which RocksDB expects in no such file."""
    assert of_blob(read(content)) == ["corrupt: file does not begin like a blob file of its column family"]


def test_later_version():
    """What is not known is no damage."""
    assert of_blob(read(blob(version=2))) == ["unsupported: blob file of version 2"]


def test_records_are_not_read():
    """Keys and values: a flipped bit there stays unseen, and no read touches them."""
    assert of_blob(read(blob(values=VALUES[::-1]))) == []
    disk, cache = disk_with(blob()), SstCache()
    for _ in range(2):
        read_store(disk, "s", cache)
    assert [(at, len(piece)) for path, at, piece in disk.reads if path == PATH] == [(0, 30), (134, 32)]
    facts = read_store(disk, "s", with_counters=False)
    assert isinstance(facts, StoreFacts)
    assert facts.problems == ()
