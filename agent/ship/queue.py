"""The records of a spool in SQLite, in the order of arrival, and the batches that they belong to."""

from __future__ import annotations

import json
import zlib
from bisect import bisect_right
from collections.abc import Iterator
from contextlib import contextmanager
from copy import copy
from dataclasses import dataclass, field

from agent.ship import drops, priority, tables
from agent.ship.batches import Batch
from agent.ship.database import Database, Row
from agent.ship.drops import Account


@dataclass(slots=True)
class GivenUp:
    """Records of one rank that could be given up, oldest first.

    Args of the dataclass:
        rank: Their rank.
        last: Place of the last of them; all of that rank before it go, too.
        size_bytes: Size of their lines.
        batches: Where they are.
        account: What must be announced.
    """

    rank: int
    last: int = 0
    size_bytes: int = 0
    batches: list[Batch] = field(default_factory=list)
    account: Account = field(default_factory=dict)


class Queue:
    """Rows and, in memory, their batches; its owner serialises the calls and decides what goes."""

    def __init__(self, database: Database) -> None:
        """Take an open database, empty or of this format, and seal what an earlier agent left open.

        Raises:
            StoreError: it cannot be read or written.
        """
        self._database = database
        ((version,),) = database.run("PRAGMA user_version")
        if not version:
            with database.transaction():
                for statement in tables.SCHEMA:
                    database.run(statement)
        self.batches: list[Batch] = []
        self.opened: Batch | None = None
        for start, pod_uid, boot_id, first, last, rejected in database.run(
            "SELECT * FROM batches ORDER BY start"
        ):
            batch = Batch(start, pod_uid, boot_id, first, last or 0, is_rejected=bool(rejected))
            self._load(batch, is_open=last is None)
        database.checkpoint()

    def append(self, batch: tuple[str, str], sequence: int, kind: str, at_us: int, line: bytes) -> None:
        """Add a record to the open batch, or open one with it.

        Args:
            batch: Pod uid and boot id.
            sequence: Its sequence, above all of that boot.
            kind: Record kind.
            at_us: When it was observed.
            line: The encoded record.

        Raises:
            StoreError: nothing is added.
        """
        opened, rank = self.opened, priority.rank_of(kind)
        if opened is None:
            opened = Batch(self._next_place(), *batch, sequence, sequence, is_open=True)
            with self._database.transaction():
                self._insert_batch(opened)
                self._database.run(tables.INSERT[rank], (opened.start, kind, at_us, zlib.crc32(line), line))
            self.batches.append(opened)
            self.opened = opened
        else:
            place = opened.start + sequence - opened.first
            self._database.run(tables.INSERT[rank], (place, kind, at_us, zlib.crc32(line), line))
        self._database.wrote(len(line))
        opened.last = sequence
        opened.oldest_at_us = min(opened.oldest_at_us, at_us) if opened.records else at_us
        opened.records += 1
        opened.size_bytes += len(line)

    def seal(self) -> None:
        """Close the open batch; without records it goes.

        Raises:
            StoreError: it stays open.
        """
        opened = self.opened
        if opened is None:
            return
        if not opened.records:
            self.remove(opened)
        else:
            self._database.run("UPDATE batches SET last=? WHERE start=?", (opened.last, opened.start))
            self._database.wrote(0)
            opened.is_open = False
        self.opened = None

    def lines(self, batch: Batch) -> tuple[list[bytes], list[int]]:
        """Read a batch.

        Returns:
            Its lines, and the places of records that are not what was written.

        Raises:
            StoreError: it cannot be read.
        """
        rows = self._database.run(tables.LINES, _span(batch) * len(tables.TABLES))
        return [row[2] for row in rows], [n for n, crc, line in rows if zlib.crc32(line) != crc]

    def remove(self, batch: Batch) -> None:
        """Forget a batch with all its records.

        Raises:
            StoreError: it stays.
        """
        with self._database.transaction():
            for statement in tables.DELETE:
                self._database.run(statement, _span(batch))
            self._database.run("DELETE FROM batches WHERE start=?", (batch.start,))
        self._database.wrote(batch.size_bytes)
        self.batches.remove(batch)

    def remove_records(self, batch: Batch, places: list[int]) -> None:
        """Forget single records of a batch.

        Raises:
            StoreError: they stay.
        """
        with self.all_or_nothing():
            for place in places:
                for statement in tables.DELETE:
                    self._database.run(statement, (place, place))
            self._count(batch)

    def reject(self, batch: Batch) -> None:
        """Never ship a batch again; it stays for inspection until room is needed.

        Raises:
            StoreError: it is as before.
        """
        self._database.run("UPDATE batches SET is_rejected=1 WHERE start=?", (batch.start,))
        self._database.wrote(0)
        batch.is_rejected = True

    def given_up(self, rank: int, need_bytes: float, spared: Batch | None) -> GivenUp:
        """Choose the oldest records of a rank; nothing is changed.

        Args:
            rank: See `priority`.
            need_bytes: How much is wanted.
            spared: This batch is on its way to the sink and stays.

        Raises:
            StoreError: they cannot be read.
        """
        found = GivenUp(rank)
        for place, kind, size_bytes, line in self._database.each(tables.OLDEST[rank], _span(spared)):
            batch = self.batches[bisect_right(self.batches, place, key=lambda x: x.start) - 1]
            body = json.loads(line)["data"] if line is not None else {}
            sequence = batch.first + place - batch.start
            drops.add_record(found.account, batch.boot_id, sequence, kind, body)
            found.last = place
            if batch not in found.batches[-1:]:
                found.batches.append(batch)
            found.size_bytes += size_bytes
            if found.size_bytes >= need_bytes:
                break
        return found

    def give_up(self, given_up: GivenUp, spared: Batch | None) -> None:
        """Forget records; to be called within `all_or_nothing`, with their announcements.

        Raises:
            StoreError: the disk refuses.
        """
        self._database.run(tables.GIVE_UP[given_up.rank], (given_up.last, *_span(spared)))
        for batch in given_up.batches:
            self._count(batch)

    @contextmanager
    def all_or_nothing(self) -> Iterator[None]:
        """Change several things; if one fails, batches in memory are as before, too.

        Raises:
            StoreError: nothing is changed.
        """
        batches, opened, values = list(self.batches), self.opened, [copy(x) for x in self.batches]
        try:
            with self._database.transaction():
                yield
        except BaseException:
            self.batches, self.opened = batches, opened
            for batch, before in zip(batches, values, strict=True):
                batch.copy_from(before)
            raise

    def _insert_batch(self, batch: Batch) -> None:
        last = None if batch.is_open else batch.last
        values = (batch.start, batch.pod_uid, batch.boot_id, batch.first, last, int(batch.is_rejected))
        self._database.run("INSERT INTO batches VALUES (?, ?, ?, ?, ?, ?)", values)

    def _next_place(self) -> int:
        return self.batches[-1].end + 1 if self.batches else 1

    def _load(self, batch: Batch, *, is_open: bool) -> None:
        """Take in a batch that is there already; an open one is sealed with what it holds."""
        if is_open:
            ends = [row[3] for row in self._sums(batch, tables.LAST_PLACE) if row[0]]
            batch.last = batch.first + max(ends, default=batch.start - 1) - batch.start
            self._database.run("UPDATE batches SET last=? WHERE start=?", (batch.last, batch.start))
        self.batches.append(batch)
        self._count(batch)

    def _count(self, batch: Batch) -> None:
        """Count again what a batch holds; a sealed one without records goes."""
        sums = [row for row in self._sums(batch, batch.end) if row[0]]
        batch.records = sum(row[0] for row in sums)
        batch.size_bytes = sum(row[1] for row in sums)
        batch.oldest_at_us = min((row[2] for row in sums), default=0)
        if not batch.records and not batch.is_open:
            self._database.run("DELETE FROM batches WHERE start=?", (batch.start,))
            self.batches.remove(batch)

    def _sums(self, batch: Batch, end: int) -> list[Row]:
        return self._database.run(tables.SUMS, (batch.start, end) * len(tables.TABLES))


def _span(batch: Batch | None) -> tuple[int, int]:
    return (batch.start, batch.end) if batch is not None else (0, 0)
