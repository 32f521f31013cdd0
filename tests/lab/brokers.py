"""A broker for each run."""

from __future__ import annotations

from pathlib import Path

from tests.lab.design import Run
from tests.lab.plan import numbers
from tests.lab.processes import Broker
from tests.lab.toolbox import BROKER_RELEASE

BROKER = "4.3.1"


def broker_release(run: Run) -> str:
    """Tell which broker talks to a run's release: the newest one that does."""
    return BROKER if numbers(run.release) >= (2, 1) else BROKER_RELEASE


class Brokers:
    """The newest broker that talks to a run's release, started when it is first needed."""

    def __init__(self, home: Path, written: str = BROKER_RELEASE) -> None:
        """Start nothing yet; `written`: release of the broker for written plays."""
        self._home, self._written = home, written
        self._running: dict[str, Broker] = {}
        self._started = 0

    def for_run(self, run: Run) -> Broker:
        return self.of(self._written if run.label else broker_release(run))

    def of(self, release: str) -> Broker:
        if release not in self._running:
            self._started += 1
            self._running[release] = Broker(self._home / f"broker-{self._started}-{release}", release)
        return self._running[release]

    def stop(self) -> None:
        """End all; the next run has a new one."""
        while self._running:
            self._running.popitem()[1].stop()
