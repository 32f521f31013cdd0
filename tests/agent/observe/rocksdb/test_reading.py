"""Bounded reads: of one file, and of all files together."""

from __future__ import annotations

import pytest

from agent.inventory.disk import LockState, Unseen
from agent.observe.rocksdb.reading import MeteredDisk, read_whole
from tests.support.tree_disk import FilesDisk


@pytest.mark.parametrize("size", [0, 1, (256 << 10) - 1, 256 << 10, (256 << 10) + 1])
def test_whole(size):
    """A file of any length comes whole, and never more than its limit."""
    disk = FilesDisk({"f": b"x" * size})
    assert read_whole(disk, "f", size) == b"x" * size
    assert read_whole(disk, "gone", size) is Unseen.VANISHED
    if size:
        assert read_whole(disk, "f", size - 1) is Unseen.TOO_LARGE


def test_budget_of_bytes():
    """Reading ends with the read that uses up the budget; everything else goes on."""
    disk = MeteredDisk(FilesDisk({"f": bytes(5_000)}), 8_000)
    assert [len(disk.read_at("f", 0, 5_000)) for _ in range(2)] == [5_000, 5_000]
    assert disk.read_at("f", 0, 1) is Unseen.TOO_LARGE
    assert disk.lock_state("f") is LockState.FREE
    assert not isinstance(disk.stat("f"), Unseen)
    assert disk.list("") == FilesDisk({"f": b""}).list("")
    assert disk.processes() == ()


def test_budget_of_reads():
    """Many tiny reads, also of what is not there, use up the budget too."""
    disk = MeteredDisk(FilesDisk({"f": b"x"}), 10_000)
    answers = [disk.read_at("f" if n % 2 else "gone", 0, 1) for n in range(40)]
    assert answers[0] is Unseen.VANISHED
    assert answers.index(Unseen.TOO_LARGE) < 25
    assert set(answers[25:]) == {Unseen.TOO_LARGE}
