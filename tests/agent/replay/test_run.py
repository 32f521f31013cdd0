"""A replay: the trace's own clock, as fast as it goes."""

from __future__ import annotations

from pathlib import Path

import pytest

from agent.contract.events import Kind
from agent.engine.pipeline import Pipeline
from agent.errors import TraceError
from agent.replay.memory_disk import MemoryDisk
from agent.replay.run import first_time_us, replay
from tests.agent.engine.playing import TRACES, Run, operations_of, run_of, sets_of

TRACE = TRACES / "kafka-20685-4.1.2" / "trace-pod-a.jsonl.gz"


def replayed(trace: Path, quiet_us: int, *, show_process: bool = False) -> tuple[Run, int]:
    run = Run(first_time_us(trace), sets_of("kafka-20685-4.1.2"))
    run.disk, run.records = MemoryDisk(), []
    settings = run.pipeline.settings
    run.pipeline = Pipeline(run.disk, settings, run.started_us, run.records.append)
    return run, replay(trace, run.pipeline, run.disk, quiet_us, show_process=show_process)


def test_a_replay_is_playing_one_by_one() -> None:
    """The replay gives the records that playing each operation by itself gives, and then stops."""
    run, count = replayed(TRACE, 1_200_000_000)
    operations = operations_of("kafka-20685-4.1.2", "pod-a")
    assert count == len(operations)
    assert run.records[:-1] == run_of("kafka-20685-4.1.2", "pod-a").records
    last = run.records[-1]
    assert (last.kind, last.body) == (Kind.LIFECYCLE, {"phase": "stopping", "reason": "end of trace"})
    assert last.observed_at_us == operations[-1].at_us + 1_200_000_000


def test_without_a_quiet_period_the_clock_stops_with_the_trace() -> None:
    """Nothing is judged later than the last operation."""
    run, _ = replayed(TRACE, 0)
    end_us = operations_of("kafka-20685-4.1.2", "pod-a")[-1].at_us
    assert max(record.observed_at_us for record in run.records) == end_us


def test_the_process_is_hidden_unless_asked_for() -> None:
    """The release that a trace knows reaches the dossier only with a visible process."""
    seen = []
    for show in (False, True):
        run, _ = replayed(TRACE, 0, show_process=show)
        applications = run.pipeline.inventory.applications.values()
        seen.append({x.process_version for x in applications})
    assert seen == [{None}, {"4.1.2"}]


def test_an_unreadable_trace_is_reported(tmp_path: Path) -> None:
    """Neither the first time nor the replay is made up."""
    empty = tmp_path / "empty.jsonl"
    empty.touch()
    for action in (lambda: first_time_us(empty), lambda: replayed(tmp_path / "none", 0)):
        with pytest.raises(TraceError):
            action()


@pytest.mark.parametrize(
    ("scenario", "pod"),
    [
        ("kafka-8187-stage1-2.2.1", "pod-b"),
        ("torn-clean-3.9.2", "pod-b"),
        ("eos-4.3.1-crash-unflushed", "pod-a"),
    ],
)
def test_what_says_nothing_of_locks_moves_no_session(
    monkeypatch: pytest.MonkeyPatch, scenario: str, pod: str
) -> None:
    """Sessions settled at every reading, or only at those that can change a holder: the records are the same."""
    some = run_of(scenario, pod).records
    monkeypatch.setattr("agent.inventory.reduce._may_change_holder", lambda reading: True)
    assert some == run_of(scenario, pod).records
