"""Paths: names that only look like segments or data files."""

from __future__ import annotations

import pytest

from agent.layout.paths import Role, classify


@pytest.mark.parametrize(
    ("path", "role"),
    [
        ("app/0_0/w/w.0", Role.SEGMENT),
        ("app/0_0/w/w:60000", Role.SEGMENT),
        ("app/0_0/w/w-60000", Role.SEGMENT),
        ("app/0_0/w/w", Role.OTHER),
        ("app/0_0/w/w.", Role.OTHER),
        ("app/0_0/w/w.x", Role.OTHER),
        ("app/0_0/w/w60000", Role.OTHER),
        ("app/0_0/w/v.0", Role.OTHER),
        ("app/0_0/w/w.0/CURRENT", Role.CURRENT),
        ("app/0_0/w/w.0/deep/CURRENT", Role.OTHER),
        ("app/0_0/w/w.x/CURRENT", Role.OTHER),
    ],
)
def test_segments(path, role):
    """A segment is named after its store, with a separator and a time."""
    assert classify(path).role is role


@pytest.mark.parametrize(
    ("name", "role"),
    [
        ("000006.sst", Role.SST),
        ("6.sst", Role.SST),
        (".sst", Role.OTHER),
        ("x.sst", Role.OTHER),
        ("000006.sst.tmp", Role.OTHER),
        ("000006.log", Role.WAL),
        ("LOG", Role.INFO_LOG),
        ("LOG.old.5", Role.INFO_LOG),
        ("LOCK", Role.STORE_LOCK),
    ],
)
def test_database_files(name, role):
    """RocksDB's files by their exact names."""
    assert classify(f"app/0_0/rocksdb/s/{name}").role is role
    assert classify(f"app/0_0/rocksdb/s/deep/{name}").role is Role.OTHER
