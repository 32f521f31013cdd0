"""A quantity that is known only between two ends, and the comparison of two of them."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil

from agent.layout.profile import Truth


@dataclass(frozen=True, slots=True)
class Bounds:
    """At least `low`, at most `high`.

    Args of the dataclass:
        low: What it is at least, 0 or more.
        high: What it is at most; None = no upper end is known.
    """

    low: int
    high: int | None

    @classmethod
    def exactly(cls, value: int) -> Bounds:
        """A quantity that is known."""
        return cls(value, value)

    def exceeds(self, other: Bounds) -> Truth:
        """Return whether this is more than another: YES and NO hold at the worst ends, MAYBE is everything else."""
        if other.high is not None and self.low > other.high:
            return Truth.YES
        if self.high is not None and self.high <= other.low:
            return Truth.NO
        return Truth.MAYBE

    def times(self, factor: Bounds) -> Bounds:
        """Multiply two quantities."""
        low = self.low * factor.low
        if self.high == 0 or factor.high == 0:
            return Bounds(low, 0)
        return Bounds(low, None if self.high is None or factor.high is None else self.high * factor.high)

    def plus(self, other: Bounds) -> Bounds:
        """Add two quantities."""
        high = None if self.high is None or other.high is None else self.high + other.high
        return Bounds(self.low + other.low, high)

    def over(self, divisor: Bounds) -> Bounds:
        """Divide by a quantity of which one is the least that makes sense: how many things make so many parts."""
        low = 0 if divisor.high is None else ceil(self.low / max(divisor.high, 1))
        high = None if self.high is None or divisor.low < 1 else self.high // divisor.low
        return Bounds(low, high)


UNKNOWN = Bounds(0, None)
