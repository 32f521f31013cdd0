"""The spool: records on the agent's own volume until a sink has acknowledged them.

Durability: a record is committed when `append` returns, so that killing the agent loses nothing; it is synced to the
disk within about a second (by the next `append` or `maintain`), and at the latest when its batch is sealed. Only
sealed batches are shipped, as segments.

Cap: when SQLite says that it is full, records are given up by rank, oldest first, in one transaction with
the `drop` records that announce it if there is room for these; else the announcement waits in memory. A record that
ranks below all remaining ones is rejected and announced likewise.
"""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Self

from agent.clock import Clock
from agent.contract.events import Origin, Record
from agent.errors import SpoolError
from agent.ship import drops
from agent.ship.baseline import BaselineTable
from agent.ship.database import DamagedError, NoRoomError, StoreError
from agent.ship.drops import Account, Cause
from agent.ship.home import OwnDirectory
from agent.ship.queue import Queue
from agent.ship.values import Limits, Parcel, SpoolStats
from agent.ship.writer import Writer

_LOG = logging.getLogger(__name__)
SYNC_EVERY_S = 1.0
AGED_BACKLOG = 16
"""While so many segments wait, age seals no more: a sink that is away for days must not get thousands of small ones."""


class Spool:
    """Records in, segments out. One lock serialises the threads: one that appends, one that ships, any that count."""

    def __init__(
        self,
        directory: Path,
        origin: Origin,
        *,
        clock: Clock,
        limits: Limits = Limits(),  # noqa: B008 - immutable
        state_directory: Path | None = None,
    ) -> None:
        """Take the directory and bring it in order; on a full disk the database is made when there is room.

        `directory`: the spool's own directory; made if it is not there. `origin`: who speaks; every record is
        stamped with it. Its boot id is new with every start. `clock`: monotonic time for sealing and syncing, wall
        clock for drop records. `state_directory`: what is audited; the spool must not lie in it. Raises
        `SpoolError`: the directory cannot be used; the message says why and what to do.
        """
        limits.check()
        self._clock, self._limits = clock, limits
        self._mutex = threading.RLock()
        self._opened_s = self._synced_s = clock.monotonic_s()
        self._is_dirty = self._closed = False
        self._home = OwnDirectory(directory, state_directory)
        self._queue = Queue(directory, origin, limits)
        self._writer = Writer(self._queue, origin, clock, limits)
        self.baseline = BaselineTable(self._queue, self._open)
        try:
            self._writer.start()
        except NoRoomError as error:
            _LOG.error("spool: no room to begin; will retry", extra={"reason": str(error)})
        except StoreError as error:
            self._home.close()
            raise SpoolError(f"cannot prepare spool {directory}: {error}; check its volume") from error

    @property
    def directory(self) -> Path:
        """The agent's own directory."""
        return self._home.path

    def append(self, record: Record) -> int:
        """Stamp a record with the next sequence and keep it.

        Raises `ContractError`: the record breaks the contract; nothing happened. Raises `SpoolError`: the disk
        refuses. If the record is lost, its sequence is used up and its loss is announced as soon as the disk
        accepts again; the caller may go on.
        """
        with self._mutex:
            if self._closed:
                raise SpoolError(f"spool {self.directory} is closed")
            if self._queue.number not in self._queue.batches:
                self._opened_s = self._clock.monotonic_s()
            sequence = self._writer.put(record)
            self._is_dirty = True
            with self._guarded("write to"):
                self._do_what_is_due()
            return sequence

    def maintain(self) -> None:
        """Do what is due by the clock: announce losses, sync, seal by age; on a full disk, try again.

        Raises `SpoolError`: the disk refuses; it is tried again next time.
        """
        with self._guarded("maintain"):
            if self._closed:
                return
            if not self._queue.is_open:
                self._writer.start()
            self._queue.limit()
            self._queue.delete_shipped()
            self._do_what_is_due()

    def seal(self) -> None:
        """Seal the open batch, so that everything can be shipped. Raises `SpoolError`: the disk refuses."""
        with self._guarded("seal a segment in"):
            self._writer.announce()
            self._seal()

    def next_parcel(self) -> Parcel | None:
        """Give the oldest sealed batch for shipping; None = none waits.

        It stays in the spool until `acknowledge` or `reject`; `release` gives it back. Raises `SpoolError`: it
        cannot be read.
        """
        with self._guarded("read"):
            for batch in self._queue.sealed:
                lines, damaged = self._queue.lines(batch.number)
                if damaged:
                    self._writer.corrupt_segments += 1
                    self._writer.give_up(damaged, Cause.CORRUPT)
                    _LOG.error("spool: dropped damaged records", extra={"records": len(damaged)})
                if lines:
                    self._writer.in_flight = batch.number
                    payload = b"".join(line + b"\n" for line in lines)
                    return Parcel(self._queue.batches[batch.number], payload)
            return None

    def acknowledge(self, parcel: Parcel) -> None:
        """Forget a segment that the sink has.

        Raises `SpoolError`: the disk fails. On a full one it is deleted later; only a kill before that ships it again.
        """
        with self._guarded("forget a shipped segment in"):
            self._writer.in_flight = None
            if self._has(parcel):
                self._queue.remove(parcel.segment.number)
                self._is_dirty = True

    def release(self) -> None:
        """Give back what was taken; it is next again."""
        with self._mutex:
            self._writer.in_flight = None

    def reject(self, parcel: Parcel) -> None:
        """Never ship a segment again that the sink will never take; it stays for inspection until room is needed.

        Raises `SpoolError`: it cannot be marked; it will be tried again.
        """
        with self._guarded("reject a segment in"):
            self._writer.in_flight = None
            if self._has(parcel):
                number = parcel.segment.number
                change = partial(self._queue.reject, number)
                self._writer.forget(change, _account_of(parcel), Cause.REJECTED, {number})

    def stats(self) -> SpoolStats:
        """Count what is there."""
        with self._mutex:
            every, writer = self._queue.batches.values(), self._writer
            waiting = [x for x in every if x.records and not x.is_rejected]
            return SpoolStats(
                records=sum(x.records for x in waiting), bytes=self._queue.used_bytes(), segments=len(waiting),
                oldest_at_us=min((x.oldest_at_us for x in waiting), default=None), dropped=dict(writer.dropped),
                corrupt_segments=writer.corrupt_segments, write_failures=writer.write_failures,
                aside=self._queue.aside + sum(x.is_rejected for x in every),
            )  # fmt: skip

    def close(self) -> None:
        """Seal what is open and let another agent have the directory; safe to call twice.

        Raises `SpoolError`: the disk refuses to seal; the directory is let go all the same, and the next start
        seals what is there.
        """
        with self._mutex:
            if self._closed:
                return
            try:
                if self._queue.is_open:
                    self.seal()
            finally:
                self._closed = True
                self._queue.close()
                self._home.close()

    def __enter__(self) -> Self:
        """Use as a context manager."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close."""
        self.close()

    @contextmanager
    def _open(self, what: str) -> Iterator[None]:
        with self._guarded(what):
            if not self._queue.is_open and not self._closed:
                self._writer.start()
            yield

    @contextmanager
    def _guarded(self, what: str) -> Iterator[None]:
        """Keep other threads out, and turn the database's errors into the spool's; damage sets the database aside."""
        with self._mutex:
            try:
                yield
            except StoreError as error:
                why, advice = f"cannot {what} spool {self.directory}: {error}", "free or repair its volume"
                if isinstance(error, DamagedError):
                    advice = "it was set aside, check its volume"
                    try:
                        self._writer.start_over(error)
                    except StoreError as again:
                        advice = f"cannot start again: {again}"
                raise SpoolError(f"{why}; {advice}") from error

    def _has(self, parcel: Parcel) -> bool:
        """Return whether a segment is still there: damage may have taken it while it was on its way."""
        return self._queue.batches.get(parcel.segment.number) is parcel.segment

    def _do_what_is_due(self) -> None:
        self._is_dirty |= bool(self._writer.owed)
        self._writer.announce()
        now_s = self._clock.monotonic_s()
        if self._is_seal_due(now_s):
            self._seal()
        elif self._is_dirty and now_s - self._synced_s >= SYNC_EVERY_S:
            self._checkpoint()

    def _is_seal_due(self, now_s: float) -> bool:
        batch = self._queue.batches.get(self._queue.number)
        if batch is None:
            return False
        aged = now_s - self._opened_s >= self._limits.seal_age_s
        return batch.size_bytes >= self._limits.seal_bytes or (
            aged and len(self._queue.sealed) < AGED_BACKLOG
        )

    def _seal(self) -> None:
        if self._queue.number in self._queue.batches:
            self._queue.number += 1
            self._checkpoint()

    def _checkpoint(self) -> None:
        self._synced_s = self._clock.monotonic_s()  # first, so that a full disk is not asked at every append
        with suppress(NoRoomError):  # committed is committed; until there is room a power cut may lose it
            self._queue.database.checkpoint()
            self._is_dirty = False


def _account_of(parcel: Parcel) -> Account:
    account: Account = {}
    for line in parcel.payload.splitlines():
        data = json.loads(line)["data"]
        drops.add_record(account, data["boot_id"], data["sequence"], data["kind"], data)
    return account
