"""What the worker notices of itself: too much CPU or memory, a wall clock that jumped, a standstill. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from agent.inventory.blind_causes import Step

MEASURE_S = 10.0
"""A step is taken after a measurement over so long; one back after three calm ones."""

CALM = 0.7
"""Part of a ceiling below which a measurement is calm."""

CALM_NEEDED = 3


@dataclass(frozen=True, slots=True)
class Ceilings:
    """What the agent may take; 0 = no ceiling."""

    cpu_share: float = 0.0  # of one core
    memory_bytes: int = 0  # resident


class SelfLimits:
    """Measures, and decides on the step: the agent does less before it takes more than it was given."""

    def __init__(self, ceilings: Ceilings) -> None:
        """Begin with full work."""
        self._ceilings = ceilings
        self._since: tuple[float, float] | None = None
        self._calm = 0
        self.step = Step.NONE
        self.cpu_share = 0.0

    def is_due(self, now_s: float) -> bool:
        """Return whether it is time for a measurement."""
        return self._since is None or now_s - self._since[0] >= MEASURE_S

    def measure(self, now_s: float, cpu_s: float, resident_bytes: int | None) -> bool:
        """Take a measurement, if it is time for one; return whether the step has changed."""
        if self._since is None:
            self._since = (now_s, cpu_s)
            return False
        if not self.is_due(now_s):
            return False
        elapsed_s = now_s - self._since[0]
        self.cpu_share = (cpu_s - self._since[1]) / elapsed_s
        self._since = (now_s, cpu_s)
        load = self._load(resident_bytes)
        before = self.step
        if load > 1.0:
            self._calm = 0
            self.step = Step(min(self.step + 1, max(Step)))
        elif load < CALM:
            self._calm += 1
            if self._calm >= CALM_NEEDED and self.step:
                self._calm = 0
                self.step = Step(self.step - 1)
        else:
            self._calm = 0
        return self.step is not before

    def _load(self, resident_bytes: int | None) -> float:
        """Return how much of the nearest ceiling is used; above 1 it is passed."""
        limits = self._ceilings
        cpu = self.cpu_share / limits.cpu_share if limits.cpu_share > 0 else 0.0
        memory = (resident_bytes or 0) / limits.memory_bytes if limits.memory_bytes > 0 else 0.0
        return max(cpu, memory)

    def sentence(self) -> str:
        """Say for people what is given up."""
        return ", ".join(step.slug for step in Step if Step.NONE < step <= self.step)


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
