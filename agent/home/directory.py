"""The agent's own directory: baseline and canary live here, never below a state directory."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

from agent.errors import HomeError
from agent.ship.home import lies_inside

LOCK_NAME = "lock"


class OwnHome:
    """An existing directory that this process alone uses until `close`."""

    def __init__(self, directory: Path, state_directory: Path) -> None:
        """Make the directory if needed and take its lock.

        Raises:
            HomeError: it is inside the state directory, cannot be used, or another agent uses it.
        """
        self.directory = directory
        if lies_inside(directory, state_directory):
            raise HomeError(
                f"home {directory} is inside the state directory {state_directory}, where the agent never writes;"
                " give it a directory elsewhere, best on a separate volume"
            )
        try:
            directory.mkdir(parents=True, exist_ok=True)
            flags = os.O_CREAT | os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW
            self._lock = os.open(directory / LOCK_NAME, flags, 0o640)
        except OSError as error:
            raise HomeError(
                f"cannot use {directory} as home: {error.strerror}; give the agent its own writable volume"
            ) from error
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            os.close(self._lock)
            raise HomeError(
                f"home {directory} is in use by another statewarden agent; give each agent its own"
            ) from error

    def close(self) -> None:
        """Let another agent have the directory."""
        os.close(self._lock)
