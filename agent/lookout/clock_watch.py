"""Notices that the wall clock jumped, and that the worker stalled. Pure."""

from __future__ import annotations

from dataclasses import dataclass

STEP_US = 1_000_000
"""Slewing changes the clock by at most 0.05 %; between two turns of the loop that is never a second."""

STALL_S = 10.0
"""A turn takes a second at most; a full rescan of 10,000 tasks a few."""


@dataclass(frozen=True, slots=True)
class Gap:
    """What is odd about the time between two turns."""

    from_us: int  # wall clock before
    to_us: int  # wall clock now
    step_us: int  # by how much the wall clock was set, forwards or (negative) back; 0 = it was not
    is_stall: bool  # the worker did not complete a turn for longer than it should


class ClockWatch:
    """Compares wall clock and monotonic clock from turn to turn."""

    def __init__(self) -> None:
        """Begin with the first `turn`."""
        self._wall_us: int | None = None
        self._monotonic_s = 0.0
        self.steps = 0

    def turn(self, now_us: int, monotonic_s: float, busy_s: float = 0.0) -> Gap | None:
        """Note one turn; what is odd about the time since the last, of which the worker was busy for `busy_s`."""
        before_us, before_s = self._wall_us, self._monotonic_s
        self._wall_us, self._monotonic_s = now_us, monotonic_s
        if before_us is None:
            return None
        elapsed_s = monotonic_s - before_s
        step_us = now_us - before_us - round(elapsed_s * 1_000_000)
        if abs(step_us) < STEP_US:
            step_us = 0
        self.steps += step_us != 0
        is_stall = elapsed_s - busy_s > STALL_S
        return Gap(before_us, now_us, step_us, is_stall) if step_us or is_stall else None
