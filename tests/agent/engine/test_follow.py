"""Steps of a steady run wait for a judgement, and nothing that is wrong does."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from agent.engine import follow as module
from agent.engine.follow import TEMPO_US, Follow
from agent.engine.pipeline import Pipeline
from agent.inventory.settings import Setting, SettingsBook
from agent.replay.memory_disk import MemoryDisk
from agent.replay.run import first_time_us, replay
from tests.evaluate.run import TRACES
from tests.support.replays import QUIET_US
from tests.support.scenario import App, Scenario

TASK, PATH = "0_0", "app/0_0"
Fault = Callable[[Scenario, App], object]


def _restarts(run: Scenario, app: App) -> None:
    app.crash()
    run.start().opens(TASK)


FAULTS: dict[str, Fault] = {
    "the checkpoint goes back": lambda run, app: app.checkpoints(TASK, 50, flush=False),
    "the checkpoint is garbage": lambda run, app: run.world.write(f"{PATH}/.checkpoint", b"0\nx\n"),
    "the directory goes": lambda run, app: app.delete_tree(PATH),
    "the directory goes halfway": lambda run, app: app.delete_tree(PATH, f"{PATH}/rocksdb/s/CURRENT"),
    "the process dies and comes back": _restarts,
    "nothing is wrong": lambda run, app: None,
}


def _steady(
    tempo_us: int, fault: Fault = lambda run, app: None, steps: int = 40, guarantee: str = "at_least_once"
) -> tuple[Scenario, int]:
    """Let a checkpoint move on three times a second, drop a fault into that, and count the steps that waited."""
    run = Scenario("2.5.1", guarantee)
    assert run.world.pipeline is not None
    follow = run.world.pipeline.follow = Follow(run.world.pipeline.settings, tempo_us)
    waited = 0
    app = run.start()
    app.opens(TASK)
    app.puts(TASK, 100)
    app.checkpoints(TASK, 100)
    for step in range(steps):
        run.wait(0.3)
        app.puts(TASK, 10)
        app.checkpoints(TASK, 110 + 10 * step, flush=False)
        waited += follow.waiting.next_us() is not None
    fault(run, app)
    run.wait(200)
    return run, waited


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_in_a_steady_run_is_found_as_without_it(name: str) -> None:
    """The same findings, found at the same time: what is no step is judged at once, with the steps before it."""
    at_once, none = _steady(0, FAULTS[name])
    followed, waited = _steady(TEMPO_US, FAULTS[name])
    assert none == 0
    assert waited > 20
    assert followed.findings() == at_once.findings()


def test_faults_in_a_steady_run_are_loud() -> None:
    """The comparison is not one of nothing with nothing."""
    loud = {name: len(_steady(TEMPO_US, fault)[0].loud()) for name, fault in FAULTS.items()}
    assert loud.pop("nothing is wrong") == 0
    assert sum(x > 0 for x in loud.values()) >= 3, loud


def test_a_run_is_judged_every_ten_seconds() -> None:
    """Its first step that waits says when."""
    run, _ = _steady(TEMPO_US, steps=80)
    runs = run.world.pipeline.stats["torn-store"].runs if run.world.pipeline else 0
    assert 10 < runs < 30


def test_what_is_no_run_is_judged_at_once() -> None:
    """Checkpoints that come seldom, or jump, or under exactly-once."""
    assert _steady(TEMPO_US, guarantee="exactly_once")[1] == 0
    run = Scenario(release="2.5.1")
    app, pipeline = run.start(), run.world.pipeline
    assert pipeline is not None
    app.opens(TASK)
    for step in range(20):
        run.wait(3)
        app.checkpoints(TASK, 110 + 10 * step, flush=False)
        assert pipeline.follow.waiting.next_us() is None
    for step in range(20):
        run.wait(0.3)
        app.checkpoints(TASK, 20_000 * (step + 1), flush=False)
        assert pipeline.follow.waiting.next_us() is None


@pytest.mark.parametrize("name", ["kafka-8187-stage2-2.0.1", "benign-move-3.9.2"])
def test_recordings_say_the_same_at_each_tempo(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """With runs of one step: no recording has a longer one."""
    monkeypatch.setattr(module, "CHECKPOINTS_KEPT", 1)
    monkeypatch.setattr(module, "SOON_US", 120_000_000)
    scenario: Path = TRACES / name / "scenario.json"
    told = json.loads(scenario.read_text())
    settings = SettingsBook({key: Setting(str(value), "test") for key, value in told["settings"].items()})
    for pod in told["pods"]:
        found = []
        for tempo_us in (0, TEMPO_US):
            trace, disk = scenario.parent / pod["trace"], MemoryDisk()
            pipeline = Pipeline(disk, settings, first_time_us(trace), lambda record: None, tempo_us=tempo_us)
            replay(trace, pipeline, disk, QUIET_US)
            found.append(pipeline.ledger.findings())
        assert found[0] == found[1]
