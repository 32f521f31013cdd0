"""Writes a spool's records, makes room for them, and announces what that costs. No lock, no clockwork: see `spool`."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Mapping
from functools import partial

from agent.clock import Clock
from agent.contract.codec import Encoder
from agent.contract.events import Origin, Record
from agent.errors import SpoolError, SpoolFullError
from agent.ship import drops, priority
from agent.ship.batches import Batch
from agent.ship.database import (
    PAGE_BYTES,
    DamagedError,
    NoRoomError,
    OtherFormatError,
    StoreError,
    last_checkpoint,
)
from agent.ship.drops import Account, Cause, Key, Span
from agent.ship.stats import Counters
from agent.ship.storage import OTHER_FORMAT_NAME, Storage

_LOG = logging.getLogger(__name__)
COMPLAIN_EVERY_S = 60.0
_TRIES = 8
_RANGES = "SELECT boot_id, min(first), max(coalesce(last, first)) FROM batches GROUP BY boot_id"


class Writer:
    """Puts records into a storage; its owner serialises the calls."""

    def __init__(self, storage: Storage, origin: Origin, clock: Clock) -> None:
        """Prepare; nothing is opened.

        Args:
            storage: Where to.
            origin: Who speaks.
            clock: Times of drop records and of complaints.
        """
        self._storage, self._origin, self._clock = storage, origin, clock
        self._encoder = Encoder(origin)
        self._to_announce: Account = {}
        self._complain_s = float("-inf")
        self._next_sequence = 1
        self.is_started = False
        """Whether the database is open."""

        self.counters = Counters()
        self.in_flight: Batch | None = None
        """On its way to the sink: it stays, whatever room is needed."""

    @property
    def owes(self) -> bool:
        """Whether losses wait to be announced."""
        return bool(self._to_announce)

    def start(self) -> None:
        """Open the database, or a new one in the place of one that is damaged or of another format.

        Raises:
            StoreError: the disk refuses, or has no room.
        """
        if not self._storage.is_open:
            try:
                self._storage.open()
            except OtherFormatError as error:
                self._set_other_format_aside(error)
                self._storage.open()
            except DamagedError as error:
                self._set_aside(self._ranges(), error)
                self._storage.open()
        self.is_started = True

    def put(self, record: Record) -> int:
        """Stamp a record with the next sequence and write it, with room made for it.

        Raises:
            ContractError: the record breaks the contract; nothing happened.
            SpoolFullError: nothing that ranks as low or lower is left to be given up; the loss will be announced.
            SpoolError: the disk refuses; the loss will be announced.
        """
        line = self._encoded(record)
        try:
            if len(line) > self._storage.shares.largest_record_bytes:
                raise SpoolFullError(
                    f"a record of {len(line)} bytes is too large for the spool; raise its cap"
                )
            for _ in range(_TRIES):
                try:
                    self._storage.database.relieve()
                    return self._write(record, line)
                except NoRoomError as error:
                    self._make_room(len(line), priority.rank_of(record.kind.value), error)
                except DamagedError as error:
                    self.start_over(error)
                line = self._encoded(record)  # announcements may have taken its sequence
            raise SpoolError(
                f"cannot write to spool {self._storage.directory}: no room can be made; free its volume"
            )
        except SpoolFullError:
            self._lose(record, Cause.CAP)
            raise
        except (SpoolError, StoreError) as error:
            self.counters.write_failures += 1
            self._lose(record, Cause.WRITE_FAILED)
            if isinstance(error, SpoolError):
                raise
            raise SpoolError(
                f"cannot write to spool {self._storage.directory}: {error}; free or repair its volume"
            ) from error

    def announce(self) -> None:
        """Write what was given up as drop records; what cannot be written now waits for the next time."""
        waiting, self._to_announce = self._to_announce, {}
        try:
            with self._storage.announcing():
                for key in sorted(waiting):
                    self._write_announcement(key, waiting[key])
                    del waiting[key]
        except StoreError as error:
            _LOG.warning("spool: cannot announce a loss yet", extra={"reason": str(error)})
        for key, span in waiting.items():
            drops.add(self._to_announce, key, span)

    def give_up(self, account: Mapping[Key, Span], cause: Cause) -> None:
        """Count what is lost and remember to announce it."""
        self._count(account)
        drops.add_all(self._to_announce, account, cause)

    def forget(self, action: Callable[[], None], lost: Account, cause: Cause) -> None:
        """Do what loses records, in one transaction with its announcement if there is room for that.

        Raises:
            StoreError: it is not done.
        """
        try:
            self._storage.database.relieve()
            self._forget(action, lost, cause)
        except NoRoomError:
            self.with_room(action)
            self.give_up(lost, cause)

    def with_room(self, action: Callable[[], None]) -> None:
        """Do what makes the spool smaller, on a full disk with the help of the reserve.

        Raises:
            StoreError: it is not done.
        """
        try:
            self._storage.database.relieve()
            action()
        except NoRoomError:
            if not self._storage.make_disk_room():
                raise
            action()
        self._storage.hold_reserve()

    def start_over(self, error: DamagedError) -> None:
        """Set a database aside that turned out to be damaged, and go on with a new one.

        Raises:
            StoreError: the disk refuses.
        """
        lost: Account = {}
        for batch in self._storage.queue.batches:
            if batch.records and not batch.is_rejected:
                drops.add(
                    lost,
                    Key(batch.boot_id, drops.UNKNOWN_KIND, ""),
                    Span(batch.records, batch.first, batch.last),
                )
        self.in_flight, self.is_started = None, False
        self._set_aside(lost, error)
        self._storage.open()
        self.is_started = True

    def _encoded(self, record: Record) -> bytes:
        return self._encoder.encode(record, self._next_sequence).encode("ascii")

    def _write(self, record: Record, line: bytes) -> int:
        sequence = self._next_sequence
        batch = self._origin.pod_uid, self._origin.boot_id
        self._storage.queue.append(batch, sequence, record.kind.value, record.observed_at_us, line)
        self._next_sequence += 1
        return sequence

    def _write_announcement(self, key: Key, span: Span) -> None:
        record = drops.announcement(key, span, self._clock.now_us())
        self._write(record, self._encoded(record))

    def _lose(self, record: Record, cause: Cause) -> None:
        """Use up the sequence of a record that could not be written, so that the gap shows it."""
        lost: Account = {}
        drops.add_record(lost, self._origin.boot_id, self._next_sequence, record.kind.value, record.body)
        self._next_sequence += 1
        self.give_up(lost, cause)

    def _count(self, account: Mapping[Key, Span]) -> None:
        for kind, count in drops.own_counts(account).items():
            self.counters.dropped[kind] = self.counters.dropped.get(kind, 0) + count

    def _make_room(self, line_bytes: int, rank: int, error: NoRoomError) -> None:
        """Give up what is missed least: some more than needed, so that it is not for each record.

        Raises:
            SpoolFullError: the cap is reached and nothing of this rank or below is left.
            StoreError: the disk is full, and nothing can be given up on it.
        """
        capped = self._storage.is_at_limit(line_bytes)
        if not capped and not self._storage.make_disk_room():
            raise error
        need_bytes = max(2 * line_bytes, self._storage.shares.seal_bytes // 4, 4 * PAGE_BYTES)
        gave = False
        for attempt in range(_TRIES):
            try:
                gave = self._give_up_some(need_bytes, rank)
                break
            except NoRoomError:  # it freed too little for its announcement, or the disk is full as well
                if attempt and not self._storage.make_disk_room():
                    raise
                need_bytes *= 2
        self._storage.hold_reserve()
        if gave:
            return
        if capped:
            raise SpoolFullError("spool is full and nothing may be dropped for this record; raise its cap")
        raise error

    def _give_up_some(self, need_bytes: int, at_most: int) -> bool:
        """Give up what was announced already, or else the oldest records of the lowest rank; False = there are none."""
        if self._storage.drop_aside():
            return True
        queue = self._storage.queue
        for batch in queue.batches:
            if batch.is_rejected:
                queue.remove(batch)
                return True
        for rank in range(at_most + 1):
            is_folding = rank == priority.FOLDED
            given_up = queue.given_up(rank, math.inf if is_folding else need_bytes, self.in_flight)
            if not given_up.batches or (is_folding and not drops.is_worth_folding(given_up.account)):
                continue
            self._forget(partial(queue.give_up, given_up, self.in_flight), given_up.account, Cause.CAP)
            self._complain()
            return True
        return False

    def _forget(self, action: Callable[[], None], lost: Account, cause: Cause) -> None:
        account: Account = dict(self._to_announce)
        drops.add_all(account, lost, cause)
        sequence = self._next_sequence
        try:
            with self._storage.announcing(), self._storage.queue.all_or_nothing():
                action()
                for key in sorted(account):
                    self._write_announcement(key, account[key])
        except BaseException:
            self._next_sequence = sequence
            raise
        self._to_announce = {}
        self._count(lost)

    def _complain(self) -> None:
        if self._clock.monotonic_s() >= self._complain_s:
            self._complain_s = self._clock.monotonic_s() + COMPLAIN_EVERY_S
            _LOG.warning("spool: no room left, records are dropped", extra={"dropped": self.counters.dropped})

    def _ranges(self) -> Account:
        """Return what a damaged database held, as far as it can be read."""
        try:
            (rows,) = last_checkpoint(self._storage.database.path, (_RANGES,))
        except StoreError:
            rows = [("unknown", 0, 0)]
        return {
            Key(str(boot), drops.UNKNOWN_KIND, ""): Span(0, int(first), int(last))
            for boot, first, last in rows
        }

    def _set_aside(self, lost: Account, error: DamagedError) -> None:
        self._storage.set_aside()
        self.counters.corrupt_segments += 1
        self.give_up(lost, Cause.CORRUPT)
        _LOG.error("spool: set a damaged database aside and began a new one", extra={"reason": str(error)})

    def _set_other_format_aside(self, error: OtherFormatError) -> None:
        self._storage.set_aside(OTHER_FORMAT_NAME)
        self.give_up({Key("unknown", drops.UNKNOWN_KIND, ""): Span(0, 0, 0)}, Cause.OTHER_FORMAT)
        _LOG.error(
            "spool: set a database of another format aside, began a new one", extra={"reason": str(error)}
        )
