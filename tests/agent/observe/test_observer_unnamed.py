"""Readings of a database without IDENTITY, and of blocks that hold keys."""

from __future__ import annotations

from typing import Any

import pytest

from agent.contract.events import Source
from agent.inventory.disk import FileStat
from agent.observe import observer
from agent.observe.observer import Observer
from agent.observe.rocksdb.store import read_store
from agent.replay.memory_disk import MemoryDisk
from agent.replay.trace import Operation
from tests.agent.observe.test_observer import AT_US, NOW, PATHS, STORE, disk_with, write
from tests.support.rocksdb_writer import counters, frame, string, varint


def whole(*edits: bytes, number: int = 5, **files: bytes) -> MemoryDisk:
    """A store with CURRENT and a manifest of this number."""
    name = f"MANIFEST-{number:06d}"
    disk = disk_with(None, **files)
    write(disk, PATHS["current"], f"{name}\n".encode(), 10)
    write(disk, f"{STORE.path}/{name}", frame([*edits, counters(9)]), 40)
    return disk


@pytest.mark.parametrize("content", [None, b"", b"\0" * 36, b"two words"])
def test_whole_without_identity(content: bytes | None) -> None:
    """CURRENT and the manifest make it a database: RocksDB opens it and makes a new IDENTITY."""
    disk = whole() if content is None else whole(identity=content)
    stat = disk.stat(STORE.path)
    assert isinstance(stat, FileStat)
    look = Observer(disk).database(STORE, AT_US, NOW)
    assert (look.identity, look.unnamed, look.identity_born_us) == (f"unnamed-{stat.inode}-5-10", True, 0)
    assert look.leftovers == 0


def test_identity_that_the_manifest_says() -> None:
    """RocksDB makes the file anew from it."""
    look = Observer(whole(varint(8193) + string(b"id-1"))).database(STORE, AT_US, NOW)
    assert (look.identity, look.unnamed) == ("id-1", True)
    named = Observer(whole(varint(8193) + string(b"id-1"), identity=b"id-2")).database(STORE, AT_US, NOW)
    assert (named.identity, named.unnamed) == ("id-2", False)


def test_a_store_that_is_being_made_has_no_identity_yet() -> None:
    """Its first manifest comes before the IDENTITY."""
    look = Observer(whole(number=1)).database(STORE, AT_US, NOW)
    assert (look.identity, look.unnamed) == (None, False)


@pytest.mark.parametrize("gone", ["CURRENT", "MANIFEST-000005"])
def test_without_identity_and_more(gone: str) -> None:
    """Data files are what a torn deletion left."""
    disk = whole(sst=b"data")
    disk.apply(Operation(50, "unlink", f"{STORE.path}/{gone}"))
    look = Observer(disk).database(STORE, AT_US, NOW)
    assert (look.identity, look.unnamed, look.leftovers) == (None, False, 1)


@pytest.mark.parametrize(
    ("held", "source", "checks"),
    [(False, Source.RESCAN, True), (True, Source.RESCAN, False), (False, Source.INOTIFY, False)],
)
def test_blocks_that_rocksdb_has_read(held: bool, source: Source, checks: bool, monkeypatch: Any) -> None:
    """They are compared where no process has the store open, and not where its close was just announced."""
    disk = whole(store_lock=b"")
    asked: list[bool] = []
    if held:
        disk.apply(Operation(45, "lock", PATHS["store_lock"]))

    def noted(*arguments: Any, with_checks: bool, **more: Any) -> Any:
        asked.append(with_checks)
        return read_store(*arguments, with_checks=with_checks, **more)

    monkeypatch.setattr(observer, "read_store", noted)
    Observer(disk).database(STORE, AT_US, source)
    assert set(asked) == {checks}
