"""One SQLite file with its write-ahead log, and its errors as values of ours. Sole importer of sqlite3.

Why `synchronous=NORMAL`: a commit is then a write without a sync, so the kernel has it and `kill -9` loses nothing.
What a power cut may lose is bounded by `sync`, which the owner calls. A file that was cut off there is whole all the
same: the log's frames carry checksums, and an unfinished tail does not count.

Why `locking_mode=EXCLUSIVE`: there is one user. Without it the log's index would be a shared memory map on the same
volume, and a disk that turns read-only would end the agent by SIGBUS.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

PAGE_BYTES = 4096
FRAME_BYTES = PAGE_BYTES + 24
WAL_SUFFIX = "-wal"
SETTINGS = (
    "locking_mode=EXCLUSIVE",
    "journal_mode=WAL",
    "synchronous=NORMAL",
    "wal_autocheckpoint=0",
    "secure_delete=OFF",
    "temp_store=MEMORY",  # the root file system may be read-only
    "cache_size=-1024",
)
_DAMAGED = frozenset({sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB})
Row = tuple[Any, ...]


class StoreError(Exception):
    """The disk refuses."""


class NoRoomError(StoreError):
    """The page limit is reached, or the disk is full."""


class DamagedError(StoreError):
    """The file is no database, or not a whole one."""


class OtherFormatError(DamagedError):
    """The file is a database of another format than this agent's."""


class Database:
    """A connection that is open or not; its owner serialises the calls, whatever threads they come from."""

    def __init__(self, path: Path, wal_bytes: int) -> None:
        """Remember where; nothing is opened.

        Args:
            path: The file.
            wal_bytes: Size that the log keeps below; it is emptied at 3/8, so that a transaction may write that again.
        """
        self.path = path
        self._most_frames = wal_bytes * 3 // 8 // FRAME_BYTES
        self._frames = 0
        self._connection: sqlite3.Connection | None = None
        self._pages = 0

    @property
    def is_open(self) -> bool:
        """Whether there is a connection."""
        return self._connection is not None

    @property
    def has_log(self) -> bool:
        """Whether the log holds what the file does not."""
        return self._frames > 0

    def open(self) -> None:
        """Connect, make the file if needed, and check its structure.

        Raises:
            StoreError: says which of the three.

        Cost:
            Reads the file once.
        """
        try:
            # one owner, many threads: the spool's lock keeps them apart
            self._connection = sqlite3.connect(self.path, isolation_level=None, check_same_thread=False)
            for setting in SETTINGS:
                self.run(f"PRAGMA {setting}")
            ((found,),) = self.run("PRAGMA quick_check(1)")
            if found != "ok":
                raise DamagedError(str(found))
        except BaseException as error:
            self.close()
            if isinstance(error, sqlite3.Error):
                raise _ours(error) from error
            raise

    def close(self) -> None:
        """Disconnect; what is in the log goes into the file if the disk allows it."""
        connection, self._connection = self._connection, None
        if connection is not None:
            with suppress(sqlite3.Error):
                connection.close()

    def run(self, statement: str, values: tuple[object, ...] = ()) -> list[Row]:
        """Execute one statement and get all its rows.

        Raises:
            StoreError: it is not executed.
        """
        if self._connection is None:
            raise StoreError("the database is not open")
        try:
            return self._connection.execute(statement, values).fetchall()
        except sqlite3.Error as error:
            raise _ours(error) from error

    def each(self, statement: str, values: tuple[object, ...] = ()) -> Iterator[Row]:
        """Execute a query and get its rows one at a time.

        Raises:
            StoreError: it cannot be read on.
        """
        if self._connection is None:
            raise StoreError("the database is not open")
        cursor = self._connection.cursor()
        try:
            yield from cursor.execute(statement, values)
        except sqlite3.Error as error:
            raise _ours(error) from error
        finally:
            cursor.close()

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """All or nothing; inside another transaction, part of that one.

        Raises:
            StoreError: nothing.
        """
        if self._connection is not None and self._connection.in_transaction:
            yield
            return
        self.run("BEGIN IMMEDIATE")
        try:
            yield
            self.run("COMMIT")
        except BaseException:
            if self._connection is not None and self._connection.in_transaction:
                with suppress(sqlite3.Error):
                    self._connection.rollback()
            raise

    def wrote(self, size_bytes: int) -> None:
        """Count what was written to the log, estimated: a row is in a page, and now and then makes a second one."""
        self._frames += 2 + size_bytes // PAGE_BYTES

    def relieve(self) -> None:
        """Empty the log if it is due.

        Raises:
            StoreError: the log stays; what it holds is safe from a kill, but it may not grow any more.
        """
        if self._frames >= self._most_frames:
            self.checkpoint()

    def checkpoint(self) -> None:
        """Move what the log holds into the file, both synced; the log is written from its beginning again.

        Raises:
            StoreError: the log stays.
        """
        self.run("PRAGMA wal_checkpoint(PASSIVE)")
        self._frames = 0

    def sync(self) -> None:
        """Make every commit durable, by one sync of the log.

        Raises:
            StoreError: the disk refuses.
        """
        try:
            descriptor = os.open(f"{self.path}{WAL_SUFFIX}", os.O_RDWR | os.O_CLOEXEC)
            try:
                os.fdatasync(descriptor)
            finally:
                os.close(descriptor)  # SQLite holds no lock on the log that this would drop
        except OSError as error:
            raise StoreError(str(error)) from error

    def limit(self, size_bytes: int) -> None:
        """Let the file grow to so many bytes; it never shrinks, so it may be larger already.

        Raises:
            StoreError: the disk refuses.
        """
        ((self._pages,),) = self.run(f"PRAGMA max_page_count={max(1, size_bytes // PAGE_BYTES)}")

    def free_bytes(self) -> int:
        """Return how much can be written before the limit is reached.

        Raises:
            StoreError: the disk refuses.
        """
        return self._pages * PAGE_BYTES - self.used_bytes()

    def file_bytes(self) -> int:
        """Return the size of the file, with what the log will add to it.

        Raises:
            StoreError: the disk refuses.
        """
        ((pages,),) = self.run("PRAGMA page_count")
        return int(pages) * PAGE_BYTES

    def used_bytes(self) -> int:
        """Return how much of the file is in use.

        Raises:
            StoreError: the disk refuses.
        """
        ((free,),) = self.run("PRAGMA freelist_count")
        return self.file_bytes() - int(free) * PAGE_BYTES


def last_checkpoint(path: Path, statements: tuple[str, ...]) -> list[list[Row]]:
    """Query the file as its last checkpoint left it, without a lock and without a trace; an agent may be using it.

    Args:
        path: The file.
        statements: Queries; one list of rows for each.

    Raises:
        StoreError: it cannot be read, or is being changed in this moment.
    """
    try:
        connection = sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro&immutable=1", uri=True)
        try:
            return [connection.execute(statement).fetchall() for statement in statements]
        finally:
            connection.close()
    except sqlite3.Error as error:
        raise _ours(error) from error


def _ours(error: sqlite3.Error) -> StoreError:
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF  # the low byte is the class, the rest says more
    if code == sqlite3.SQLITE_FULL:
        return NoRoomError(str(error))
    return DamagedError(str(error)) if code in _DAMAGED else StoreError(str(error))
