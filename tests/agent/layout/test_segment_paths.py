"""Paths: names that only look like segments or data files."""

from __future__ import annotations

import pytest

from agent.layout.paths import PathRole, classify


@pytest.mark.parametrize(
    ("path", "role"),
    [
        ("app/0_0/w/w.0", PathRole.SEGMENT),
        ("app/0_0/w/w:60000", PathRole.SEGMENT),
        ("app/0_0/w/w-60000", PathRole.SEGMENT),
        ("app/0_0/w/w", PathRole.OTHER),
        ("app/0_0/w/w.", PathRole.OTHER),
        ("app/0_0/w/w.x", PathRole.OTHER),
        ("app/0_0/w/w60000", PathRole.OTHER),
        ("app/0_0/w/v.0", PathRole.OTHER),
        ("app/0_0/w/w.0/CURRENT", PathRole.CURRENT),
        ("app/0_0/w/w.0/deep/CURRENT", PathRole.OTHER),
        ("app/0_0/w/w.x/CURRENT", PathRole.OTHER),
    ],
)
def test_segments(path, role):
    """A segment is named after its store, with a separator and a time."""
    assert classify(path).role is role


@pytest.mark.parametrize(
    ("name", "role"),
    [
        ("000006.sst", PathRole.SST),
        ("6.sst", PathRole.SST),
        (".sst", PathRole.OTHER),
        ("x.sst", PathRole.OTHER),
        ("000006.sst.tmp", PathRole.OTHER),
        ("000006.log", PathRole.WAL),
        ("LOG", PathRole.INFO_LOG),
        ("LOG.old.5", PathRole.INFO_LOG),
        ("LOCK", PathRole.STORE_LOCK),
    ],
)
def test_database_files(name, role):
    """RocksDB's files by their exact names."""
    assert classify(f"app/0_0/rocksdb/s/{name}").role is role
    assert classify(f"app/0_0/rocksdb/s/deep/{name}").role is PathRole.OTHER
