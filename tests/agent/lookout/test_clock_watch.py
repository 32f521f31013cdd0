"""Steps of the wall clock and standstills of the worker."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.lookout.self_limits import STALL_S, STEP_US, ClockWatch

T0_US = 1_700_000_000_000_000


@given(st.lists(st.floats(0.0, 1.5), min_size=1, max_size=20))
def test_clocks_that_agree_are_no_news(turns: list[float]) -> None:
    """Ordinary turns, with a clock that is slewed by what adjtime does, say nothing."""
    watch, wall_us, monotonic_s = ClockWatch(), float(T0_US), 0.0
    for elapsed_s in turns:
        wall_us += elapsed_s * 1e6 * 1.0005
        monotonic_s += elapsed_s
        assert watch.turn(round(wall_us), monotonic_s) is None
    assert watch.steps == 0


@pytest.mark.parametrize("step_us", [STEP_US, 3_600_000_000, -STEP_US, -3_600_000_000])
def test_a_step_is_reported_with_its_size(step_us: int) -> None:
    """Forwards and backwards."""
    watch = ClockWatch()
    watch.turn(T0_US, 5.0)
    gap = watch.turn(T0_US + 500_000 + step_us, 5.5)
    assert gap is not None
    assert (gap.step_us, gap.is_stall, gap.from_us) == (step_us, False, T0_US)
    assert watch.steps == 1
    assert watch.turn(T0_US + 1_000_000 + step_us, 6.0) is None


def test_a_standstill_is_reported_and_hard_work_is_not() -> None:
    """A minute in SIGSTOP is a stall; ten seconds of a full rescan are work."""
    watch = ClockWatch()
    watch.turn(T0_US, 0.0)
    gap = watch.turn(T0_US + 60_000_000, 60.0, busy_s=0.1)
    assert gap is not None
    assert gap.is_stall
    assert (gap.to_us - gap.from_us, gap.step_us) == (60_000_000, 0)
    assert watch.turn(T0_US + 90_000_000, 90.0, busy_s=30.0 - STALL_S) is None
