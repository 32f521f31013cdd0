"""A process that rests in proportion to its work."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from agent.verify.worker import SLICE_S, Pace


class Machine:
    """A process whose work and sleep are numbers."""

    def __init__(self, start_s: float) -> None:
        """Begin with what its start has cost."""
        self.cpu_s, self.slept_s = start_s, 0.0

    def sleep(self, seconds: float) -> None:
        """Sleep."""
        self.slept_s += seconds


@given(st.floats(0.01, 1.0), st.floats(0.0, 0.5), st.lists(st.floats(0.0, 0.1), max_size=50))
def test_the_share_is_never_exceeded(share: float, start_s: float, work: list[float]) -> None:
    """From its start on, by no more than the slice that is not paid for yet."""
    machine = Machine(start_s)
    pace = Pace(share, lambda: machine.cpu_s, machine.sleep)
    for seconds in work:
        machine.cpu_s += seconds
        pace()
        assert machine.cpu_s - SLICE_S <= share * (machine.cpu_s + machine.slept_s) + 1e-9
    pace(0)
    assert machine.cpu_s <= share * (machine.cpu_s + machine.slept_s) + 1e-9


def test_a_whole_core_needs_no_rest() -> None:
    """A share of 1."""
    machine = Machine(3.0)
    Pace(1.0, lambda: machine.cpu_s, machine.sleep)()
    assert machine.slept_s == 0
