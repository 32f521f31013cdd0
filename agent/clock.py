"""Time: the one place of the agent that asks for it. The core is handed the answer as an argument."""

from __future__ import annotations

import time
from typing import Protocol


class Clock(Protocol):
    """Wall clock and monotonic clock."""

    def now_us(self) -> int:
        """Tell the wall clock time in microseconds since the epoch, UTC."""
        ...

    def monotonic_s(self) -> float:
        """Tell seconds since some fixed point; never goes backwards."""
        ...


class SystemClock:
    """The clocks of the machine."""

    def now_us(self) -> int:
        """Tell the wall clock time in microseconds since the epoch, UTC."""
        return time.time_ns() // 1000

    def monotonic_s(self) -> float:
        """Tell seconds since some fixed point; never goes backwards."""
        return time.monotonic()
