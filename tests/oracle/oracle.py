"""Stores of one RocksDB release, compared with what RocksDB itself says of them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from agent.observe.kernel_disk import KernelDisk
from agent.observe.rocksdb.store import StoreFacts, read_store
from tests.oracle.answers import Answer, ask_rocksdict, ask_writer, copy_of, differences
from tests.oracle.toolbox import Writer

SHAPES = ("compacted", "compacting", "emptied", "flushed", "killed", "reopened", "upgraded")
"""What `StoreWriter write` makes."""


@dataclass(slots=True)
class Row:
    """What was compared.

    Args of the dataclass:
        stores: Databases compared.
        files: Their live SST files.
        entries: Entries of the data families in them, deletions included.
        deletions: Deletions among them.
        offsets: Entries of `offsets` families: offsets, positions, statuses.
        unequal: Where reader and oracle disagree.
    """

    stores: int = 0
    files: int = 0
    entries: int = 0
    deletions: int = 0
    offsets: int = 0
    unequal: list[str] = field(default_factory=list)

    def add(self, store: str, facts: StoreFacts, answers: Iterable[Answer]) -> None:
        """Count a store, and compare it with each answer."""
        answers = list(answers)
        self.stores += 1
        self.files += len(facts.files)
        self.entries += sum(one.properties.entries for one in facts.files if one.properties)
        self.deletions += facts.deletions or 0
        self.offsets += len(answers[0].offsets)
        self.unequal += [f"{store}: {one}" for answer in answers for one in differences(facts, answer)]


def write_and_compare(writer: Writer, place: Path) -> Row:
    """Let a release write every shape below `place`, and compare with rocksdict and with the release itself."""
    scratch, stores = place / "scratch", place / "stores"
    writer.run(scratch, "write", str(stores), str(writer.has_offsets).lower())
    row = Row()
    for shape in SHAPES:
        copies = [copy_of(stores / shape, place / whose / shape) for whose in ("rocksdict", "own")]
        row.add(
            shape, _read(stores, shape), [ask_rocksdict(copies[0]), ask_writer(writer, copies[1], scratch)]
        )
    return row


def _read(root: Path, database: str) -> StoreFacts:
    facts = read_store(KernelDisk(root), database)
    if not isinstance(facts, StoreFacts):
        raise TypeError(f"{database}: {facts}")
    return facts
