"""Bounded reads of all files of a database together."""

from __future__ import annotations

from agent.inventory.disk import Unseen
from agent.observe.rocksdb.coding import MeteredDisk
from tests.support.tree_disk import FilesDisk


def test_budget_of_bytes():
    """Reading ends with the read that uses up the budget; everything else goes on."""
    disk = MeteredDisk(FilesDisk({"f": bytes(5_000)}), 8_000)
    assert [len(disk.read_at("f", 0, 5_000)) for _ in range(2)] == [5_000, 5_000]
    assert disk.read_at("f", 0, 1) is Unseen.TOO_LARGE
    assert not isinstance(disk.stat("f"), Unseen)


def test_budget_of_reads():
    """Many tiny reads, also of what is not there, use up the budget too."""
    disk = MeteredDisk(FilesDisk({"f": b"x"}), 10_000)
    answers = [disk.read_at("f" if n % 2 else "gone", 0, 1) for n in range(40)]
    assert answers[0] is Unseen.VANISHED
    assert answers.index(Unseen.TOO_LARGE) < 25
    assert set(answers[25:]) == {Unseen.TOO_LARGE}
