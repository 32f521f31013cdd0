"""The agent's own directory: may it be there, is it free, can it be written?

It is never below a state directory, where the agent never writes.
"""

from __future__ import annotations

import errno
import fcntl
import os
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import IO

from agent.errors import SpoolError, SpoolInUseError

LOCK_NAME = "lock"
PROBE_PREFIX = ".statewarden-probe-"
_PROBE_BYTES = 4096  # a block: an empty file can be made on a volume that is full


class OwnDirectory:
    """An existing directory that this process alone uses until `close`."""

    def __init__(self, directory: Path, state_directory: Path | None) -> None:
        """Make the directory if needed and take its lock.

        `state_directory`: what is audited; None = nothing live, as in a replay. Raises `SpoolError`: it is inside
        the state directory, cannot be used, or is in use.
        """
        self.path = directory
        if state_directory is not None and is_inside(directory, state_directory):
            raise SpoolError(
                f"{directory} is inside the state directory {state_directory}, where the agent never "
                "writes; give the agent a directory elsewhere, best on a separate volume"
            )
        try:
            directory.mkdir(parents=True, exist_ok=True)
            flags = os.O_CREAT | os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW
            self._lock = os.open(directory / LOCK_NAME, flags, 0o640)
        except OSError as error:
            raise SpoolError(
                f"cannot use {directory}: {error.strerror}; give the agent its own writable volume"
            ) from error
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            os.close(self._lock)
            raise SpoolInUseError(
                f"{directory} is in use by another statewarden agent; "
                "give each agent its own directory, or stop the other one"
            ) from error

    def close(self) -> None:
        """Let another agent have the directory."""
        os.close(self._lock)


def is_inside(directory: Path, outer: Path) -> bool:
    """Return whether a directory is another one or is below it, symbolic links followed."""
    inner, outer = directory.resolve(), outer.resolve()
    return inner == outer or outer in inner.parents


def try_to_write(directory: Path, state_directory: Path) -> OSError | None:
    """Make a small file and remove it; where the directory is not there yet, in the one that it would be made in.

    `state_directory`: what is audited; nothing is made in or below it. Gives why it cannot be done; None = it can.
    """
    place = nearest(directory)
    if is_inside(place, state_directory) or is_inside(directory, state_directory):
        return OSError(errno.EPERM, "is inside the state directory")
    try:
        # a name of chance: agents of several pods that ship to one volume may have the same process id
        with tempfile.NamedTemporaryFile(prefix=PROBE_PREFIX, dir=place, buffering=0) as probe:
            probe.write(bytes(_PROBE_BYTES))
            os.fsync(probe.fileno())
    except OSError as error:
        return error
    return None


def nameless_file(own: Path | None) -> IO[bytes]:
    """Open a file that is gone once every process has closed it, in the agent's own directory and nowhere else.

    Raises `OSError`: it has none, or no room.
    """
    if own is None:
        raise OSError(errno.ENOENT, "the agent has no directory of its own")
    return tempfile.TemporaryFile(dir=own)


def nearest(directory: Path) -> Path:
    """Give the directory itself, or the nearest one above it that is there."""
    for place in (directory.absolute(), *directory.absolute().parents):
        with suppress(OSError):
            if place.exists():
                return place
    return Path("/")
