"""Who is passed over while nothing is read of a task: nobody who would say anything."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from agent.engine.detector_runner import Batch, DetectorRunner
from agent.engine.pipeline import Pipeline
from agent.engine.unchanged import NotedCase, Unchanged, around, set_asked
from agent.inventory.model import Application, BlindInterval, Inventory, Task
from agent.inventory.settings import Setting, SettingsBook
from agent.judging.base import TaskCase
from agent.layout.profile import Profile
from agent.replay.memory_disk import MemoryDisk
from agent.replay.run import first_time_us, replay
from tests.evaluate.run import TRACES
from tests.support.replays import QUIET_US


@pytest.mark.parametrize(
    ("ask", "is_noted"),
    [
        (lambda case: case.task.id, False),
        (lambda case: case.settings.exactly_once, False),
        (lambda case: case.inventory.volume, False),
        (lambda case: case.waited_us(2), True),
        (lambda case: case.application.tasks, True),
    ],
)
def test_a_case_notes_who_asks_for_the_time_or_for_other_tasks(
    ask: Callable[[TaskCase], object], is_noted: bool
) -> None:
    """Its own task, the settings and the volume say the same until something is read."""
    case = NotedCase(Inventory(), 5, Application("app"), Task("app", "0_0", "app/0_0"))
    set_asked(case, False)
    ask(case)
    assert case.is_asked is is_noted


def test_a_reading_or_a_blind_time_asks_all_again() -> None:
    """And so does a release that is known by now."""
    readings, inventory, profile = {"app/0_0": 1}, Inventory(), Profile()
    unchanged = Unchanged(readings)
    unchanged.note("app/0_0", around(inventory), profile, [])
    assert unchanged.to_ask("app/0_0", around(inventory), profile) == ()
    assert unchanged.to_ask("app/0_0", around(inventory), Profile()) is None
    assert unchanged.to_ask("app/0_1", around(inventory), profile) is None
    inventory.blind.append(BlindInterval(1, "missed"))
    assert unchanged.to_ask("app/0_0", around(inventory), profile) is None
    inventory.blind.clear()
    readings["app/0_0"] = 2
    assert unchanged.to_ask("app/0_0", around(inventory), profile) is None


@pytest.mark.parametrize("name", ["kafka-8187-stage2-2.0.1", "benign-rolling-standby-eos-4.1.2"])
def test_who_is_passed_over_would_say_nothing(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """At every judgement of a recording, each detector that is not asked is asked all the same, and is silent."""
    judge, passed_over = DetectorRunner.judge_task, 0

    def judge_task(
        self: DetectorRunner, now_us: int, application: Application, task: Task, batch: Batch
    ) -> None:
        nonlocal passed_over
        known, case = self.know(application, batch), self.task_case(now_us, application, task, batch)
        asked = self.unchanged.to_ask(task.path, known.around, known.profile) if self.unchanged else None
        if asked is not None and not self.ledger.pending(application.id, task.id):
            ids = {x.meta.id for x in asked}
            for detector in (x for x in self._asked(case, everybody=False) if x.meta.id not in ids):
                passed_over += 1
                assert not list(detector.judge(case)), (detector.meta.id, task.path, now_us)
        judge(self, now_us, application, task, batch)

    monkeypatch.setattr(DetectorRunner, "judge_task", judge_task)
    scenario: Path = TRACES / name / "scenario.json"
    told = json.loads(scenario.read_text())
    settings = SettingsBook({key: Setting(str(value), "test") for key, value in told["settings"].items()})
    for pod in told["pods"]:
        trace, disk = scenario.parent / pod["trace"], MemoryDisk()
        pipeline = Pipeline(disk, settings, first_time_us(trace), lambda record: None)
        replay(trace, pipeline, disk, QUIET_US)
    assert passed_over > 100
