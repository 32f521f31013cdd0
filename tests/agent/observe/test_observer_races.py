"""A look is many questions: what changes between two of them must not be taken for damage."""

from __future__ import annotations

from pathlib import Path

from agent.contract.events import Source
from agent.inventory.disk import Unseen
from agent.layout.paths import classify
from agent.observe.observer import Observer
from agent.replay.memory_disk import MemoryDisk
from agent.replay.trace import read_trace


class LateIdentity(MemoryDisk):
    """A disk on which a store's IDENTITY comes between the first question for it and the second."""

    asked = 0

    def read_at(self, path: str, offset: int, length: int) -> bytes | Unseen:
        if path.endswith("/IDENTITY"):
            self.asked += 1
            if self.asked == 1:
                return Unseen.VANISHED
        return super().read_at(path, offset, length)


def test_a_store_that_is_opened_during_a_look_has_its_identity(repository: Path) -> None:
    """RocksDB makes IDENTITY before CURRENT: with a manifest in sight the first answer was too old."""
    disk = LateIdentity()
    for operation in read_trace(repository / "tests/data/traces/kafka-20685-4.1.2/trace-pod-a.jsonl.gz"):
        disk.apply(operation)
    (application,) = [x.name for x in disk.list("") if x.kind.value == "directory"]  # type: ignore[union-attr]
    (store,) = [x.name for x in disk.list(f"{application}/0_0/rocksdb")]  # type: ignore[union-attr]
    disk.asked = 0
    look = Observer(disk).database(classify(f"{application}/0_0/rocksdb/{store}"), 1, Source.RESCAN)
    assert look.manifest is not None
    assert look.identity
    assert look.identity_born_us > 0
    assert disk.asked == 2
