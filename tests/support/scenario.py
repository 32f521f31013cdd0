"""Scenarios that read like docs/state-format.md: releases, processes, tasks, cleaners, over virtual time.

    run = Scenario(release="3.9.2", guarantee="exactly_once_v2", standbys=0)
    app = run.start()
    app.opens("0_0")
    app.puts("0_0", 500)
    app.flushes("0_0")
    run.wait(30)
    assert run.loud() == []

What is written, and in which order, depends on the release (`scenario_release`). What does not happen by itself in
a scenario: no commit writes a checkpoint, no restoration starts, nothing is wiped unless the test says so; a
scenario of a bug is one that leaves out what the release should have done.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import AbstractContextManager

from agent.contract.finding import Finding
from agent.detectors import DETECTORS
from agent.detectors.undecided import META as UNDECIDED
from agent.judging.base import Detector
from tests.support.scenario_app import App
from tests.support.scenario_release import Habits
from tests.support.scenario_tasks import IN_MEMORY, KEY_VALUE, TIMESTAMPED, UNLOGGED, WINDOWED, SimTask
from tests.support.scenario_world import World

__all__ = ["IN_MEMORY", "KEY_VALUE", "TIMESTAMPED", "UNLOGGED", "WINDOWED", "App", "Scenario", "SimTask"]


class Scenario:
    """One state directory, the processes that use it, and the agent that watches."""

    def __init__(
        self,
        release: str = "3.9.2",
        guarantee: str = "at_least_once",
        standbys: int | None = 0,
        *,
        stores: Mapping[str, str] | None = None,
        application: str = "app",
        told: Mapping[str, object] | None = None,
        hidden: Iterable[str] = (),
        watched: bool = True,
        detectors: tuple[Detector, ...] = DETECTORS,
    ) -> None:
        """Describe the application.

        Standbys None: the operator does not say. `stores`: store -> kind; by default one key-value store `s`. `told`:
        further settings that the operator gives; `hidden`: those that he does not, "*" = none at all.
        """
        self.stores = dict(stores) if stores is not None else {"s": KEY_VALUE}
        self.application = application
        self.release, self.guarantee, self.transactional = release, guarantee, False
        self.tasks: dict[str, SimTask] = {}
        settings: dict[str, object] = {
            "kafka_streams_version": release,
            "processing_guarantee": guarantee,
            "num_standby_replicas": standbys,
            **(told or {}),
        }
        dark = set(hidden)
        known = {k: v for k, v in settings.items() if v is not None and k not in dark and "*" not in dark}
        self.world = World(known, watched=watched, detectors=detectors)
        self.app = App(self)  # the newest process
        self._identities = 0

    @property
    def habits(self) -> Habits:
        """What the configured release does."""
        return Habits(self.release, self.guarantee != "at_least_once", self.transactional)

    def start(self, release: str | None = None, *, transactional: bool | None = None) -> App:
        """Start a process; another release than before is an upgrade or downgrade."""
        self.release = release or self.release
        self.transactional = self.transactional if transactional is None else transactional
        self.app = App(self)
        self.app.begins()
        return self.app

    def wait(self, seconds: float) -> None:
        self.world.wait(seconds)

    def unheard(self) -> AbstractContextManager[None]:
        """Let notifications get lost for a while."""
        return self.world.unheard()

    def is_copied(self, *, seconds_per_file: float = 0.0) -> None:
        """A copy that keeps no times takes the place of everything, in order of names, as `rsync -r` makes it."""
        for path in sorted(self.everything()):
            self.world.wait(seconds_per_file)
            self.world.play("utime", path)

    def findings(self, detector: str | None = None) -> list[Finding]:
        """All findings up to now, or those of one detector."""
        return [x for x in self.world.findings() if detector in (None, x.detector)]

    def loud(self) -> list[Finding]:
        """Findings of warning or above; a question is none."""
        return [x for x in self.findings() if x.severity.rank >= 1 and x.detector != UNDECIDED.id]

    def only(self, detector: str) -> Finding:
        found = self.findings(detector)
        assert len(found) == 1, f"{len(found)} findings of {detector}: {[x.summary for x in found]}"
        return found[0]

    def task(self, task_id: str) -> SimTask:
        return self.tasks.setdefault(task_id, SimTask(task_id, f"{self.application}/{task_id}"))

    def everything(self, path: str = "") -> list[str]:
        """Every path below a directory, a directory after its content."""
        found: list[str] = []
        for name, is_directory in self.world.children(path):
            child = f"{path}/{name}" if path else name
            found += self.everything(child) if is_directory else []
            found.append(child)
        return found

    def identity(self) -> str:
        self._identities += 1
        return f"00000000-0000-4000-8000-{self._identities:012d}"
