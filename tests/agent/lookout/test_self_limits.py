"""Ceilings of the agent: step by step down, and back up when it is calm."""

from __future__ import annotations

from agent.inventory.blind_causes import Step
from agent.lookout.self_limits import CALM_NEEDED, MEASURE_S, Ceilings, SelfLimits


class Load:
    """An agent whose load is set by hand."""

    def __init__(self, ceilings: Ceilings) -> None:
        self.limits = SelfLimits(ceilings)
        self.now_s = self.cpu_s = 0.0
        self.limits.measure(0.0, 0.0, None)

    def measure(self, share: float, resident: int | None = None) -> Step:
        """Let one measurement pass."""
        self.now_s += MEASURE_S
        self.cpu_s += MEASURE_S * share
        self.limits.measure(self.now_s, self.cpu_s, resident)
        return self.limits.step


def test_without_ceilings_nothing_is_given_up() -> None:
    """A ceiling of 0 is none."""
    load = Load(Ceilings())
    assert {load.measure(5.0, 1 << 40) for _ in range(10)} == {Step.NONE}


def test_above_the_ceiling_one_step_at_a_time_to_the_last() -> None:
    """Every measurement above it costs one step, and there it stays: it does not die."""
    load = Load(Ceilings(cpu_share=0.1))
    assert [load.measure(0.2) for _ in range(6)] == [1, 2, 3, 4, 4, 4]
    assert "slower-rescan, longer-batches" in load.limits.sentence()


def test_memory_counts_like_cpu() -> None:
    """Either ceiling is enough."""
    load = Load(Ceilings(cpu_share=0.5, memory_bytes=100))
    assert load.measure(0.01, 101) is Step.SLOWER_RESCAN
    assert load.measure(0.01, None) is Step.SLOWER_RESCAN


def test_back_only_after_some_calm() -> None:
    """One calm measurement is not enough, and one just below the ceiling is not calm."""
    load = Load(Ceilings(cpu_share=0.1))
    load.measure(0.2)
    assert [load.measure(0.05) for _ in range(CALM_NEEDED - 1)] == [1] * (CALM_NEEDED - 1)
    assert load.measure(0.09) == 1
    assert [load.measure(0.05) for _ in range(CALM_NEEDED)][-1] is Step.NONE
    assert [load.measure(0.05) for _ in range(CALM_NEEDED)][-1] is Step.NONE


def test_a_measurement_is_due_at_the_start_and_then_every_ten_seconds() -> None:
    """In between nobody need ask for the memory, and nothing changes."""
    limits = SelfLimits(Ceilings(cpu_share=0.1))
    assert limits.is_due(5.0)
    limits.measure(5.0, 0.0, None)
    assert [limits.is_due(5.0 + MEASURE_S - 1.0), limits.is_due(5.0 + MEASURE_S)] == [False, True]
    assert not limits.measure(5.0 + MEASURE_S / 2, 100.0, None)
    assert limits.step is Step.NONE
