"""Who is passed over while nothing is read of a task: nobody who would say anything."""

from __future__ import annotations

import json
from collections.abc import Callable, Set
from dataclasses import replace
from pathlib import Path

import pytest

from agent.detectors.frozen_checkpoint import META
from agent.engine.detector_runner import Batch, DetectorRunner
from agent.engine.pipeline import Pipeline
from agent.engine.unchanged import ALL, MORE, RELEASES, SETTINGS, NotedCase, NotedSettings, Unchanged, around
from agent.inventory.model import Application, BlindInterval, Inventory, Task
from agent.inventory.settings import ApplicationSettings, Setting, SettingsBook
from agent.judging.base import Fact, TaskCase
from agent.layout.profile import Profile
from agent.replay.memory_disk import MemoryDisk
from agent.replay.run import first_time_us, replay
from tests.evaluate.run import TRACES
from tests.support.replays import QUIET_US


@pytest.mark.parametrize(
    ("ask", "noted"),
    [
        (lambda case: case.task.id, 0),
        (lambda case: case.settings.number("delete_retention_ms"), 0),
        (lambda case: case.inventory.volume, 0),
        (lambda case: case.is_silent(META), 0),
        (lambda case: case.waited_us(2), MORE),
        (lambda case: case.application.tasks, MORE),
        (lambda case: case.says(Fact.UNKNOWN_OFFSET), RELEASES),
        (lambda case: case.settings.exactly_once, SETTINGS),
        (lambda case: case.settings.is_configured("num_standby_replicas"), SETTINGS),
        (lambda case: case.settings.effective(), SETTINGS),
        (lambda case: len(case.settings.values), SETTINGS),
        (lambda case: replace(case, profile=Profile()).says(Fact.UNKNOWN_OFFSET), MORE | RELEASES),
    ],
)
def test_a_case_notes_what_it_is_asked_for(ask: Callable[[TaskCase], object], noted: int) -> None:
    """Its own task and the volume say the same until something is read, and in every world."""
    values = NotedSettings({"delete_retention_ms": Setting("1", "test")})
    settings = ApplicationSettings(values)
    ask(NotedCase(Inventory(), 5, Application("app"), Task("app", "0_0", "app/0_0"), settings=settings))
    assert values.asked_for == noted


def test_a_reading_or_a_blind_time_asks_all_again() -> None:
    """And so does a release that is known by now."""
    readings, inventory, profile = {"app/0_0": 1}, Inventory(), Profile()
    unchanged = Unchanged(readings)
    asked_for = {"nothing": 0, "time": MORE, "releases": RELEASES, "settings": SETTINGS, "all": ALL}
    unchanged.note("app/0_0", around(inventory), profile, asked_for)
    silence = unchanged.silence("app/0_0", around(inventory), profile)
    assert silence is not None
    assert silence.again == {"time", "all"}
    assert (silence.elsewhere, silence.same) == ({"nothing", "time"}, {"nothing", "time", "releases"})
    assert unchanged.silence("app/0_0", around(inventory), Profile()) is None
    assert unchanged.silence("app/0_1", around(inventory), profile) is None
    inventory.blind.append(BlindInterval(1, "missed"))
    assert unchanged.silence("app/0_0", around(inventory), profile) is None
    inventory.blind.clear()
    readings["app/0_0"] = 2
    assert unchanged.silence("app/0_0", around(inventory), profile) is None


@pytest.mark.parametrize("told", [True, False], ids=["told", "not told"])
@pytest.mark.parametrize("name", ["kafka-8187-stage2-2.0.1", "benign-rolling-standby-eos-4.1.2"])
def test_who_is_passed_over_would_say_nothing(name: str, told: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """At every judgement of a recording, each detector that is not asked is asked all the same, and is silent."""
    judge, passed_over = DetectorRunner.judge_task, 0

    def judge_task(
        self: DetectorRunner,
        now_us: int,
        application: Application,
        task: Task,
        batch: Batch,
        settled: Set[str] = frozenset(),
    ) -> None:
        nonlocal passed_over
        known, case = self.know(application, batch), self.task_case(now_us, application, task, batch)
        silence = self.unchanged.silence(task.path, known.around, known.profile) if self.unchanged else None
        if not self.ledger.pending(application.id, task.id):
            for detector in self._asked(case, everybody=False):
                if detector.meta.id in settled or (silence and detector.meta.id not in silence.again):
                    passed_over += 1
                    assert not list(detector.judge(case)), (detector.meta.id, task.path, now_us)
        judge(self, now_us, application, task, batch, settled)

    monkeypatch.setattr(DetectorRunner, "judge_task", judge_task)
    scenario: Path = TRACES / name / "scenario.json"
    truth = json.loads(scenario.read_text())
    values = truth["settings"] if told else {}
    settings = SettingsBook({key: Setting(str(value), "test") for key, value in values.items()})
    for pod in truth["pods"]:
        trace, disk = scenario.parent / pod["trace"], MemoryDisk()
        pipeline = Pipeline(disk, settings, first_time_us(trace), lambda record: None)
        replay(trace, pipeline, disk, QUIET_US)
    assert passed_over > 100
