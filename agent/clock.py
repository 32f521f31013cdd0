"""Time: the one place of the agent that asks for it. The core is handed the answer as an argument."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol


class Clock(Protocol):
    """Wall clock and monotonic clock."""

    def now_us(self) -> int:
        """Return the wall clock time in microseconds since the epoch, UTC."""
        ...

    def monotonic_s(self) -> float:
        """Return seconds since some fixed point; never goes backwards."""
        ...


class SystemClock:
    """The clocks of the machine."""

    def now_us(self) -> int:
        """Return the wall clock time in microseconds since the epoch, UTC."""
        return time.time_ns() // 1000

    def monotonic_s(self) -> float:
        """Return seconds since some fixed point; never goes backwards."""
        return time.monotonic()


@dataclass(frozen=True, slots=True)
class Boot:
    """One boot of the machine."""

    id: str  # the kernel's
    began_us: int  # when it began by the wall clock, as that is set now


def current_boot() -> Boot | None:
    """Ask which boot this is, and when it began; None = the kernel does not say.

    Source:
        clock_gettime(2), timekeeping.c: slewing and suspending move CLOCK_REALTIME and CLOCK_BOOTTIME alike, so their
        distance changes only when the wall clock is set.
    """
    try:
        id_ = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
        runs_ns = time.clock_gettime_ns(time.CLOCK_BOOTTIME)
    except (OSError, ValueError):
        return None
    return Boot(id_, (time.time_ns() - runs_ns) // 1000)


_TIMEX_BYTES = 256  # struct timex is 208 bytes; all zero asks and sets nothing
_TIME_ERROR = 5


def is_clock_synchronised() -> bool | None:
    """Ask the kernel whether its clock is synchronised; None = it does not say.

    Source:
        adjtimex(2): with `modes` 0 it only reads, which needs no privilege; TIME_ERROR = the clock is unsynchronised.
    """
    import ctypes  # of all commands only the agent asks

    try:
        state: int = ctypes.CDLL(None).adjtimex(ctypes.create_string_buffer(_TIMEX_BYTES))
    except (OSError, AttributeError):
        return None
    return None if state < 0 else state != _TIME_ERROR
