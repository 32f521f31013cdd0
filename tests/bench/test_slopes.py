"""The slope of a soak: right on a line, and no narrower than what it was computed from."""

from __future__ import annotations

import math

from tests.bench.slopes import FEWEST, last_three_quarters

MINUTES = [60.0 * minute for minute in range(60)]


def test_a_line_has_its_slope() -> None:
    """Ten an hour is told as ten an hour, whatever the first quarter did."""
    values = [100 + at_s / 360 if at_s >= 885 else 1000 for at_s in MINUTES]
    slope = last_three_quarters(MINUTES, values)
    assert slope is not None
    assert math.isclose(slope.per_hour, 10.0)
    assert slope.low <= slope.per_hour <= slope.high


def test_noise_is_no_slope_and_likeness_widens_the_interval() -> None:
    """Around a level the interval holds 0; steps that last are worth fewer samples than independent ones."""
    independent = [float((-1) ** number) for number in range(len(MINUTES))]
    lasting = [float((-1) ** (number // 5)) for number in range(len(MINUTES))]
    narrow, wide = last_three_quarters(MINUTES, independent), last_three_quarters(MINUTES, lasting)
    assert narrow is not None
    assert wide is not None
    assert narrow.low < 0 < narrow.high
    assert wide.low < 0 < wide.high
    assert wide.high - wide.low > narrow.high - narrow.low


def test_few_samples_say_nothing() -> None:
    """A run of a few samples has no slope."""
    assert last_three_quarters(MINUTES[:FEWEST], [1.0] * FEWEST) is None
