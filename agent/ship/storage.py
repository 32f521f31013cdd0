"""What a spool has on its volume: the database, a reserve, and what was set aside; all of it stays below the cap.

The database does not grow while the disk has no room for the reserve. When the disk is full the reserve is let go: its
room takes what the log still has to bring into the database, and from then on the database lives in the pages that it
has.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from agent.ship.database import (
    PAGE_BYTES,
    WAL_SUFFIX,
    Database,
    NoRoomError,
    OtherFormatError,
    StoreError,
    last_checkpoint,
)
from agent.ship.limits import Limits, share_out
from agent.ship.queue import Queue
from agent.ship.reserve import Reserve
from agent.ship.tables import FORMAT

_LOG = logging.getLogger(__name__)
DATABASE_NAME, BAD_NAME, OTHER_FORMAT_NAME = "spool.db", "spool.db.bad", "spool.db.other-format"
_ASIDE_NAMES = (BAD_NAME, OTHER_FORMAT_NAME)
_ANNOUNCEMENTS_BYTES = 8 * PAGE_BYTES
"""Kept free below the limit: a refused record is announced though nothing was given up for it."""


class Storage:
    """The files of one spool directory; open, or waiting for room to be opened in."""

    def __init__(self, directory: Path, limits: Limits) -> None:
        """Share the room out and take the reserve.

        Args:
            directory: Exists, and is this process's own.
            limits: As configured.
        """
        self.directory, self._path = directory, directory / DATABASE_NAME
        self.shares = share_out(limits, _own_bytes(directory) + _free_bytes(directory))
        self._reserve = Reserve(directory, self.shares.reserve_bytes)
        self.database = Database(self._path, self.shares.log_bytes)
        self._queue: Queue | None = None
        self._size_bytes = 0

    @property
    def is_open(self) -> bool:
        """Whether records can be written."""
        return self._queue is not None

    @property
    def queue(self) -> Queue:
        """The records.

        Raises:
            StoreError: the database is not open.
        """
        if self._queue is None:
            raise StoreError("the database could not be opened")
        return self._queue

    @property
    def aside_files(self) -> int:
        """Number of databases that were set aside and are kept for inspection."""
        return sum(self._aside(name).exists() for name in _ASIDE_NAMES)

    def open(self) -> None:
        """Open the database.

        Raises:
            StoreError: it is damaged or of another format, or the disk refuses.
        """
        if why := other_format(self._path):
            raise OtherFormatError(why)
        try:
            self._open()
        except NoRoomError:
            if not self._reserve.release():
                raise
            self._open()

    def set_aside(self, name: str = BAD_NAME) -> None:
        """Move a database out of the way; the newest of a name is kept, if it leaves room for a new one.

        Args:
            name: What to call it.

        Raises:
            StoreError: the disk refuses.
        """
        self._queue = None
        self.database.close()
        try:
            for suffix in ("", WAL_SUFFIX):
                aside = self._aside(name, suffix)
                aside.unlink(missing_ok=True)
                with suppress(FileNotFoundError):
                    Path(f"{self._path}{suffix}").replace(aside)
        except OSError as error:
            raise StoreError(f"cannot set a database aside: {error}") from error
        if self._aside_bytes() > self.shares.database_bytes // 2:
            self.drop_aside()

    def drop_aside(self) -> bool:
        """Delete what was set aside; return whether there was anything."""
        if not self._aside_bytes():
            return False
        try:
            for path in self._all_aside():
                path.unlink(missing_ok=True)
            self._limit()
        except (OSError, StoreError) as error:
            _LOG.warning("spool: cannot delete a database that was set aside", extra={"reason": str(error)})
            return False
        return True

    def is_at_limit(self, line_bytes: int) -> bool:
        """Return whether the cap, not the disk, is what leaves no room.

        Raises:
            StoreError: the disk refuses.
        """
        return not self._reserve.lacks_room and self.database.free_bytes() < line_bytes + _ANNOUNCEMENTS_BYTES

    def make_disk_room(self) -> bool:
        """Let the reserve go and empty the log into the database; return whether that worked.

        Raises:
            StoreError: the disk refuses for another reason than room.
        """
        self._reserve.release()
        try:
            self.database.checkpoint()
            self._limit()
        except NoRoomError:
            return False
        return True

    def hold_reserve(self) -> bool:
        """Take the reserve again if there is room, so that the database may grow again; return whether it may.

        Raises:
            StoreError: the disk refuses.
        """
        if self._reserve.lacks_room:
            self._reserve.hold()
            if self.is_open:
                self._limit()
        return not self._reserve.lacks_room

    @contextmanager
    def announcing(self) -> Iterator[None]:
        """Allow what is kept free for announcements.

        Raises:
            StoreError: the disk refuses.
        """
        self._limit(_ANNOUNCEMENTS_BYTES)
        try:
            yield
        finally:
            with suppress(StoreError):
                self._limit()

    def size_bytes(self) -> int:
        """Return how much of the cap is in use; where the disk does not say, what it said last."""
        with suppress(StoreError):
            self._size_bytes = self.database.used_bytes() + self._aside_bytes()
        return self._size_bytes

    def close(self) -> None:
        """Close the database."""
        self._queue = None
        self.database.close()

    def _open(self) -> None:
        try:
            self.database.open()
            self._queue = Queue(self.database)
            self._limit()
        except StoreError:
            self._queue = None
            self.database.close()
            raise

    def _limit(self, more_bytes: int = 0) -> None:
        if not self._reserve.lacks_room:
            size_bytes = self.shares.database_bytes - _ANNOUNCEMENTS_BYTES + more_bytes - self._aside_bytes()
        else:
            size_bytes = self.database.file_bytes()
        self.database.limit(size_bytes)

    def _aside_bytes(self) -> int:
        return sum(path.stat().st_size for path in self._all_aside() if path.exists())

    def _all_aside(self) -> list[Path]:
        return [self._aside(name, suffix) for name in _ASIDE_NAMES for suffix in ("", WAL_SUFFIX)]

    def _aside(self, name: str, suffix: str = "") -> Path:
        return self.directory / f"{name}{suffix}"


def other_format(path: Path) -> str:
    """Say of which format a database is, if not of this agent's; empty = it is, or there is none. Changes nothing."""
    written = 0
    if path.exists():
        with suppress(StoreError):
            (((written,),),) = last_checkpoint(path, ("PRAGMA user_version",))
    return "" if written in (0, FORMAT) else f"it has format {written}, this statewarden knows {FORMAT}"


def _own_bytes(directory: Path) -> int:
    total = 0
    for path in directory.iterdir():
        with suppress(OSError):
            total += path.stat().st_size if path.is_file() else 0
    return total


def _free_bytes(directory: Path) -> int:
    volume = os.statvfs(directory)
    return volume.f_bavail * volume.f_frsize
