"""Summaries of many tasks: those that changed at once, the others in turn, so that an idle agent stays cheap."""

from __future__ import annotations

import pytest

from agent.contract.events import Kind
from agent.engine import pipeline
from agent.engine.pipeline import SUMMARY_US
from tests.agent.engine.playing import Run, application, checkpoint, opening


def summaries(run: Run) -> list[str]:
    """List the tasks that were summarised since the last call."""
    told = [str(x["task_id"]) for x in run.of(Kind.SUMMARY)]
    run.records.clear()
    return told


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch) -> Run:
    """Give a pipeline with 20 quiet tasks, of which ten have room at a time."""
    monkeypatch.setattr(pipeline, "SUMMARIES", 10)
    monkeypatch.setattr(pipeline, "BUSY_SUMMARIES", 8)
    monkeypatch.setattr(pipeline, "QUIET_SUMMARIES", 2)
    run = Run()
    run.play(*application(1))
    for number in range(20):
        run.play(*opening(2 + number / 1000, task=f"app/0_{number}", identity=f"id-{number}"))
    run.rest(3 * SUMMARY_US)
    summaries(run)
    return run


def test_quiet_tasks_have_their_turn(run: Run) -> None:
    """Ten a minute: after two minutes each was told once."""
    rounds = []
    for _ in range(2):
        run.rest(SUMMARY_US)
        rounds.append(summaries(run))
    assert [len(told) for told in rounds] == [10, 10]
    assert len({task for told in rounds for task in told}) == 20


def test_a_task_that_changed_does_not_wait(run: Run) -> None:
    """It is told in the next round, once, beside the quiet ones whose turn it is."""
    at_s = (run.now_us - run.started_us) / 1e6
    run.play(*checkpoint(at_s + 1, 5, task="app/0_19"))
    run.rest(SUMMARY_US)
    told = summaries(run)
    assert told.count("0_19") == 1
    assert len(told) in (10, 11)


def test_when_most_change_no_task_starves(run: Run) -> None:
    """Of 19 that change all the time eight are told a minute, and of all two more: the quiet one, too."""
    rounds = []
    for minute in range(12):
        at_s = (run.now_us - run.started_us) / 1e6
        for number in range(19):
            run.play(*checkpoint(at_s + 1 + number / 1000, minute + 1, task=f"app/0_{number}"))
        run.rest(SUMMARY_US - 2_000_000)
        rounds.append(summaries(run))
    assert max(len(told) for told in rounds) <= 10
    assert len({task for told in rounds for task in told}) == 20


def test_at_the_end_everything_is_reported(run: Run) -> None:
    """The last word of an agent is about every task."""
    run.pipeline.summarise(run.now_us)
    assert len(summaries(run)) == 20


def test_an_agent_without_time_shows_what_changed_last(run: Run) -> None:
    """A pod that ends waits for nobody."""
    run.play(*checkpoint((run.now_us - run.started_us) / 1e6 + 1, 7, task="app/0_13"))
    times = iter((True, True, False))
    run.pipeline.summarise(run.now_us, has_time=lambda: next(times))
    told = summaries(run)
    assert (told[0], len(told)) == ("0_13", 2)


def test_few_tasks_are_reported_every_minute(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """Up to the bound nothing waits."""
    monkeypatch.setattr(pipeline, "SUMMARIES", 20)
    run.rest(SUMMARY_US)
    assert len(summaries(run)) == 20
