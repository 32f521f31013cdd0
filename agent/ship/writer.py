"""Writes a spool's records, makes room for them, and announces what that costs. No lock, no clockwork: see `spool`."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterable, Mapping
from functools import partial

from agent.clock import Clock
from agent.contract.codec import Encoder
from agent.contract.events import Origin, Record
from agent.errors import SpoolError, SpoolFullError
from agent.ship import drops
from agent.ship.database import DamagedError, NoRoomError, OtherFormatError, StoreError
from agent.ship.drops import Account, Cause, DropKey, Span
from agent.ship.queue import Queue, Stored
from agent.ship.values import Limits, rank_of

_LOG = logging.getLogger(__name__)
COMPLAIN_EVERY_S = 60.0
_TRIES = 8
_LEAST_ROOM_BYTES = 16 * 1024


class Writer:
    """Puts records into a queue; its owner serialises the calls. Raises `StoreError` where the disk refuses."""

    def __init__(self, queue: Queue, origin: Origin, clock: Clock, limits: Limits) -> None:
        self._queue, self._origin, self._clock, self._limits = queue, origin, clock, limits
        self._encoder = Encoder(origin)
        self._complain_s = float("-inf")
        self._next_sequence = 1
        self.owed: Account = {}  # losses that wait to be announced
        self.dropped: dict[str, int] = {}
        self.corrupt_segments = self.write_failures = 0
        self.in_flight: int | None = None
        """Batch that is on its way to the sink: it stays, whatever room is needed."""

    def start(self) -> None:
        """Open the database, or a new one in the place of one that cannot be used."""
        try:
            self._queue.open()
        except DamagedError as error:
            self.start_over(error)

    def start_over(self, error: DamagedError) -> None:
        """Set a database aside that cannot be used, and go on with a new one; what it held is announced as lost."""
        lost: Account = {}
        for batch in self._queue.batches.values():
            if not batch.is_rejected:
                span = Span(batch.records, batch.first, batch.last)
                drops.add(lost, DropKey(batch.boot_id, drops.UNKNOWN_KIND, ""), span)
        if not self._queue.is_open:  # no one can say what it held
            lost = {DropKey("unknown", drops.UNKNOWN_KIND, ""): Span(0, 0, 0)}
        self.in_flight = None
        is_other = isinstance(error, OtherFormatError)
        self.corrupt_segments += not is_other
        self._count(lost)
        drops.add_all(self.owed, lost, Cause.OTHER_FORMAT if is_other else Cause.CORRUPT)
        self._queue.set_aside(str(error))

    def put(self, record: Record) -> int:
        """Stamp a record with the next sequence and write it, with room made for it.

        Raises `ContractError`: the record breaks the contract; nothing happened. Raises `SpoolFullError`: nothing
        that ranks as low or lower is left to be given up; the loss will be announced. Raises `SpoolError`: the disk
        refuses; the loss will be announced.
        """
        try:
            return self._put(record)
        except SpoolFullError:
            self._lose(record, Cause.CAP)
            raise
        except StoreError as error:
            self.write_failures += 1
            self._lose(record, Cause.WRITE_FAILED)
            where = self._queue.database.path.parent
            raise SpoolError(f"cannot write to spool {where}: {error}; free or repair its volume") from error

    def announce(self) -> None:
        """Write what was lost as drop records; what finds no room waits for the next time."""
        if self.owed:
            self.forget(lambda: None, {}, Cause.CAP)

    def forget(
        self, change: Callable[[], None], lost: Account, cause: Cause, batches: Iterable[int] = ()
    ) -> None:
        """Do what loses records, in one transaction with its announcement; without room for that it comes later."""
        account: Account = dict(self.owed)
        drops.add_all(account, lost, cause)
        try:
            with self._queue.database.transaction():
                change()
                for sequence, key in enumerate(sorted(account), self._next_sequence):
                    record = drops.announcement(key, account[key], self._clock.now_us())
                    self._queue.insert(record, sequence, self._line(record, sequence))
            self._next_sequence += len(account)
            self.owed = {}
        except NoRoomError:
            with self._queue.database.transaction():
                change()
            self.owed = account
        self._count(lost)
        self._queue.refresh({*batches, self._queue.number})

    def give_up(self, records: list[Stored], cause: Cause) -> None:
        """Delete records and announce it."""
        lost: Account = {}
        for x in records:
            if x.batch in self._queue.batches:  # else it was shipped and could not be deleted then
                drops.add_record(lost, x.boot_id, x.sequence, x.kind, _body(x.line))
        self.forget(partial(self._queue.delete, records), lost, cause, {x.batch for x in records})

    def _put(self, record: Record) -> int:
        for attempt in range(_TRIES):
            line = self._line(record, self._next_sequence)  # announcements may have taken its sequence
            if len(line) > self._limits.log_bytes // 2:  # the log would outgrow its share
                raise SpoolFullError(
                    f"a record of {len(line)} bytes is too large for the spool; raise its cap"
                )
            try:
                try:
                    self._queue.append(record, self._next_sequence, line)
                except NoRoomError:
                    self._make_room(len(line), rank_of(record.kind.value), attempt)
                    continue
            except DamagedError as error:
                self.start_over(error)
                continue
            self._next_sequence += 1
            return self._next_sequence - 1
        raise NoRoomError("no room can be made")

    def _line(self, record: Record, sequence: int) -> bytes:
        return self._encoder.encode(record, sequence).encode("ascii")

    def _make_room(self, line_bytes: int, rank: int, attempt: int) -> None:
        """Give up what is missed least: some more than needed, so that it is not for each record.

        Raises `SpoolFullError`: the cap is reached and nothing of this rank or below is left. Raises `StoreError`:
        the disk is full, and nothing can be given up on it.
        """
        is_capped = self._queue.database.is_at_limit(line_bytes)
        if not is_capped and not attempt:
            self._queue.database.checkpoint()  # the log begins again in the room that it has
            return
        if self._queue.drop_aside():
            return
        for batch in self._queue.batches.values():
            if batch.is_rejected:
                change = partial(self._queue.delete_batch, batch.number)
                self.forget(change, {}, Cause.REJECTED, {batch.number})
                return
        need_bytes = max(2 * line_bytes, self._limits.seal_bytes // 4, _LEAST_ROOM_BYTES)
        records = self._queue.lowest(rank, need_bytes, self.in_flight)
        if records:
            self.give_up(records, Cause.CAP)
            self._complain()
        elif is_capped:
            raise SpoolFullError("spool is full and nothing may be dropped for this record; raise its cap")
        else:
            raise NoRoomError("database or disk is full")

    def _lose(self, record: Record, cause: Cause) -> None:
        """Use up the sequence of a record that could not be written, so that the gap shows it."""
        lost: Account = {}
        drops.add_record(lost, self._origin.boot_id, self._next_sequence, record.kind.value, record.body)
        self._next_sequence += 1
        self._count(lost)
        drops.add_all(self.owed, lost, cause)

    def _count(self, account: Mapping[DropKey, Span]) -> None:
        for kind, count in drops.own_counts(account).items():
            self.dropped[kind] = self.dropped.get(kind, 0) + count

    def _complain(self) -> None:
        if self._clock.monotonic_s() >= self._complain_s:
            self._complain_s = self._clock.monotonic_s() + COMPLAIN_EVERY_S
            _LOG.warning("spool: no room left, records are dropped", extra={"dropped": self.dropped})


def _body(line: bytes | None) -> Mapping[str, object]:
    """Read what an announcement said; a torn one says nothing."""
    try:
        return dict(json.loads(line)["data"]) if line else {}
    except (ValueError, KeyError, TypeError):
        return {}
