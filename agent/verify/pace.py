"""A share of one core: work in slices, rest in proportion."""

from __future__ import annotations

from collections.abc import Callable

SLICE_S = 0.01
"""CPU between two rests."""


class Pace:
    """Sleeps so that the CPU that a process takes stays below its share."""

    def __init__(self, share: float, cpu_s: Callable[[], float], sleep: Callable[[float], object]) -> None:
        """Begin with what the process has taken so far: its start is to be made up for, too.

        Args:
            share: Of one core; above 0, at most 1.
            cpu_s: CPU that the whole process has taken, seconds.
            sleep: Sleeps for some seconds.
        """
        self._rest = 1 / share - 1
        self._cpu_s, self._sleep = cpu_s, sleep
        self._paid_s = 0.0

    def __call__(self, slice_s: float = SLICE_S) -> None:
        """Rest, if a slice of work is done."""
        used_s = self._cpu_s() - self._paid_s
        if used_s >= slice_s:
            self._sleep(used_s * self._rest)
            self._paid_s += used_s
