"""The canary's rules: when it is sent, when it is late. Knows no clock and moves nothing itself."""

from __future__ import annotations

from collections.abc import Callable

EVERY_S = 5.0
LATE_AFTER_S = 15.0
"""A notification takes milliseconds; under full load the queue is read within a second or two."""


class Canary:
    """Counts upwards; a number that came back proves that everything announced before it has come, too."""

    def __init__(self, move: Callable[[int], bool]) -> None:
        """Send with `move`, which gives the file its next number or says that it cannot."""
        self._move = move
        self._sent = self._seen = 0
        self._waits_since_s: float | None = None
        self._next_s = 0.0
        self.missed = 0
        self.is_stuck = False

    def check(self, now_s: float) -> None:
        """Send the next one if it is time and the last one is back."""
        if self._waits_since_s is None and now_s >= self._next_s:
            self._send(now_s)

    def fence(self, now_s: float) -> int | None:
        """Send one now: when `seen` has reached the number given, all that was announced before has been heard.

        None = none can be sent.
        """
        self._send(now_s)
        return None if self.is_stuck else self._sent

    def receive(self, number: int) -> None:
        """Take the announcement of a number."""
        if number > self._seen:
            self._seen = number
        if self._seen >= self._sent:
            self._waits_since_s = None

    @property
    def seen(self) -> int:
        """Highest number that came back."""
        return self._seen

    def late_since(self, now_s: float) -> float | None:
        """Return since when one is waited for that should have come back long ago; None = all is well."""
        since_s = self._waits_since_s
        return since_s if since_s is not None and now_s - since_s > LATE_AFTER_S else None

    def give_up(self, now_s: float) -> None:
        """Count the one that is late as missed, and wait for it no longer: the reader is restarted."""
        self.missed += 1
        self._waits_since_s = None
        self._seen = self._sent
        self._next_s = now_s + EVERY_S

    def _send(self, now_s: float) -> None:
        self.is_stuck = not self._move(self._sent + 1)
        self._next_s = now_s + EVERY_S
        if not self.is_stuck:
            self._sent += 1
            if self._waits_since_s is None:
                self._waits_since_s = now_s
