"""The canary: an own file of the agent that is moved again and again, so that its notification can be waited for."""

from __future__ import annotations

import logging
from contextlib import suppress
from pathlib import Path

from agent.errors import HomeError

LOG = logging.getLogger(__name__)

EVERY_S = 5.0
LATE_AFTER_S = 15.0
"""A notification takes milliseconds; under full load the queue is read within a second or two."""

_STEM = "canary-"


class Canary:
    """One empty file in its own directory. A move needs no room on the disk, so it works on a full one.

    Its name counts upwards: a number that came back proves that everything announced before it has come, too.
    """

    def __init__(self, directory: Path) -> None:
        """Make the directory and the file. Raises `HomeError`: they cannot be made."""
        self.directory = directory
        self._sent = self.seen = 0  # highest number that was sent, and that came back
        self._waits_since_s: float | None = None
        self._next_s = 0.0
        self.missed = 0
        self.is_stuck = False
        try:
            directory.mkdir(exist_ok=True)
            for leftover in directory.glob(f"{_STEM}*"):
                leftover.unlink()
            self._path = directory / f"{_STEM}0"
            self._path.touch()
        except OSError as error:
            raise HomeError(f"cannot make a canary in {directory}: {error.strerror}") from error

    def check(self, now_s: float) -> None:
        """Send the next one if it is time and the last one is back."""
        if self._waits_since_s is None and now_s >= self._next_s:
            self.fence(now_s)

    def fence(self, now_s: float) -> int | None:
        """Send one now: when `seen` has reached the number given, all that was announced before has been heard.

        None = none can be sent.
        """
        self.is_stuck = not self.move(self._sent + 1)
        self._next_s = now_s + EVERY_S
        if self.is_stuck:
            return None
        self._sent += 1
        if self._waits_since_s is None:
            self._waits_since_s = now_s
        return self._sent

    def receive(self, name: str) -> bool:
        """Take the announcement of a name; False if it is no canary's."""
        digits = name.removeprefix(_STEM)
        if not name.startswith(_STEM) or not digits.isdecimal():
            return False
        self.seen = max(self.seen, int(digits))
        if self.seen >= self._sent:
            self._waits_since_s = None
        return True

    def late_since(self, now_s: float) -> float | None:
        """Return since when one is waited for that should have come back long ago; None = all is well."""
        since_s = self._waits_since_s
        return since_s if since_s is not None and now_s - since_s > LATE_AFTER_S else None

    def give_up(self, now_s: float) -> None:
        """Count the one that is late as missed, and wait for it no longer: the reader is restarted."""
        self.missed += 1
        self._waits_since_s = None
        self.seen = self._sent
        self._next_s = now_s + EVERY_S

    def move(self, number: int) -> bool:
        """Give the file its next name; False if the disk refuses."""
        path, beside = self.directory / f"{_STEM}{number}", self.directory / "new"
        try:
            try:
                self._path.rename(path)
            except FileNotFoundError:
                # it was tidied up: a new file is moved in, so that this is announced like any other move
                self.directory.mkdir(exist_ok=True)
                beside.touch()
                beside.rename(path)
        except OSError:
            return False
        self._path = path
        return True

    def restore(self) -> None:
        """Make the directory again, in case it was tidied up; without it nothing there can be watched."""
        with suppress(OSError):
            self.directory.mkdir(parents=True, exist_ok=True)


def make_canary(own: Path | None) -> Canary | None:
    """Make the canary; without room for one the agent watches all the same, and says that nothing proves it."""
    if own is None:
        return None
    try:
        return Canary(own / "canary")
    except HomeError as error:
        LOG.error("watching without a canary: %s", error)
        return None
