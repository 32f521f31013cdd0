"""Manifests that are read piece by piece."""

from __future__ import annotations

import pytest

from agent.observe.rocksdb import manifest
from agent.observe.rocksdb.manifest import parse_manifest, read_manifest
from agent.observe.rocksdb.replay import ManifestView
from tests.agent.observe.rocksdb.test_manifest import GOOD, db
from tests.support.rocksdb_writer import added, counters, frame, string, varint
from tests.support.tree_disk import FilesDisk


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
