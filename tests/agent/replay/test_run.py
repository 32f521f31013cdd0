"""A replay: the trace's own clock, as fast as it goes."""

from __future__ import annotations

from pathlib import Path

import pytest

from agent.contract.events import Kind
from agent.engine.pipeline import Pipeline
from agent.errors import TraceError
from agent.inventory.hints import WATCHED_EVENTS, HintKind
from agent.layout.paths import PathRole, classify
from agent.replay.memory_disk import MemoryDisk
from agent.replay.run import Player, first_time_us, replay
from agent.replay.trace import OPERATIONS, Operation
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


DIRECTORIES = {
    PathRole.STATE_DIRECTORY: "", PathRole.APPLICATION: "app", PathRole.TOPOLOGY: "app/__one__",
    PathRole.TASK: "app/0_0", PathRole.STORES: "app/0_0/rocksdb", PathRole.STORE: "app/0_0/rocksdb/s",
    PathRole.SEGMENTED_STORE: "app/0_0/w", PathRole.SEGMENT: "app/0_0/w/w.0",
}  # fmt: skip
KINDS = {
    "mkdir": HintKind.CREATED,
    "create": HintKind.CREATED,
    "rmdir": HintKind.DELETED,
    "unlink": HintKind.DELETED,
    "close_w": HintKind.WRITTEN,
}
SILENT = OPERATIONS - KINDS.keys() - {"rename"}


def test_the_directories_are_what_they_are_called() -> None:
    """The table of this test covers every role of a directory."""
    assert DIRECTORIES.keys() == WATCHED_EVENTS.keys()
    for role, path in DIRECTORIES.items():
        assert classify(path).role is role


@pytest.mark.parametrize("role", sorted(DIRECTORIES))
@pytest.mark.parametrize("operation", sorted(KINDS))
def test_hints_follow_the_table(role: PathRole, operation: str) -> None:
    """A name in a directory raises a hint exactly where the kernel watch asks for it."""
    path = f"{DIRECTORIES[role]}/x".lstrip("/")
    hints = Player().hints(Operation(7, operation, path))
    if KINDS[operation] in WATCHED_EVENTS[role]:
        (hint,) = hints
        assert (hint.path, hint.kind, hint.at_us) == (path, KINDS[operation], 7)
        assert hint.is_directory is (operation in ("mkdir", "rmdir"))
    else:
        assert hints == ()


@pytest.mark.parametrize("role", sorted(DIRECTORIES))
def test_a_rename_is_out_then_in(role: PathRole) -> None:
    """Both ends of a rename are told in kernel order."""
    base = f"{DIRECTORIES[role]}/".lstrip("/")
    hints = Player().hints(Operation(7, "rename", f"{base}x.tmp", to=f"{base}x"))
    expected = [(HintKind.MOVED_OUT, f"{base}x.tmp"), (HintKind.MOVED_IN, f"{base}x")]
    assert [(hint.kind, hint.path) for hint in hints] == [x for x in expected if x[0] in WATCHED_EVENTS[role]]


def test_a_rename_out_of_sight_shows_one_end() -> None:
    """Below a directory that nobody watches nothing is told."""
    hints = Player().hints(Operation(7, "rename", "app/0_0/.checkpoint", to="app/0_0/other/deep/x"))
    assert [hint.kind for hint in hints] == [HintKind.MOVED_OUT]


@pytest.mark.parametrize("operation", sorted(SILENT))
def test_what_raises_no_notification(operation: str) -> None:
    """Writes, reads, locks, times and the life of a process are never announced."""
    assert Player().hints(Operation(7, operation, "app/0_0/.lock", size=1, data=b"x")) == ()


@pytest.mark.parametrize("operation", sorted(KINDS))
def test_nameless_files_are_silent(operation: str) -> None:
    """A file without a name raises nothing in its former directory."""
    assert Player().hints(Operation(7, operation, "app/0_0/.lock", nameless=True)) == ()


def test_an_unwatched_place_is_silent() -> None:
    """What lies in no directory of ours is not announced."""
    assert Player().hints(Operation(7, "create", "app/0_0/rocksdb/s/archive/x")) == ()
