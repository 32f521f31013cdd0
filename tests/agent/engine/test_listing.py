"""Listings, for those who walk."""

from __future__ import annotations

from pathlib import Path

from agent.engine.listing import databases_below
from agent.engine.refusals import Refusals
from agent.inventory.disk import Unseen
from agent.inventory.model import Inventory
from agent.observe.kernel_disk import KernelDisk


def test_stores_that_are_links_are_asked_for(tmp_path: Path):
    """What they lead to is not read, and that is told; a file in their place is no store."""
    rocksdb = tmp_path / "app" / "0_0" / "rocksdb"
    rocksdb.mkdir(parents=True)
    (rocksdb / "there").mkdir()
    (rocksdb / "moved").symlink_to("/elsewhere/moved")
    (rocksdb / "file").write_text("x")
    found = databases_below(KernelDisk(tmp_path), "app/0_0", None, Refusals(Inventory()), 1)
    assert [x.store for x in found] == ["moved", "there"]


class Denying:
    """A disk that lists nothing below one path."""

    def __init__(self, disk: KernelDisk, path: str) -> None:
        self._disk, self._path = disk, path

    def list(self, path: str) -> object:
        return Unseen.DENIED if path == self._path else self._disk.list(path)


def test_what_may_not_be_listed_is_reported(tmp_path):
    """It is not the same as an empty directory; once it may be, that is over."""
    (tmp_path / "app" / "0_0" / "rocksdb" / "s").mkdir(parents=True)
    inventory, disk = Inventory(), KernelDisk(tmp_path)
    refusals = Refusals(inventory)
    assert databases_below(Denying(disk, "app/0_0/rocksdb"), "app/0_0", None, refusals, 1) == []
    assert [(x.cause, x.detail, x.ended_us) for x in inventory.blind] == [
        ("denied", "at 'app/0_0/rocksdb'", None)
    ]
    assert len(databases_below(disk, "app/0_0", None, refusals, 2)) == 1
    assert [x.ended_us for x in inventory.blind] == [2]
