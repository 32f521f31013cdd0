"""A database as of one manifest, in a private directory: links to open files, copies of the small ones.

RocksDB's readers write beside what they read, even read-only; here they write into the private directory. A file that
the application deletes meanwhile stays readable through its descriptor.
"""

from __future__ import annotations

import os
import resource
import secrets
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from agent.errors import UnreadError, UsageError
from agent.layout.names import CURRENT_FILE

PREFIX = "statewarden-verify-"
TRIES = 20
DATA_SUFFIXES = (".sst", ".blob")
_READ = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW


@contextmanager
def private_directory(work: Path | None, state_dir: Path) -> Iterator[Path]:
    """Make the private directory, and remove it at any end: interrupts included, in what `guarded` runs.

    Raises `UsageError`: it would be inside the state directory, or cannot be made.
    """
    parent = Path(work or tempfile.gettempdir()).resolve()
    if parent.is_relative_to(state_dir.resolve()):
        raise UsageError(f"{parent} is inside {state_dir}, where nothing is ever written; give --work")
    # known before it is there: no interrupt comes between
    directory = parent / f"{PREFIX}{secrets.token_hex(8)}"
    try:
        try:
            _make(directory)
            yield directory
        finally:
            shutil.rmtree(directory, ignore_errors=True)
    finally:  # an interrupt may have cut that short, or a database that is still open have added a file
        shutil.rmtree(directory, ignore_errors=True)


def _make(directory: Path) -> None:
    try:
        directory.mkdir(mode=0o700)
    except OSError as error:
        why = f"{directory.parent}: no directory can be made here: {error.strerror}; give --work"
        raise UsageError(why) from error


def remove_leftovers(parent: Path) -> None:
    """Remove private directories that a process could not remove, because it was killed."""
    for directory in parent.glob(f"{PREFIX}*"):
        shutil.rmtree(directory, ignore_errors=True)


class _MovedError(Exception):
    """The database went on while it was read."""


class View:
    """A database that can be opened read-only without touching its directory; close it."""

    def __init__(self, database: Path, work: Path) -> None:
        """Take the view.

        `database`: directory of the store or segment; nothing is written there. `work`: where the private one is made.
        Raises `UsageError`: it cannot be read, or is no database.
        """
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        if soft < hard:  # every file of a store stays open
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
        self._descriptors: list[int] = []
        self.directory = Path(tempfile.mkdtemp(prefix="view-", dir=work))
        self.written_s = 0.0
        try:
            self._take(database)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Close the files and remove the private directory."""
        self._close_files()
        shutil.rmtree(self.directory, ignore_errors=True)

    def _take(self, database: Path) -> None:
        for _ in range(TRIES):
            try:
                source = os.open(database, os.O_RDONLY | os.O_CLOEXEC | os.O_DIRECTORY)
            except FileNotFoundError:
                raise UnreadError(f"{database}: it is gone") from None
            except OSError as error:
                raise UnreadError(f"{database}: {error.strerror}") from error
            self._descriptors.append(source)
            try:
                self._read_once(source)
            except (_MovedError, FileNotFoundError):
                self._clear()
            except OSError as error:
                raise UnreadError(f"{database}/{error.filename or ''}: {error.strerror}") from error
            else:
                return
        if not (database / CURRENT_FILE).exists():
            raise UnreadError(f"{database}: no RocksDB database (there is no CURRENT)")
        raise UnreadError(f"{database}: its files changed during each of {TRIES} readings; try again")

    def _read_once(self, source: int) -> None:
        """Open the data files, copy the manifest that is current, then open the files that came meanwhile."""
        self._link_files(source)
        current = self._copy(source, CURRENT_FILE)
        self._copy(source, current.decode("ascii", "replace").strip())
        if _read(source, CURRENT_FILE) != current:
            raise _MovedError
        self._link_files(source)

    def _link_files(self, source: int) -> None:
        for name in os.listdir(source):
            link = self.directory / name
            if not name.endswith(DATA_SUFFIXES) or link.is_symlink():
                continue
            try:
                descriptor = os.open(name, _READ, dir_fd=source)
            except FileNotFoundError:
                continue  # a compaction took it: the manifest does not name it either
            self._descriptors.append(descriptor)
            self.written_s = max(self.written_s, os.fstat(descriptor).st_mtime)
            link.symlink_to(f"/proc/self/fd/{descriptor}")

    def _copy(self, source: int, name: str) -> bytes:
        content = _read(source, name)
        (self.directory / name).write_bytes(content)
        return content

    def _clear(self) -> None:
        self._close_files()
        for path in self.directory.iterdir():
            path.unlink()

    def _close_files(self) -> None:
        while self._descriptors:
            os.close(self._descriptors.pop())


def _read(directory: int, name: str) -> bytes:
    with os.fdopen(os.open(name, _READ, dir_fd=directory), "rb") as file:
        return file.read()
