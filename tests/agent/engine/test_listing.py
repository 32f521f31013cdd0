"""Listings, for those who walk."""

from __future__ import annotations

from pathlib import Path

from agent.engine.listing import databases_below
from agent.observe.kernel_disk import KernelDisk


def test_stores_that_are_links_are_asked_for(tmp_path: Path):
    """What they lead to is not read, and that is told; a file in their place is no store."""
    rocksdb = tmp_path / "app" / "0_0" / "rocksdb"
    rocksdb.mkdir(parents=True)
    (rocksdb / "there").mkdir()
    (rocksdb / "moved").symlink_to("/elsewhere/moved")
    (rocksdb / "file").write_text("x")
    found, _ = databases_below(KernelDisk(tmp_path), "app/0_0", None)
    assert [x.store for x in found] == ["moved", "there"]
