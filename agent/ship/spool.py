"""The spool: records on the agent's own volume until a sink has acknowledged them.

Durability: a record is in the kernel's hands when `append` returns, so that killing the agent loses nothing;
it is synced to the disk within about a second (by the next `append` or `maintain`) and at the latest when its
segment is sealed. Only sealed segments are shipped.

Cap: when the directory would outgrow `cap_bytes` or `cap_files`, the backlog gives up the least missed (see
`backlog`), and `drop` records announce what goes before it goes. What ranks below everything that is left is refused
itself, and announced. A disk that is full before the cap is reached counts as a cap; so that room can be made on it,
two segments' worth are held in reserve beside the cap.
"""

from __future__ import annotations

import errno
import logging
import threading
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Self

from agent.clock import Clock
from agent.contract.codec import encode
from agent.contract.events import Origin, Record
from agent.errors import SpoolError, SpoolFullError
from agent.ship import drops, priority
from agent.ship.backlog import Backlog
from agent.ship.drops import Account, Cause, Key, Span
from agent.ship.frames import FRAME_OVERHEAD_BYTES
from agent.ship.home import SpoolHome
from agent.ship.limits import Limits
from agent.ship.recovery import recover
from agent.ship.reserve import Reserve
from agent.ship.segments import (
    BAD,
    REJECTED,
    SAFE_BOOT_ID,
    CorruptSegmentError,
    OpenSegment,
    Parcel,
    Segment,
    read_lines,
)
from agent.ship.stats import Counters, SpoolStats, stats_of

_LOG = logging.getLogger(__name__)
SYNC_EVERY_S = 1.0
COMPLAIN_EVERY_S = 60.0
AGED_BACKLOG = 16
"""While so many segments wait, age seals no more: a sink that is away for days must not cost a file every 15 s."""

_NO_ROOM = frozenset({errno.ENOSPC, errno.EDQUOT})


class Spool:
    """Records in, sealed segments out. Safe for one thread that appends and one that ships."""

    def __init__(
        self,
        directory: Path,
        origin: Origin,
        *,
        clock: Clock,
        limits: Limits = Limits(),  # noqa: B008 - immutable
        state_directory: Path | None = None,
    ) -> None:
        """Take the directory and bring it in order.

        Args:
            directory: The spool's own directory; made if it is not there.
            origin: Who speaks; every record is stamped with it.
            clock: Monotonic time for sealing and syncing, wall clock for drop records.
            limits: Sizes.
            state_directory: What is audited; the spool must not lie in it.

        Raises:
            SpoolError: the directory cannot be used; the message says why and what to do.
        """
        if not SAFE_BOOT_ID.fullmatch(origin.boot_id):
            raise SpoolError(
                f"boot id {origin.boot_id!r} cannot be part of a file name; use letters and digits"
            )
        limits.check()
        self._origin, self._clock, self._limits = origin, clock, limits
        self._mutex = threading.RLock()
        self._home = SpoolHome(directory, state_directory)
        try:
            found = recover(directory)
        except OSError as error:
            self._home.close()
            raise SpoolError(f"cannot bring spool {directory} in order: {error}; check its volume") from error
        self._home.stamp()
        self._reserve = Reserve(directory, 2 * limits.seal_bytes)
        self._backlog = Backlog(found.segments, found.aside)
        self._counters = Counters(found.torn_tails, found.corrupt_segments)
        self._to_announce: Account = {}
        self._complain_s = float("-inf")
        self._give_up(found.lost, Cause.CORRUPT)
        last = max(self._home.last_sequence(origin.boot_id), found.last_sequence.get(origin.boot_id, 0))
        self._next_sequence = last + 1
        self._open: OpenSegment | None = None
        self._closed = False

    def append(self, record: Record) -> int:
        """Stamp a record with the next sequence and keep it.

        Args:
            record: What to keep.

        Returns:
            Its sequence.

        Raises:
            ContractError: the record breaks the contract; nothing happened.
            SpoolError: the disk refuses. If the record is lost, its sequence is used up and its loss is
                announced as soon as the disk accepts again; the caller may go on.
        """
        with self._mutex:
            try:
                sequence = self._put(record)
            except SpoolFullError:
                self._lose(record, Cause.CAP)
                raise
            except SpoolError:
                self._counters.write_failures += not self._closed
                self._lose(record, Cause.WRITE_FAILED)
                raise
            self._announce()
            self._sync_if_due()
            self._seal_if_due()
            return sequence

    def maintain(self) -> None:
        """Do what is due by the clock: announce losses, sync, seal by age.

        Raises:
            SpoolError: the disk refuses; it is tried again next time.
        """
        with self._mutex:
            self._reserve.hold()
            self._announce()
            self._sync_if_due()
            self._seal_if_due()

    def seal(self) -> None:
        """Seal the open segment, so that everything can be shipped.

        Raises:
            SpoolError: the disk refuses.
        """
        with self._mutex:
            self._announce()
            self._seal()

    def take(self) -> Parcel | None:
        """Get the oldest sealed segment for shipping; None = none waits.

        It stays in the spool until `acknowledge` or `reject`; `release` gives it back.
        """
        with self._mutex:
            for segment in self._backlog.segments:
                try:
                    lines = read_lines(segment)
                except (OSError, CorruptSegmentError) as error:
                    extra = {"segment": segment.name, "reason": str(error)}
                    _LOG.error("spool: set a corrupt segment aside", extra=extra)
                    self._counters.corrupt_segments += 1
                    self._set_aside(segment, BAD, Cause.CORRUPT)
                    continue
                self._backlog.hold(segment)
                return Parcel(segment, b"".join(line + b"\n" for line in lines))
            return None

    def acknowledge(self, parcel: Parcel) -> None:
        """Let go of a segment that the sink has.

        Raises:
            SpoolError: the file cannot be deleted; it will be shipped again, which is harmless.
        """
        with self._mutex:
            self._backlog.hold(None)
            try:
                self._backlog.remove(parcel.segment)
            except OSError as error:
                path = parcel.segment.path
                raise SpoolError(
                    f"cannot delete {path} after shipping: {error.strerror}; mend its volume"
                ) from error

    def release(self) -> None:
        """Give back what was taken; it is next again."""
        with self._mutex:
            self._backlog.hold(None)

    def reject(self, parcel: Parcel) -> None:
        """Set a segment aside that the sink will never take."""
        with self._mutex:
            self._backlog.hold(None)
            self._set_aside(parcel.segment, REJECTED, Cause.REJECTED)

    def stats(self) -> SpoolStats:
        """Count what is there."""
        with self._mutex:
            return stats_of(self._counters, self._backlog, self._open)

    def close(self) -> None:
        """Seal what is open and let another agent have the directory; safe to call twice.

        Raises:
            SpoolError: the disk refuses to seal; the directory is let go all the same, and the next start
                seals what is whole.
        """
        with self._mutex:
            if self._closed:
                return
            try:
                self.seal()
            finally:
                self._closed = True
                self._home.close()

    def __enter__(self) -> Self:
        """Use as a context manager."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close."""
        self.close()

    def _put(self, record: Record) -> int:
        """Write one record, with room made for it; only a success uses up its sequence."""
        if self._closed:
            raise SpoolError(f"spool {self._home.directory} is closed")
        rank, sequence, line = priority.rank_of(record.kind.value), self._next_sequence, self._encoded(record)
        try:
            self._make_room(len(line), rank)
            if self._next_sequence != sequence:
                line = self._encoded(record)  # announcements of what made room took its sequence
            try:
                return self._write(record, line)
            except OSError as error:
                if error.errno not in _NO_ROOM or not self._make_room_on_full_disk(len(line), rank):
                    raise
                return self._write(record, self._encoded(record))
        except OSError as error:
            where = self._home.directory
            raise SpoolError(f"cannot write to spool {where}: {error}; free or mend its volume") from error

    def _encoded(self, record: Record) -> bytes:
        return encode(record, self._origin, self._next_sequence).encode("ascii")

    def _write(self, record: Record, line: bytes) -> int:
        sequence = self._next_sequence
        self._continue_at(sequence).append(line, record)
        self._next_sequence += 1
        return sequence

    def _lose(self, record: Record, cause: Cause) -> None:
        """Use up the sequence of a record that could not be written, so that the hole tells of it."""
        if self._closed:
            return
        lost: Account = {}
        drops.add_record(lost, self._origin.boot_id, self._next_sequence, record.kind.value, record.body)
        self._next_sequence += 1
        self._give_up(lost, cause)

    def _continue_at(self, sequence: int) -> OpenSegment:
        opened = self._open
        if opened is not None and not opened.finished and opened.next_sequence == sequence:
            return opened
        self._seal()  # after a failed write the sequence has a hole, and a segment never has one
        origin, now_s = self._origin, self._clock.monotonic_s()
        self._open = OpenSegment.create(self._home.directory, origin.pod_uid, origin.boot_id, sequence, now_s)
        return self._open

    def _announce(self) -> None:
        """Write what was given up as drop records; what cannot be written now waits for the next time."""
        if self._closed:
            return
        waiting, self._to_announce = self._to_announce, {}
        for key in sorted(waiting):
            record = drops.announcement(key, waiting[key], self._clock.now_us())
            line = self._encoded(record)
            try:
                if self._has_room(len(line)):
                    self._write(record, line)
                    continue
            except (SpoolError, OSError) as error:
                _LOG.warning("spool: cannot announce a loss yet", extra={"reason": str(error)})
            drops.add(self._to_announce, key, waiting[key])

    def _has_room(self, line_bytes: int) -> bool:
        limits, opens_file = self._limits, self._open is None or self._open.finished
        files = self._backlog.files + (self._open is not None) + opens_file
        return (
            self._used_bytes() + line_bytes + FRAME_OVERHEAD_BYTES <= limits.cap_bytes
            and files <= limits.cap_files
        )

    def _sync_if_due(self) -> None:
        opened, now_s = self._open, self._clock.monotonic_s()
        if opened is None or not opened.dirty or now_s - opened.synced_s < SYNC_EVERY_S:
            return
        try:
            opened.sync(now_s)
        except OSError as error:
            raise SpoolError(f"cannot sync spool {self._home.directory}: {error}; mend its volume") from error

    def _seal_if_due(self) -> None:
        opened = self._open
        if opened is None:
            return
        limits = self._limits
        aged = self._clock.monotonic_s() - opened.opened_s >= limits.seal_age_s
        aged = aged and self._backlog.waiting < AGED_BACKLOG
        if aged or opened.finished or opened.size_bytes >= limits.seal_bytes:
            self._seal()

    def _seal(self) -> None:
        opened = self._open
        if opened is None:
            return
        try:
            if opened.records == 0:
                opened.discard()
            else:
                self._home.write_position(opened.boot_id, opened.next_sequence - 1)
                self._backlog.add(opened.seal())
        except OSError as error:
            raise SpoolError(f"cannot seal {opened.path}: {error}; free or mend its volume") from error
        self._open = None

    def _make_room(self, line_bytes: int, rank: int) -> None:
        """Give up until the record fits and one segment's worth is left, for announcements.

        Raises:
            SpoolFullError: nothing of this rank or below is left to give up.
            OSError: the disk refuses to delete.
        """
        while True:
            limits, opens_file = self._limits, self._open is None or self._open.finished
            need_bytes = self._used_bytes() + line_bytes + limits.seal_bytes - limits.cap_bytes
            need_files = self._backlog.files + 1 + opens_file - limits.cap_files
            if need_bytes <= 0 and need_files <= 0:
                return
            if not self._give_up_some(max(0, need_bytes), need_files, rank):
                raise SpoolFullError(
                    "spool is full and nothing may be dropped for this record; raise its cap"
                )

    def _give_up_some(self, need_bytes: int, need_files: int, rank: int, *, full_disk: bool = False) -> bool:
        """Announce what is missed least, then delete it; some more than needed, so that it is not for each record."""
        victims = self._backlog.victims(
            need_bytes + self._limits.seal_bytes // 4 if need_bytes else 0,
            need_files,
            rank,
            whole_files=full_disk,
        )
        for victim in victims:
            self._give_up(victim.lost, Cause.CAP)
        if not full_disk:
            self._announce()  # before the deletion: a kill in between tells of a loss that is none
        for victim in victims:
            self._give_up(self._backlog.carry_out(victim), Cause.CAP)
        if victims and self._clock.monotonic_s() >= self._complain_s:
            self._complain_s = self._clock.monotonic_s() + COMPLAIN_EVERY_S
            _LOG.warning(
                "spool: no room left, records are dropped", extra={"dropped": self._counters.dropped}
            )
        return bool(victims)

    def _make_room_on_full_disk(self, line_bytes: int, rank: int) -> bool:
        """Give up by the same order, in the room of the reserve; without it only whole files can go."""
        if not self._reserve.release():
            return self._give_up_some(line_bytes, 0, min(rank, priority.HIGHEST - 1), full_disk=True)
        gave = False
        while self._give_up_some(line_bytes + 2 * self._limits.seal_bytes, 0, rank):
            gave = True
            if self._reserve.hold():
                break
        return gave

    def _set_aside(self, segment: Segment, state: str, cause: Cause) -> None:
        self._backlog.set_aside(segment, state)
        self._give_up(segment.account, cause)

    def _give_up(self, account: Mapping[Key, Span], cause: Cause) -> None:
        """Count what is lost and remember to announce it."""
        for kind, count in drops.own_counts(account).items():
            self._counters.dropped[kind] = self._counters.dropped.get(kind, 0) + count
        drops.add_all(self._to_announce, account, cause)

    def _used_bytes(self) -> int:
        return self._backlog.bytes + (self._open.size_bytes if self._open is not None else 0)
