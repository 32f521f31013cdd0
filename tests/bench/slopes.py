"""Does a number grow with time? Least squares, with an interval that does not take neighbours for independent."""

from __future__ import annotations

import itertools
import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

FEWEST = 8
"""Samples below which nothing is said."""


@dataclass(frozen=True, slots=True)
class Slope:
    """How fast something grows.

    Args of the dataclass:
        per_hour: Least squares, in the unit of the values per hour.
        low: Lower end of the 95 % interval.
        high: Upper end.
    """

    per_hour: float
    low: float
    high: float


def last_three_quarters(times_s: Sequence[float], values: Sequence[float]) -> Slope | None:
    """Fit a line to everything but the first quarter of the time, in which things warm up.

    Samples that follow each other are alike (memory moves in steps), so that fewer of them count: n (1 - r) / (1 + r)
    for a correlation r of neighbouring residuals.

    Args:
        times_s: When, in seconds, rising.
        values: What was measured then.

    Returns:
        The slope; None for fewer than `FEWEST` samples.
    """
    from_s = times_s[0] + (times_s[-1] - times_s[0]) / 4
    points = [(at_s / 3600, value) for at_s, value in zip(times_s, values, strict=True) if at_s >= from_s]
    if len(points) < FEWEST:
        return None
    mean_h, mean = (statistics.fmean(axis) for axis in zip(*points, strict=True))
    spread = sum((at_h - mean_h) ** 2 for at_h, _ in points)
    slope = sum((at_h - mean_h) * (value - mean) for at_h, value in points) / spread
    residuals = [value - mean - slope * (at_h - mean_h) for at_h, value in points]
    squares = sum(x * x for x in residuals)
    alike = sum(a * b for a, b in itertools.pairwise(residuals)) / squares if squares else 0.0
    alike = min(0.99, max(0.0, alike))
    count = max(3.0, len(points) * (1 - alike) / (1 + alike))
    error = math.sqrt(squares / (count - 2) / spread)
    half = _T95 * error
    return Slope(slope, slope - half, slope + half)


_T95 = statistics.NormalDist().inv_cdf(0.975)
