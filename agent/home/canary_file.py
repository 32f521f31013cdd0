"""The canary: an own file of the agent that is moved again and again, so that its notification can be waited for."""

from __future__ import annotations

import logging
from contextlib import suppress
from pathlib import Path

from agent.errors import HomeError

LOG = logging.getLogger(__name__)

_STEM = "canary-"


class CanaryFile:
    """One empty file in its own directory. A move needs no room on the disk, so it works on a full one."""

    def __init__(self, directory: Path) -> None:
        """Make the directory and the file. Raises `HomeError`: they cannot be made."""
        self.directory = directory
        try:
            directory.mkdir(exist_ok=True)
            for leftover in directory.glob(f"{_STEM}*"):
                leftover.unlink()
            self._path = directory / f"{_STEM}0"
            self._path.touch()
        except OSError as error:
            raise HomeError(f"cannot make a canary in {directory}: {error.strerror}") from error

    def move(self, number: int) -> bool:
        """Give the file its next name; False if the disk refuses."""
        path = self.directory / f"{_STEM}{number}"
        try:
            self._path.rename(path)
        except FileNotFoundError:
            return self._make(path)
        except OSError:
            return False
        self._path = path
        return True

    def restore(self) -> None:
        """Make the directory again, in case it was tidied up; without it nothing there can be watched."""
        with suppress(OSError):
            self.directory.mkdir(parents=True, exist_ok=True)

    def _make(self, path: Path) -> bool:
        """The directory was tidied up: a new file is moved in, so that this is announced like any other move."""
        try:
            self.directory.mkdir(exist_ok=True)
            beside = self.directory / "new"
            beside.touch()
            beside.rename(path)
        except OSError:
            return False
        self._path = path
        return True


def number_of(name: str) -> int | None:
    """Return the number in a canary's name; None if it is no canary."""
    digits = name.removeprefix(_STEM)
    return int(digits) if name.startswith(_STEM) and digits.isdecimal() else None


def make_canary(own: Path | None) -> CanaryFile | None:
    """Make the canary; without room for one the agent watches all the same, and says that nothing proves it."""
    if own is None:
        return None
    try:
        return CanaryFile(own / "canary")
    except HomeError as error:
        LOG.error("watching without a canary: %s", error)
        return None
