"""What of a version edit is read, what is passed over, and blob files, which no edit removes by name."""

from __future__ import annotations

import pytest

from agent.observe.rocksdb import replay, version_edit
from agent.observe.rocksdb.log_records import End
from agent.observe.rocksdb.manifest import parse_manifest
from agent.observe.rocksdb.replay import ManifestView
from tests.support.rocksdb_writer import (
    OTHER_KEY,
    added,
    counters,
    deleted,
    family,
    family_add,
    frame,
    string,
    varint,
)


def edits(*records: bytes) -> ManifestView:
    return parse_manifest(frame(records), 5)


BLOB = varint(20) + varint(3) + varint(100) + string(b"m") + string(b"v") + varint(0)  # 3 values, 100 bytes
DROPPED = varint(20) + varint(1) + varint(30) + varint(0)

# fmt: off
PARTS_OF_AN_EDIT = {
    1: string(b"c"), 2: varint(4), 5: varint(1) + string(OTHER_KEY), 9: varint(0), 10: varint(4), 203: varint(7),
         400: BLOB,
    401: DROPPED, 8193: string(b"id"), 8194: BLOB, 8195: DROPPED, 8196: varint(4) + varint(2) + varint(100) + varint(1),
    8197: varint(4), 8198: string(b"ts"), 8199: string(varint(4) + varint(1)), 8200: string(varint(4)),
         8201: string(b"\1"),
    8202: string(b"progress"), 8203: string(varint(9)),
}
"""Those that say nothing of SST files, as RocksDB writes them."""

# tag = number, from `enum Tag` and `enum NewFileCustomTag` of RocksDB 11.9 (db/version_edit.h)
TAGS = {1, 2, 3, 4, 5, 6, 7, 9, 10, 100, 102, 103, 200, 201, 202, 203, 300, 400, 401, *range(8193, 8204)}
FIELDS = {*range(2, 18), 65}
# fmt: on


def test_every_part_is_read_or_has_a_reason():
    """One table says what of a manifest is read, and why the rest decides nothing; nothing is left out of it."""
    assert set(version_edit.PARTS) == TAGS
    assert set(version_edit.FILE_FIELDS) == FIELDS
    for part in version_edit.PARTS.values():
        assert bool(part.why_not) is getattr(part.reader, "__name__", "").startswith("_pass_")
    assert all(bool(one.why_not) is (one.reader is None) for one in version_edit.FILE_FIELDS.values())


@pytest.mark.parametrize("tag", PARTS_OF_AN_EDIT)
def test_parts_passed_over(tag):
    """Parts that say nothing about SST files are passed over exactly, and without a word."""
    part = varint(tag) + PARTS_OF_AN_EDIT[tag]
    view = edits(counters(5), part + added(6, 9) + counters(7, 9))
    assert [file.number for file in view.live] == [6]
    assert not view.torn
    assert view.unknown == ()


OF_A_LATER_ONE = {
    "part 8692": varint(8692) + string(b"whatever"),
    "field 60 of a file": added(8, 9, custom=varint(60) + string(b"\1")),
    "field 9 of a blob file": varint(400) + BLOB[:-1] + varint(9) + string(b"x") + varint(0),
}


@pytest.mark.parametrize("what", OF_A_LATER_ONE)
def test_parts_of_a_later_release(what):
    """What may be passed over is, but not without a word: nobody knows what it says."""
    view = edits(counters(5), OF_A_LATER_ONE[what] + added(6, 9) + counters(7, 9))
    assert 6 in [file.number for file in view.live]
    assert not view.torn
    assert view.unknown == (what,)


def blob(number: int, sst: int, family_of: bytes = b"") -> bytes:
    """An edit that adds a blob file, and an SST file that refers to it."""
    reference = added(sst, 9, custom=varint(4) + string(varint(number))) + family_of
    return varint(400) + varint(number) + BLOB[1:] + reference


def with_blobs(*edit_parts: bytes) -> ManifestView:
    """Blob files 20 and 21; SST file 6 refers to 20, 7 to 21."""
    return edits(counters(5), blob(20, 6) + counters(21, 9), blob(21, 7) + counters(22, 9), *edit_parts)


def test_blob_files():
    """Size on disk: header and footer are not counted in the manifest."""
    view = with_blobs()
    assert [(one.name, one.size_bytes) for one in view.blobs] == [("000020.blob", 162), ("000021.blob", 162)]
    assert view.names == {"000006.sst", "000007.sst", "000020.blob", "000021.blob"}


@pytest.mark.parametrize(
    ("parts", "left"),
    [
        ((deleted(6) + counters(23, 9),), [21]),  # older than all that is referred to
        ((deleted(7) + counters(23, 9),), [20, 21]),  # an older file may still need the newer one
        ((deleted(6) + deleted(7) + counters(23, 9),), []),
        ((varint(401) + DROPPED + counters(23, 9),), [20, 21]),
        ((varint(401) + varint(21) + varint(3) + varint(90) + varint(0) + counters(23, 9),), [20]),
        ((varint(401) + DROPPED + counters(23, 9),) * 3, [21]),
    ],
)
def test_blob_files_that_nothing_needs(parts, left):
    """RocksDB drops them without naming them."""
    assert [one.number for one in with_blobs(*parts).blobs] == left


def test_blob_files_of_families():
    """The oldest reference counts in its own family only."""
    parts = (family_add(1, "x") + counters(23), blob(10, 8, family(1)))
    assert [one.number for one in with_blobs(*parts).blobs] == [10, 20, 21]


def test_many_blob_files_are_forgotten_in_time():
    """A manifest of weeks names many; what nothing needs is not kept."""
    rounds = [deleted(n) + blob(n + 2, n + 1) + counters(n + 3, 9) for n in range(100, 1000)]
    known = replay.Replay()
    for record in (counters(5), *rounds):
        known.apply(version_edit.parse_edit(record))
        assert len(known._blobs) <= 2 * replay.GONE_KEPT + 1
    assert [one.number for one in known.view(5, End.WHOLE, 0).blobs] == [1001]


def test_identity_in_the_manifest():
    """RocksDB 9 and later say it there, too."""
    assert edits(varint(8193) + string(b"id-1"), counters(5)).database_id == "id-1"
    assert edits(varint(8193) + string(b"\0"), counters(5)).database_id is None
    assert edits(counters(5)).database_id is None
