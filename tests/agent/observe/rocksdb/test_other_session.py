"""A file of the same name, number and size that another session of RocksDB wrote is not the file of the manifest."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from agent.observe.kernel_disk import KernelDisk
from agent.observe.rocksdb.properties import parse_properties
from agent.observe.rocksdb.store import read_store

rocksdict = pytest.importorskip("rocksdict", reason="the extra `verify` is not installed")


def make(path: Path) -> Path:
    """Flush one file; every store made so has the same numbers and sizes."""
    store = rocksdict.Rdict(str(path))
    for number in range(100):
        store[f"key{number:03d}"] = "value"
    store.flush()
    store.close()
    (file,) = path.glob("*.sst")
    return file


def test_another_sessions_file_is_refused(tmp_path: Path) -> None:
    """RocksDB says: Mismatch in unique ID."""
    one, other = make(tmp_path / "one"), make(tmp_path / "other")
    assert (one.name, one.stat().st_size) == (other.name, other.stat().st_size)
    shutil.copy(other, one)
    facts = read_store(KernelDisk(tmp_path), "one", with_checks=True)
    assert "another session" in str(facts)


def test_names_that_are_none_say_nothing() -> None:
    """A blanked property is no session; digits are of base 36, two bits stand in front of the last twelve."""
    entries = [(b"rocksdb.num.entries", b"\x01")]
    for name, session in (
        (b"", None),
        (bytes(20), None),
        (b"0" * 7 + b"3" + b"0" * 11 + b"Z", (3 << 62) + 35),
    ):
        found = parse_properties([*entries, (b"rocksdb.creating.session.identity", name)])
        assert found.session == session
