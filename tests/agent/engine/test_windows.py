"""Which changes of a checkpoint wait, what never does, and what is kept of one that goes meanwhile."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from agent.contract.events import Kind
from agent.engine.windows import GROWS_US, MERGE_WINDOW_US, QUIET_US, TOGETHER_US
from agent.inventory.hints import Hint, HintKind
from agent.inventory.model import CHECKPOINTS_KEPT
from agent.judging.base import TaskCase
from agent.judging.restoration_end import UNCHANGED_US, restoration_end
from agent.replay.trace import Operation
from tests.agent.engine.playing import (
    Run,
    application,
    checkpoint,
    deletion,
    kill,
    opening,
    release,
    second,
)
from tests.agent.engine.steady_runs import CHECKPOINT, GAP_S, LOCKS, REST_US, offsets, steady, steady_session


def waits(run: Run, at_s: float, offset: int) -> bool:
    """Write a checkpoint and return whether it was not read."""
    run.play(*checkpoint(at_s, offset))
    return offsets(run)[-1] != offset


def test_all_that_is_remembered_is_read_before_anything_waits() -> None:
    """The history is full of steps of one session when the first change waits; all of them were read at once."""
    run, last_s = steady_session()
    assert offsets(run) == [100 + 10 * x for x in range(CHECKPOINTS_KEPT)]
    assert waits(run, last_s + 0.1, 500)


def test_a_window_is_read_once_at_its_end_and_the_last_content_is_never_lost() -> None:
    """Three changes a second: one reading a second, of the newest content."""
    run, last_s = steady_session()
    for number in range(1, 21):
        run.play(*checkpoint(last_s + number * GAP_S, 1_000 + number))
    run.rest(REST_US)
    known = offsets(run)[CHECKPOINTS_KEPT:]
    assert known[-1] == 1_020
    assert 6 <= len(known) <= 8


def test_a_content_that_stays_is_read_before_the_window_ends() -> None:
    """What a detector may take for a checkpoint that no longer moves has been read by then."""
    run, last_s = steady_session(merge_window_us=5_000_000)
    assert waits(run, last_s + 0.1, 500)
    run.until(second(last_s + 0.1) + QUIET_US + TOGETHER_US + 1)
    assert offsets(run)[-1] == 500
    assert QUIET_US + TOGETHER_US < UNCHANGED_US


def test_the_reading_says_since_when_the_content_before_was_replaced() -> None:
    """How long a checkpoint stood is known, although its successor was never read."""
    run, last_s = steady_session()
    for number in range(1, 4):
        run.play(*checkpoint(last_s + number * 0.2, 500 + number))
    run.rest(REST_US)
    before, fact = run.pipeline.inventory.applications["app"].tasks["0_0"].checkpoints[-2:]
    assert fact.offsets == {"s": 503}
    assert before.ended_us == second(last_s + 0.2)


def late(run: Run, at_s: float, offset: int, heard_s: float) -> None:
    """Write a checkpoint, and hear of it later."""
    operations = checkpoint(at_s, offset)
    run.until(operations[0].at_us)
    hints: list[Hint] = []
    for operation in operations:
        run.disk.apply(operation)
        hints += run.player.hints(operation)
    run.until(second(heard_s))
    run.pipeline.handle(hints, run.now_us)


def test_the_announcement_of_what_was_read_does_not_end_it() -> None:
    """The window ended right after a write, before it was announced: the content is replaced by the next one only."""
    run, last_s = steady_session()
    assert waits(run, last_s + 0.1, 500)
    read_s = last_s + 0.1 + (QUIET_US + TOGETHER_US) / 1e6
    late(run, read_s - 0.06, 600, read_s + 0.01)
    task = run.pipeline.inventory.applications["app"].tasks["0_0"]
    assert task.checkpoints[-1].offsets == {"s": 600}
    written_us = task.checkpoints[-1].written_us
    assert waits(run, read_s + 0.3, 700)
    run.rest(REST_US)
    before, fact = task.checkpoints[-2:]
    assert (before.offsets, fact.offsets) == ({"s": 600}, {"s": 700})
    assert (before.ended_us or 0) - written_us >= 300_000


def test_what_is_judged_while_a_change_waits_has_moved() -> None:
    """A summary may come in the middle of a window: a checkpoint that moves is no end of a restoration."""
    sets = ["processing_guarantee=at_least_once", "kafka_streams_version=2.5.1", "num_standby_replicas=0"]
    run, last_s = steady_session(sets=sets)
    for number in range(1, 12):
        run.play(*checkpoint(last_s + number * GAP_S, 1_000 + number))
        run.until(second(last_s + number * GAP_S + 0.29))
        application_ = run.pipeline.inventory.applications["app"]
        task = application_.tasks["0_0"]
        case = TaskCase(
            run.pipeline.inventory, run.now_us, application_, task,
            settings=run.pipeline.settings.of("app"), profile=run.pipeline.profiles.of(application_),
        )  # fmt: skip
        store = task.stores["s"]
        assert store.session is not None
        assert restoration_end(case, task, store, store.session) is None


def no_window() -> Run:
    """Every change is read at once."""
    return steady_session(merge_window_us=0)[0]


def exactly_once() -> Run:
    """An active task writes no checkpoint while it runs: each that is written decides something."""
    return steady_session(sets=["processing_guarantee=exactly_once_v2"])[0]


def slow() -> Run:
    """Changes that are further apart than two windows are no run."""
    run = Run()
    run.play(*application(1), *opening(1))
    steady(run, gap_s=2.1)
    return run


def big_steps() -> Run:
    """More than 10,000 at a time is the commit timer's: a smaller step after it says where a restoration ended."""
    run = Run()
    run.play(*application(1), *opening(1))
    steady(run, step=10_001)
    return run


def falls() -> Run:
    """An offset that goes back is no step."""
    run, last_s = steady_session()
    run.play(*checkpoint(last_s + 2, 50))
    return run


def written_twice() -> Run:
    """The same content again is the end of a restoration."""
    run = Run()
    run.play(*application(1), *opening(1))
    steady(run, step=0)
    return run


def opened_again() -> Run:
    """The first checkpoint of a session decides what was restored."""
    run, last_s = steady_session()
    run.play(*release(last_s + 0.01))
    lock = "app/0_0/rocksdb/s/LOCK"
    run.play(Operation(second(last_s + 0.02), "lock", lock), Operation(second(last_s + 0.02), "create", lock))
    run.until(second(last_s + 0.15))
    return run


def flushing() -> Run:
    """A store that flushes: its checkpoint answers for what is on disk."""
    run, last_s = steady_session()
    path = "app/0_0/rocksdb/s/000009.sst"
    run.play(
        Operation(second(last_s + 0.01), "create", path), Operation(second(last_s + 0.01), "close_w", path)
    )
    return run


def being_deleted() -> Run:
    """A task of which files go."""
    run, last_s = steady_session()
    run.play(Operation(second(last_s + 0.01), "unlink", "app/0_0/rocksdb/s/CURRENT"))
    return run


@pytest.mark.parametrize(
    "made",
    [no_window, exactly_once, slow, big_steps, falls, written_twice, opened_again, flushing, being_deleted],
)
def test_read_at_once(made: Callable[[], Run]) -> None:
    """Whatever is not the middle of a steady run is read as it comes."""
    run = made()
    assert not waits(run, (run.now_us - second(0)) / 1e6 + 0.1, 70_000)


def closes(run: Run, at_s: float) -> None:
    run.play(*release(at_s))


def is_deleted(run: Run, at_s: float) -> None:
    run.play(*deletion(at_s)[:1])


def dies(run: Run, at_s: float) -> None:
    run.unseen(*kill(at_s, *LOCKS))
    run.until(second(at_s) + 250_001)


def is_walked_over(run: Run, at_s: float) -> None:
    run.until(second(at_s))
    run.pipeline.handle([Hint("", HintKind.RESCAN, run.now_us, cause="queue-overflow")], run.now_us)


def is_released(run: Run, at_s: float) -> None:
    run.play(Operation(second(at_s), "create", "app/0_0/.lock"))


def has_a_new_process(run: Run, at_s: float) -> None:
    run.play(Operation(second(at_s), "create", "app/kafka-streams-process-metadata"))


def ends(run: Run, at_s: float) -> None:
    run.until(second(at_s))
    assert run.pipeline.looker.windows.end()
    run.pipeline.tick(run.now_us)


@pytest.mark.parametrize(
    "event", [closes, is_deleted, dies, is_walked_over, is_released, has_a_new_process, ends]
)
def test_what_waits_is_read_before_what_depends_on_it(event: Callable[[Run, float], None]) -> None:
    """Before a close, a deletion, a change of a lock or of a process, a rescan, the end of the agent."""
    run, last_s = steady_session(merge_window_us=5_000_000)
    assert waits(run, last_s + 0.1, 500)
    known = len(run.changes())
    event(run, last_s + 0.11)
    assert run.changes()[known] == "checkpoint-written 0_0"
    assert offsets(run)[-1] == 500
    assert not run.pipeline.looker.windows.end()


GUARANTEES = {
    "unknown": [],
    "at-least-once": ["processing_guarantee=at_least_once"],
    "exactly-once": ["processing_guarantee=exactly_once_v2"],
}


def unlinked(run: Run, at_s: float) -> None:
    run.play(Operation(second(at_s), "unlink", CHECKPOINT))


def moved_away(run: Run, at_s: float) -> None:
    run.play(Operation(second(at_s), "rename", CHECKPOINT, to="app/0_0/aside"))


def deleted_and_written_again(run: Run, at_s: float) -> None:
    """All of it before the agent hears of the first: what was there in between was read by nobody."""
    run.play(Operation(second(at_s), "unlink", CHECKPOINT), *checkpoint(at_s + 0.01, 640))


def deleted_with_its_task(run: Run, at_s: float) -> None:
    """A walk that begins elsewhere, and is over before the agent hears of it."""
    run.play(*deletion(at_s)[:3], Operation(second(at_s), "unlink", CHECKPOINT), *deletion(at_s)[3:])


def wiped_by_its_owner(run: Run, at_s: float) -> None:
    run.play(*release(at_s))
    deleted_with_its_task(run, at_s + 0.01)


@pytest.mark.parametrize("guarantee", GUARANTEES)
@pytest.mark.parametrize(
    "gone", [unlinked, moved_away, deleted_and_written_again, deleted_with_its_task, wiped_by_its_owner]
)
def test_a_checkpoint_that_goes_while_it_waits_says_what_it_said_last(
    gone: Callable[[Run, float], None], guarantee: str
) -> None:
    """Deletions, and findings that rest on the content before one, are those of an agent that reads all at once."""
    exact, run = (
        steady_session(merge_window_us=x, sets=GUARANTEES[guarantee])[0] for x in (0, MERGE_WINDOW_US)
    )
    at_s = (exact.now_us - second(0)) / 1e6
    for one in (exact, run):
        for number in range(1, 4):
            one.play(*checkpoint(at_s + number * 0.1, 500 + number * 100))
        gone(one, at_s + 0.35)
        if not one.pipeline.inventory.applications["app"].tasks["0_0"].exists:
            one.play(*opening(at_s + 1.5, identity="id-2"))
        one.play(*checkpoint(at_s + 2, 600))  # less than it said before
        one.rest(REST_US)
    told = [[x for x in y.of(Kind.TRANSITION) if x["change"].endswith("-deleted")] for y in (exact, run)]
    assert told[0] == told[1]
    assert {x["offset_before"] for x in told[1] if x["change"] == "checkpoint-deleted"} == {800}
    assert _findings(exact) == _findings(run)
    assert _findings(run)


def _findings(run: Run) -> list[object]:
    return [
        (x.detector, x.id, x.severity, x.confidence, x.status, x.summary)
        for x in run.pipeline.ledger.findings()
    ]


def test_a_checkpoint_that_comes_back_is_read_at_once() -> None:
    """It begins a new run."""
    run, last_s = steady_session()
    assert waits(run, last_s + 0.1, 500)
    unlinked(run, last_s + 0.11)
    assert run.changes()[-2:] == ["checkpoint-written 0_0", "checkpoint-deleted 0_0"]
    assert not waits(run, last_s + 0.2, 600)


def test_a_window_is_longer_while_the_agent_is_behind() -> None:
    """By half of the delay that is allowed beside it, and no more."""
    run, last_s = steady_session()
    run.pipeline.looker.windows.is_behind = True
    for number in range(1, 5):
        at_us = second(last_s) + MERGE_WINDOW_US + GROWS_US - 1 - (4 - number) * 300_000
        assert waits(run, (at_us - second(0)) / 1e6, 500 + number)
    run.until(second(last_s) + MERGE_WINDOW_US + GROWS_US + TOGETHER_US + 1)
    assert offsets(run)[-1] == 504


def test_windows_move_with_the_clock() -> None:
    """A clock that is set back delays nothing."""
    run, last_s = steady_session()
    assert waits(run, last_s + 0.1, 500)
    due_us = run.pipeline.looker.windows.next_us()
    run.pipeline.shift(-3_000_000)
    assert run.pipeline.looker.windows.next_us() == (due_us or 0) - 3_000_000
