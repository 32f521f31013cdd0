"""The records of a spool: one table in SQLite, and in memory what its batches add up to.

The key of a record is its rank and then its place in the order of arrival. So what is given up first is together at
the beginning of the table, and giving it up frees whole pages.
"""

from __future__ import annotations

import shutil
import zlib
from collections.abc import Collection, Iterable
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from agent.contract.events import Kind, Origin, Record
from agent.ship.database import (
    DATABASE_NAME,
    PAGE_BYTES,
    Database,
    NoRoomError,
    OtherFormatError,
    StoreError,
    aside_files,
    format_of,
    rows_of_copy,
    set_aside,
)
from agent.ship.values import Batch, Limits, rank_of

FORMAT = 4
_PLACE_BITS = 48
_HUGE = 1 << 62
_SCHEMA = (
    "CREATE TABLE records (n INTEGER PRIMARY KEY, batch INTEGER, pod_uid TEXT, boot_id TEXT, sequence INTEGER,"
    " kind TEXT, at_us INTEGER, is_rejected INTEGER, crc INTEGER, line BLOB)",
    "CREATE INDEX by_batch ON records (batch)",
    f"PRAGMA user_version={FORMAT}",
)
_BASELINE_TABLES = (
    "CREATE TABLE IF NOT EXISTS baseline (n INTEGER PRIMARY KEY, packed BLOB)",
    "CREATE TABLE IF NOT EXISTS baseline_head"
    " (n INTEGER PRIMARY KEY, until_us INTEGER, generation INTEGER, row_count INTEGER)",
)
_BASELINE_PAGES = "SELECT coalesce(sum(length(packed) / ? + 2), 0) FROM baseline WHERE n != ?"
_LAST_PLACE = "SELECT coalesce(max(n & ?), 0) FROM records"
_SUMS = (
    "SELECT batch, pod_uid, boot_id, min(sequence), max(sequence), count(*), sum(length(line)), min(at_us),"
    " max(is_rejected) FROM records"
)
_LINES = (
    "SELECT n, batch, boot_id, sequence, kind, length(line), line, crc FROM records WHERE batch=?"
    " ORDER BY sequence"
)
_LOWEST = (
    "SELECT n, batch, boot_id, sequence, kind, length(line), CASE kind WHEN 'drop' THEN line END FROM records"
    " WHERE n < ? AND batch IS NOT ? AND NOT is_rejected ORDER BY n"
)


class Stored(NamedTuple):
    """A record in the table; of `line` only what is asked for."""

    n: int
    batch: int
    boot_id: str
    sequence: int
    kind: str
    size_bytes: int
    line: bytes | None = None


class Queue:
    """Rows and, in memory, their batches; its owner serialises the calls and decides what goes.

    Nothing is open before `open`. What changes the table only, and no memory, is followed by `refresh` once it is
    committed. All of it raises `StoreError` or one of its kinds.
    """

    def __init__(self, directory: Path, origin: Origin, limits: Limits) -> None:
        """Remember where: `directory` exists, and is this process's own; `origin` writes."""
        self._limits, self._origin = limits, origin
        self._aside = aside_files(directory)
        self._place = self._used_bytes = self._baseline_bytes = 0
        self.database = Database(directory / DATABASE_NAME)
        self.is_open = False
        self._shipped: set[int] = set()
        self.batches: dict[int, Batch] = {}
        self.number = 1  # of the batch that is open: those before it are sealed
        self.lost: tuple[int, str] | None = None
        """Until when a baseline was right that was set aside, and why; until there is another one."""

    @property
    def sealed(self) -> list[Batch]:
        """Batches that can be shipped, oldest first."""
        return [x for x in self.batches.values() if x.number < self.number and not x.is_rejected]

    @property
    def aside(self) -> int:
        """Number of databases that were set aside: one or none."""
        return int(self._aside[0].exists())

    def open(self) -> None:
        """Open the database, or make it; what an earlier agent left is sealed."""
        try:
            size_bytes, _ = self._volume()
            self.database.open(min(self._limits.log_bytes // 4, size_bytes // 16))
            ((version,),) = self.database.run("PRAGMA user_version")
            if not version and not self.database.run("SELECT 1 FROM sqlite_master"):
                with self.database.transaction():
                    for statement in _SCHEMA:
                        self.database.run(statement)
            elif version != FORMAT:
                raise OtherFormatError(_other(version))
            for statement in _BASELINE_TABLES:
                self.database.run(statement)
            found = [Batch(*row) for row in self.database.run(f"{_SUMS} GROUP BY batch ORDER BY batch")]
            ((self._place,),) = self.database.run(_LAST_PLACE, ((1 << _PLACE_BITS) - 1,))
            with suppress(NoRoomError):
                self.database.checkpoint()
            self.limit()
        except StoreError:
            self.database.close()
            raise
        self.batches = {x.number: x for x in found}
        self.number = max(self.batches, default=0) + 1
        self.is_open = True

    def close(self) -> None:
        """Close the database."""
        self.is_open = False
        self.database.close()

    def set_aside(self, why: str) -> None:
        """Begin again without the database that is there; it is kept if it leaves room for a new one."""
        self.close()
        self.batches, self._shipped = {}, set()
        try:
            self.lost = (self.database.path.stat().st_mtime_ns // 1000, why)
            set_aside(self.database.path, why)
            if size_of(self._aside) > self._limits.cap_bytes // 2:
                self.drop_aside()
        except OSError as error:
            raise StoreError(f"cannot set a damaged database aside: {error}") from error
        self.open()

    def drop_aside(self) -> bool:
        """Delete what was set aside; return whether there was anything."""
        had = size_of(self._aside) > 0
        with suppress(OSError):
            for path in self._aside:
                path.unlink(missing_ok=True)
        if had and self.is_open:
            self.limit()
        return had

    def limit(self, row: int = -1, row_bytes: int = 0) -> None:
        """Let the database grow up to the cap, and never into the last of the volume: the log needs that.

        The baseline does not count against the cap. `row`, `row_bytes`: number and size of one that is to be written.
        """
        _, free_bytes = self._volume()
        ((pages,),) = self.database.run(_BASELINE_PAGES, (PAGE_BYTES - 4, row))
        more = row_bytes // (PAGE_BYTES - 4) + 2 if row_bytes else 0
        self._baseline_bytes = (pages + more) * PAGE_BYTES
        most = self._limits.cap_bytes - self._limits.log_room_bytes - size_of(self._aside)
        self.database.limit(min(most + self._baseline_bytes, self.database.file_bytes() + free_bytes // 2))

    def used_bytes(self) -> int:
        """Return how much of the cap is in use; where the disk does not say, what it said last."""
        with suppress(StoreError):
            used_bytes = self.database.used_bytes() - self._baseline_bytes
            self._used_bytes = max(0, used_bytes) + size_of(self._aside)
        return self._used_bytes

    def append(self, record: Record, sequence: int, line: bytes) -> None:
        """Add a record to the open batch."""
        self.insert(record, sequence, line)
        at_us = record.observed_at_us
        batch = self.batches.get(self.number)
        if batch is None:
            own = self._origin
            batch = Batch(self.number, own.pod_uid, own.boot_id, sequence, sequence, oldest_at_us=at_us)
            self.batches[self.number] = batch
        batch.last, batch.oldest_at_us = sequence, min(batch.oldest_at_us, at_us)
        batch.records += 1
        batch.size_bytes += len(line)

    def insert(self, record: Record, sequence: int, line: bytes) -> None:
        """Add a record to the table only."""
        self._place += 1
        kind, own = record.kind.value, self._origin
        n = (rank_of(kind) << _PLACE_BITS) + self._place
        row = (
            n, self.number, own.pod_uid, own.boot_id, sequence, kind, record.observed_at_us, zlib.crc32(line),
            line,
        )  # fmt: skip
        self.database.run("INSERT INTO records VALUES (?, ?, ?, ?, ?, ?, ?, 0, ?, ?)", row)

    def lines(self, number: int) -> tuple[list[bytes], list[Stored]]:
        """Read a batch.

        Gives its whole lines, and the records that are not what was written.
        """
        whole: list[bytes] = []
        damaged: list[Stored] = []
        for *row, line, crc in self.database.run(_LINES, (number,)):
            if zlib.crc32(line) == crc:
                whole.append(line)
            else:
                damaged.append(Stored(*row))
        return whole, damaged

    def lowest(self, rank: int, need_bytes: int, spared: int | None) -> list[Stored]:
        """Choose what is missed least, up to a rank, oldest first; nothing is changed.

        `rank`: the highest; announcements come along and make no room, as new ones will say the same. `spared`:
        this batch is on its way to the sink and stays.
        """
        found, freed_bytes = [], 0
        for row in self.database.each(_LOWEST, ((rank + 1) << _PLACE_BITS, spared)):
            stored = Stored(*row)
            found.append(stored)
            freed_bytes += 0 if stored.kind == Kind.DROP.value else stored.size_bytes
            if freed_bytes >= need_bytes:
                break
        return found if freed_bytes else []

    def delete(self, records: Iterable[Stored]) -> None:
        """Delete records from the table only."""
        for record in records:
            self.database.run("DELETE FROM records WHERE n=?", (record.n,))

    def delete_batch(self, number: int) -> None:
        """Delete a batch from the table only."""
        self.database.run("DELETE FROM records WHERE batch=?", (number,))

    def remove(self, number: int) -> None:
        """Forget a batch that the sink has; on a full disk its rows go later, and only a kill before ships it again."""
        del self.batches[number]
        self._shipped.add(number)
        self.delete_shipped()

    def delete_shipped(self) -> None:
        """Delete the rows of batches that the sink has, as far as there is room for that."""
        with suppress(NoRoomError):
            for number in sorted(self._shipped):
                self.delete_batch(number)
                self._shipped.remove(number)

    def reject(self, number: int) -> None:
        """Mark in the table that a batch is never shipped again; it stays for inspection until room is needed."""
        self.database.run("UPDATE records SET is_rejected=1 WHERE batch=?", (number,))

    def refresh(self, numbers: Collection[int]) -> None:
        """Count again what batches hold; those without records go."""
        for number in numbers:
            rows = self.database.run(f"{_SUMS} WHERE batch=? GROUP BY batch", (number,))
            if rows:
                self.batches[number] = Batch(*rows[0])
            else:
                self.batches.pop(number, None)

    def _volume(self) -> tuple[int, int]:
        """Return the size of the volume and what is free on it; huge where it does not say."""
        try:
            volume = shutil.disk_usage(self.database.path.parent)
        except OSError as error:
            raise StoreError(str(error)) from error
        return (volume.total, volume.free) if volume.total else (_HUGE, _HUGE)


def spooled_lines(path: Path) -> list[bytes]:
    """Read the lines that wait in a spool, also of an agent that runs. Raises what `rows_of_copy` does."""
    return [bytes(line) for (line,) in rows_of_copy(path, "SELECT line FROM records ORDER BY n")]


def other_format(path: Path) -> str:
    """Say of which format a database is, if not of this agent's; empty = it is, or there is none. Changes nothing."""
    version = format_of(path)
    return _other(version) if version not in (None, 0, FORMAT) else ""


def _other(version: int | None) -> str:
    return f"it has format {version}, this statewarden knows {FORMAT}"


def size_of(paths: Iterable[Path]) -> int:
    """Add up the sizes of files, in bytes; what cannot be seen counts nothing."""
    total = 0
    for path in paths:
        with suppress(OSError):
            total += path.stat().st_size if path.is_file() else 0
    return total
