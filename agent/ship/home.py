"""The directory of a spool: may it be there, and is it free?

The spool has its own volume. It is never below a state directory: the agent never writes there.
"""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

from agent.errors import SpoolError, SpoolInUseError

LOCK_NAME = "lock"


class SpoolHome:
    """An existing spool directory that this process alone uses until `close`."""

    def __init__(self, directory: Path, state_directory: Path | None) -> None:
        """Make the directory if needed and take its lock.

        Args:
            directory: The spool.
            state_directory: What is audited; None = nothing live, as in a replay.

        Raises:
            SpoolError: it is inside the state directory, cannot be used, or is in use.
        """
        self.directory = directory
        if state_directory is not None and is_inside(directory, state_directory):
            raise SpoolError(
                f"spool {directory} is inside the state directory {state_directory}, where the agent never "
                "writes; give the spool a directory elsewhere, best on a separate volume"
            )
        try:
            directory.mkdir(parents=True, exist_ok=True)
            flags = os.O_CREAT | os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW
            self._lock = os.open(directory / LOCK_NAME, flags, 0o640)
        except OSError as error:
            raise SpoolError(
                f"cannot use {directory} as spool: {error.strerror}; give it its own writable volume"
            ) from error
        try:
            self._acquire_lock()
        except BaseException:
            os.close(self._lock)
            raise

    def close(self) -> None:
        """Let another agent have the directory."""
        os.close(self._lock)

    def _acquire_lock(self) -> None:
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise SpoolInUseError(
                f"spool {self.directory} is in use by another statewarden agent; "
                "give each agent its own spool directory, or stop the other one"
            ) from error


def is_inside(directory: Path, outer: Path) -> bool:
    """Return whether a directory is another one or is below it, symbolic links followed."""
    inner, outer = directory.resolve(), outer.resolve()
    return inner == outer or outer in inner.parents
