"""One SQLite file in WAL mode, and its errors as values of ours. Sole importer of sqlite3.

Why `synchronous=NORMAL`: a commit is then a write without a sync, so the kernel has it and `kill -9` loses nothing.
What a power cut may lose is bounded by `checkpoint`, which the owner calls.

Why `locking_mode=EXCLUSIVE`: there is one user. Without it the log's index would be a shared memory map on the same
volume, and a disk that turns read-only would end the agent by SIGBUS.
"""

from __future__ import annotations

import logging
import shutil
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any

_LOG = logging.getLogger(__name__)
DATABASE_NAME, BAD_NAME = "spool.db", "spool.db.bad"
PAGE_BYTES = 4096
_VERSION_AT = 60  # of the header: SQLite keeps `user_version` there, four bytes, the highest first
SETTINGS = (
    "locking_mode=EXCLUSIVE",
    "journal_mode=WAL",
    "synchronous=NORMAL",
    "temp_store=MEMORY",  # the root file system may be read-only
    "cache_size=-1024",
)
_DAMAGED = frozenset({sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB})
_SUFFIXES = ("", "-wal")
Row = tuple[Any, ...]


class StoreError(Exception):
    """The disk refuses."""


class NoRoomError(StoreError):
    """The size limit is reached, or the disk is full."""


class DamagedError(StoreError):
    """The file is no database of ours, or not a whole one."""


class OtherFormatError(DamagedError):
    """The file is a database of another format than this agent's."""


class Database:
    """A connection that is open or not; its owner serialises the calls, whatever threads they come from.

    All of it raises `StoreError` or one of its kinds.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._connection: sqlite3.Connection | None = None

    def open(self, log_bytes: int) -> None:
        """Connect, make the file if needed, check its structure by reading it, and say at what size the log goes."""
        try:
            # one owner, many threads: the spool's lock keeps them apart
            self._connection = sqlite3.connect(self.path, isolation_level=None, check_same_thread=False)
            for setting in (*SETTINGS, f"wal_autocheckpoint={max(1, log_bytes // PAGE_BYTES)}"):
                self.run(f"PRAGMA {setting}")
            found = self._number("quick_check(1)")
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

    def run(self, statement: str, values: Row = ()) -> list[Row]:
        """Execute one statement and get all its rows."""
        return list(self.each(statement, values))

    def each(self, statement: str, values: Row = ()) -> Iterator[Row]:
        """Execute one statement and get its rows one at a time."""
        if self._connection is None:
            raise StoreError("the database could not be opened")
        try:
            with closing(self._connection.execute(statement, values)) as rows:
                yield from rows
        except sqlite3.Error as error:
            raise _ours(error) from error

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """All or nothing."""
        self.run("BEGIN IMMEDIATE")
        try:
            yield
            self.run("COMMIT")
        except BaseException:
            if self._connection is not None and self._connection.in_transaction:
                with suppress(sqlite3.Error):
                    self._connection.rollback()
            raise

    def checkpoint(self) -> None:
        """Move what the log holds into the file, both synced."""
        self.run("PRAGMA wal_checkpoint(PASSIVE)")

    def limit(self, size_bytes: int) -> None:
        """Let the file grow to so many bytes; it never shrinks, so it may be larger already."""
        self.run(f"PRAGMA max_page_count={max(1, size_bytes // PAGE_BYTES)}")

    def is_at_limit(self, more_bytes: int) -> bool:
        """Return whether the limit, not the disk, leaves no room for so much."""
        free = self._number("max_page_count") - self._number("page_count") + self._number("freelist_count")
        return bool(free <= 4 + more_bytes // PAGE_BYTES)

    def file_bytes(self) -> int:
        """Return the size of the file, with what the log will add to it."""
        return int(self._number("page_count")) * PAGE_BYTES

    def used_bytes(self) -> int:
        """Return how much of the file is in use."""
        return self.file_bytes() - int(self._number("freelist_count")) * PAGE_BYTES

    def _number(self, pragma: str) -> Any:
        return self.run(f"PRAGMA {pragma}")[0][0]


def set_aside(path: Path, why: str) -> None:
    """Move a database that cannot be used out of the way and report it; one is kept.

    Raises `OSError`: the disk refuses.
    """
    for suffix, aside in zip(_SUFFIXES, aside_files(path.parent), strict=True):
        aside.unlink(missing_ok=True)
        with suppress(FileNotFoundError):
            Path(f"{path}{suffix}").replace(aside)
    _LOG.error("spool: set a database aside and begin a new one", extra={"reason": why})


def aside_files(directory: Path) -> list[Path]:
    """List the names of what was set aside."""
    return [directory / f"{BAD_NAME}{suffix}" for suffix in _SUFFIXES]


def format_of(path: Path) -> int | None:
    """Read the format that the file had at its last checkpoint: an agent may be using it. None = it has none."""
    try:
        with path.open("rb") as file:
            head = file.read(_VERSION_AT + 4)
    except OSError:
        return None
    return int.from_bytes(head[_VERSION_AT:]) if len(head) == _VERSION_AT + 4 else None


def rows_of_copy(path: Path, statement: str) -> list[Row]:
    """Query a copy of a database and its log: an agent may be using it, and nothing is written beside it.

    Raises `StoreError`: it cannot be read, or is no database. Raises `OSError`: it cannot be copied.
    """
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder, path.name)
        for suffix in reversed(_SUFFIXES):  # the log first: what moves into the file meanwhile is in both
            with suppress(FileNotFoundError):
                shutil.copyfile(f"{path}{suffix}", f"{copy}{suffix}")
        try:
            with closing(sqlite3.connect(copy)) as connection:
                return connection.execute(statement).fetchall()
        except sqlite3.Error as error:
            raise _ours(error) from error


def _ours(error: sqlite3.Error) -> StoreError:
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF  # the low byte is the class, the rest says more
    if code == sqlite3.SQLITE_FULL:
        return NoRoomError(str(error))
    return DamagedError(str(error)) if code in _DAMAGED else StoreError(str(error))
