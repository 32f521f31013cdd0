"""Where the agent looks, when, and what it finds without being told."""

from __future__ import annotations

import pytest

from agent.contract.events import Kind, Record, Source
from agent.engine import directory_reader
from agent.engine.lock_polls import LOCK_POLL_US, SLOW_POLL_US
from agent.engine.rereads import SETTLE_US
from agent.inventory.disk import LockState
from agent.inventory.hints import LOSSES, Hint, HintKind
from agent.replay.trace import Operation
from tests.agent.engine.playing import (
    Run,
    application,
    checkpoint,
    deletion,
    kill,
    opening,
    operations_of,
    release,
    second,
    sets_of,
)


def rescanned(run: Run, path: str = "", cause: str = "periodic") -> None:
    run.pipeline.handle([Hint(path, HintKind.RESCAN, run.now_us, cause=cause)], run.now_us)


def test_a_burst_is_read_once() -> None:
    """All files of an opening store are one look, when the burst has settled."""
    run = Run()
    run.play(*application(1))
    run.play(Operation(second(2), "mkdir", "app/0_0"), Operation(second(2), "mkdir", "app/0_0/rocksdb"))
    files = opening(2)[2:]
    for operation in files:
        run.play(operation)
    assert "store-created 0_0" not in run.changes()
    looks = run.pipeline.looker.outcomes.total()
    run.until(second(2) + SETTLE_US + 1)
    assert run.changes().count("store-created 0_0") == run.changes().count("task-held 0_0") == 1
    assert run.pipeline.looker.outcomes.total() - looks <= 2


def test_a_written_lock_file_is_read_at_once() -> None:
    """The close of `LOCK` is a release: it does not wait for the burst to settle."""
    run = Run()
    run.play(*application(1), *opening(1))
    run.until(second(2))
    run.play(*release(2))
    assert run.changes()[-1] == "task-released 0_0"
    assert run.of(Kind.TRANSITION)[-1]["source"] == Source.INOTIFY.value
    store = run.pipeline.inventory.applications["app"].tasks["0_0"].stores["s"]
    assert store.lock is LockState.FREE


@pytest.mark.parametrize(
    ("removed", "expected"),
    [
        ([Operation(second(12), "unlink", "app/0_0/.checkpoint")], "checkpoint-deleted 0_0"),
        (deletion(12), "task-deleted 0_0"),
    ],
)
def test_what_is_older_than_its_removal_by_a_clock_that_was_set_back_is_gone(removed, expected) -> None:
    """It was written half a minute before the step, and goes right after it."""
    run = Run()
    run.play(*application(1), *opening(30), *checkpoint(40, 100))
    run.until(second(41))
    run.pipeline.shift(second(11) - second(41))
    hints: list[Hint] = []
    for operation in removed:
        run.disk.apply(operation)
        hints += run.player.hints(operation)
    run.pipeline.handle(hints, second(12))
    assert run.changes()[-1] == expected


def test_a_kill_is_found_by_asking_for_the_application_lock() -> None:
    """Nobody announces a SIGKILL: within one poll the process's end and the free stores are known."""
    run = Run()
    run.play(*application(1), *opening(1))
    run.until(second(5))
    run.unseen(*kill(5, "app/0_0/rocksdb/s/LOCK", "app/.lock"))
    before = run.changes()
    run.until(second(5) + LOCK_POLL_US + 1)
    new = run.changes()[len(before) :]
    assert "process-ended" in new
    assert "task-released 0_0" in new
    assert {x["source"] for x in run.of(Kind.TRANSITION)[len(before) :]} == {Source.TIMER.value}


def test_while_nothing_happens_locks_alone_are_asked() -> None:
    """A kill is found as soon, and ends the rest; what else is due ends it, too, and is left to a whole tick."""
    run = Run()
    run.play(*application(1), *opening(1))
    run.until(second(8))
    assert run.pipeline.rest(run.now_us + LOCK_POLL_US)
    run.unseen(*kill(8, "app/0_0/rocksdb/s/LOCK", "app/.lock"))
    before = run.changes()
    assert not run.pipeline.rest(run.now_us + 2 * LOCK_POLL_US)
    assert {"process-ended", "task-released 0_0"} <= set(run.changes()[len(before) :])
    before, looks = run.changes(), run.pipeline.looker.outcomes.total()
    assert not run.pipeline.rest(second(60))
    assert (run.changes(), run.pipeline.looker.outcomes.total()) == (before, looks)


def test_without_an_application_lock_each_held_task_is_asked() -> None:
    """Old releases have no application lock: the held store itself tells of the kill."""
    run = Run()
    run.play(Operation(second(1), "mkdir", "app"), *opening(1))
    run.until(second(5))
    run.unseen(*kill(5, "app/0_0/rocksdb/s/LOCK"))
    run.until(second(5) + LOCK_POLL_US + 1)
    assert "task-released 0_0" in run.changes()


def test_a_lock_that_no_one_announced_is_found_in_the_end() -> None:
    """A store that is taken again without any file event shows in the slow round."""
    run = Run()
    run.play(*application(1), *opening(1))
    run.play(*release(2))
    run.until(second(3))
    run.unseen(Operation(second(3), "lock", "app/0_0/rocksdb/s/LOCK"))
    run.until(second(3) + SLOW_POLL_US + 1)
    assert run.changes().count("task-held 0_0") == 2


def test_a_checkpoint_is_read_when_it_is_renamed() -> None:
    """The temporary file says nothing; the rename is what counts, and it is read at once."""
    run = Run()
    run.play(*application(1), *opening(1))
    *writing, rename = checkpoint(2, 41)
    run.play(*writing)
    assert "checkpoint-written 0_0" not in run.changes()
    run.play(rename)
    assert run.changes()[-1] == "checkpoint-written 0_0"
    task = run.pipeline.inventory.applications["app"].tasks["0_0"]
    assert task.checkpoint is not None
    assert task.checkpoint.offsets == {"s": 41}


def test_a_store_is_read_before_the_checkpoint_that_follows_it() -> None:
    """A checkpoint within a burst is set against what the store holds then, not later."""
    run = Run()
    run.play(*application(1), *opening(1))
    run.play(*checkpoint(1.01, 41))
    changes = run.changes()
    assert changes.index("store-created 0_0") < changes.index("checkpoint-written 0_0")
    current = "app/0_0/rocksdb/s/CURRENT"
    run.play(
        Operation(second(3), "open_w", current), Operation(second(3), "close_w", current), *checkpoint(3, 42)
    )
    assert not run.pipeline.looker._settling.due


def test_a_deletion_is_seen_as_it_happens() -> None:
    """Store and task go, and the same directory recreated is another incarnation."""
    run = Run()
    run.play(*application(1), *opening(1))
    run.play(*release(2))
    run.play(*deletion(3))
    run.until(second(4))
    assert "task-deleted 0_0" in run.changes()
    run.play(*opening(5, identity="id-2"))
    run.until(second(6))
    task = run.pipeline.inventory.applications["app"].tasks["0_0"]
    assert (task.exists, task.incarnation) == (True, 2)
    assert task.stores["s"].identities == {"id-2"}


def test_a_rescan_finds_what_was_not_announced() -> None:
    """Everything that came unseen is there after one rescan."""
    run = Run()
    run.unseen(*application(1), *opening(1), *checkpoint(1, 7), *opening(1, "app/__one__/1_2")[:1])
    run.unseen(
        Operation(second(1), "mkdir", "app/__one__"), *opening(1, "app/__one__/1_2"), *opening(1, "app/0_1")
    )
    assert run.changes() == []
    rescanned(run)
    tasks = run.pipeline.inventory.applications["app"].tasks
    assert {name for name, task in tasks.items() if task.exists} == {"0_0", "0_1", "__one__/1_2"}
    assert tasks["0_0"].checkpoint is not None
    assert {x["source"] for x in run.of(Kind.TRANSITION)} == {Source.RESCAN.value}


def test_a_rescan_finds_what_vanished() -> None:
    """A task, a named topology and a whole application that went unseen are gone after one rescan."""
    run = Run()
    run.play(*application(1), *opening(1), *opening(1, "app/0_1"))
    run.play(Operation(second(1), "mkdir", "app/__one__"), *opening(1, "app/__one__/1_2"))
    run.play(*application(1, "other"), *opening(1, "other/0_0"))
    run.until(second(2))
    run.unseen(
        *deletion(2, "app/0_1"), *deletion(2, "app/__one__/1_2"), Operation(second(2), "rmdir", "app/__one__")
    )
    run.unseen(*deletion(2, "other/0_0"), Operation(second(2), "unlink", "other/.lock"))
    run.unseen(Operation(second(2), "rmdir", "other"))
    rescanned(run)
    applications = run.pipeline.inventory.applications
    there = {f"{x.id}/{t.id}" for x in applications.values() for t in x.tasks.values() if t.exists}
    assert there == {"app/0_0"}
    assert (applications["app"].exists, applications["other"].exists) == (True, False)


def test_rescanning_twice_changes_nothing() -> None:
    """A rescan of what is known says nothing."""
    run = Run()
    run.play(*application(1), *opening(1), *checkpoint(1, 7))
    run.until(second(2))
    rescanned(run)
    before = run.changes()
    rescanned(run)
    rescanned(run, "app/0_0")
    rescanned(run, "app/0_0/rocksdb/s")
    assert run.changes() == before


def test_losses_become_blind_intervals() -> None:
    """A rescan after a loss begins and ends a blind interval; a planned one does not."""
    run = Run()
    run.play(*application(1))
    for cause in ("start", "periodic"):
        rescanned(run, cause=cause)
    assert not run.pipeline.inventory.blind
    for cause in sorted(LOSSES):
        rescanned(run, cause=cause)
    told = {interval.cause: interval.ended_us for interval in run.pipeline.inventory.blind}
    assert told == dict.fromkeys(LOSSES, run.now_us)


def test_a_reading_of_what_is_gone_again_is_no_trouble() -> None:
    """Hints arrive late: whatever they announced may be gone, and that is what is found."""
    run = Run()
    run.play(*application(1))
    hints: list[Hint] = []
    for operation in (*opening(2), *checkpoint(2, 3)):
        run.disk.apply(operation)
        hints += run.player.hints(operation)
    for operation in (Operation(second(2), "unlink", "app/0_0/.checkpoint"), *deletion(2)):
        run.disk.apply(operation)
    run.pipeline.handle(hints, second(2))
    run.until(second(3))
    tasks = run.pipeline.inventory.applications["app"].tasks
    assert all(not task.exists for task in tasks.values())
    assert run.faults == []


def first_walk(scenario: str) -> list[Record]:
    """Walk over what a recorded run left, for the first time."""
    operations = operations_of(scenario, "pod-a")
    run = Run(operations[-1].at_us + 1, sets_of(scenario))
    for operation in operations:
        run.disk.apply(operation)
    run.records.clear()
    run.pipeline.scan(run.now_us)
    run.rest()
    return run.records


@pytest.mark.parametrize(
    "scenario",
    ["benign-rolling-standby-3.9.2", "torn-clean-3.9.2", "dirty-close-kill-4.3.1", "benign-global-4.3.1"],
)
def test_reported_one_by_one_or_all_at_once_is_the_same(
    scenario: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every record is the same, in the same order; only settings may be told once more, with what was found later."""
    at_once = first_walk(scenario)
    monkeypatch.setattr(directory_reader, "REPORTED_AT_ONCE", 1)
    one_by_one = first_walk(scenario)
    assert [x for x in one_by_one if x.kind is not Kind.CONFIGURATION] == [
        x for x in at_once if x.kind is not Kind.CONFIGURATION
    ]
    told, told_later = (
        [x.body for x in each if x.kind is Kind.CONFIGURATION] for each in (at_once, one_by_one)
    )
    assert told
    assert told_later[-1] == told[-1]
