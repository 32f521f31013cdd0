"""A broker for each run."""

from __future__ import annotations

from pathlib import Path

from tests.hunt.design import Run
from tests.live.plan import numbers
from tests.live.processes import Broker

BROKER = "4.3.1"
OLD_BROKER = "3.9.1"
"""The last one that talks to clients of before 2.1."""


def broker_release(run: Run) -> str:
    """Tell which broker talks to a run's release: the newest one that does."""
    return BROKER if numbers(run.release) >= (2, 1) else OLD_BROKER


class Brokers:
    """The newest broker that talks to a run's release, started when it is first needed."""

    def __init__(self, home: Path) -> None:
        """Start nothing yet."""
        self._home = home
        self._running: dict[str, Broker] = {}
        self._started = 0

    def for_run(self, run: Run) -> Broker:
        """Give the broker for a run."""
        release = broker_release(run)
        if release not in self._running:
            self._started += 1
            self._running[release] = Broker(self._home / f"broker-{self._started}-{release}", release)
        return self._running[release]

    def stop(self) -> None:
        """End all; the next run has a new one."""
        while self._running:
            self._running.popitem()[1].stop()
