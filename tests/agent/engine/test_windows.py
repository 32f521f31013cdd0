"""Which changes of a checkpoint wait, and what never does."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

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

GAP_S = 0.3
LOCKS = ("app/0_0/rocksdb/s/LOCK", "app/.lock")
REST_US = 15_000_000
WINDOWS_US = (250_000, 1_000_000, 5_000_000)


def offsets(run: Run) -> list[int]:
    """List the offsets that were reported, in order."""
    return [x["offset_after"] for x in run.of(Kind.TRANSITION) if x["change"] == "checkpoint-written"]


def steady(
    run: Run, from_s: float = 2, changes: int = CHECKPOINTS_KEPT, *, step: int = 10, gap_s: float = GAP_S
) -> float:
    """Move a checkpoint so often, in a session if there is one; return when the last change came."""
    for number in range(changes):
        run.play(*checkpoint(from_s + number * gap_s, 100 + number * step))
    return from_s + (changes - 1) * gap_s


def steady_session(**more: object) -> tuple[Run, float]:
    """Play a task that is open and so steady that the next change waits."""
    run = Run(**more)  # type: ignore[arg-type]
    run.play(*application(1), *opening(1))
    run.until(second(2))
    return run, steady(run)


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


def test_a_checkpoint_that_is_deleted_while_it_waits_is_gone() -> None:
    """Its content can no longer be read; that it was deleted is reported, of the one before."""
    run, last_s = steady_session()
    assert waits(run, last_s + 0.1, 500)
    run.play(Operation(second(last_s + 0.11), "unlink", "app/0_0/.checkpoint"))
    assert run.changes()[-1] == "checkpoint-deleted 0_0"
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


# -- any order ----------------------------------------------------------------------------------------

_EVENTS = ("checkpoint",) * 12 + ("flush", "release", "open", "kill", "rescan", "lock")
_steps = st.tuples(st.sampled_from(_EVENTS), st.sampled_from((0.001, 0.05, 0.2, 0.3, 0.45, 1.5)))


def play_steps(steps: Sequence[tuple[str, float]], window_us: int) -> Run:
    """Play a steady run, then drawn events."""
    run, at_s = steady_session(merge_window_us=window_us)
    lock, offset, flushed = LOCKS[0], 1_000, 10
    for event, gap_s in steps:
        at_s += gap_s
        at_us = second(at_s)
        if event == "checkpoint":
            offset += 1
            run.play(*checkpoint(at_s, offset))
        elif event == "flush":
            flushed += 1
            path = f"app/0_0/rocksdb/s/{flushed:06}.sst"
            run.play(Operation(at_us, "create", path), Operation(at_us, "close_w", path))
        elif event == "release":
            run.play(*release(at_s))
        elif event == "open":
            run.play(Operation(at_us, "lock", lock), Operation(at_us, "create", f"{lock}.x"))
            run.play(Operation(at_us, "rename", "app/0_0/rocksdb/s/CURRENT", to="app/0_0/rocksdb/s/CURRENT"))
        elif event == "kill":
            run.unseen(*kill(at_s, *LOCKS))
        elif event == "rescan":
            run.until(at_us)
            run.pipeline.handle([Hint("app/0_0", HintKind.RESCAN, run.now_us, cause="periodic")], run.now_us)
        else:
            run.play(Operation(at_us, "create", "app/0_0/.lock"))
    run.rest(REST_US)
    return run


def merged(run: Run) -> list[object]:
    """List what was reported; of checkpoints that follow each other directly only the last."""
    told = [
        (x["change"], x.get("offset_after") if x["change"] == "checkpoint-written" else None)
        for x in run.of(Kind.TRANSITION)
    ]
    return [
        x for x, after in pairwise((*told, ("", None))) if x[0] != "checkpoint-written" or after[0] != x[0]
    ]


@settings(max_examples=15)
@given(st.lists(_steps, max_size=24), st.sampled_from(WINDOWS_US))
def test_in_any_order_only_contents_between_two_checkpoints_are_lost(
    steps: Sequence[tuple[str, float]], window_us: int
) -> None:
    """Whatever else changes is reported as without windows, after the same checkpoint; so are the findings."""
    exact, run = play_steps(steps, 0), play_steps(steps, window_us)
    assert merged(run) == merged(exact)
    assert offsets(run)[-1] == offsets(exact)[-1]
    found = [[(x.detector, x.id, x.severity) for x in y.pipeline.ledger.findings()] for y in (exact, run)]
    assert found[0] == found[1]


@settings(max_examples=15)
@given(st.lists(_steps, max_size=24), st.sampled_from(WINDOWS_US))
def test_in_any_order_the_delay_is_bounded_and_what_stays_is_read(
    steps: Sequence[tuple[str, float]], window_us: int
) -> None:
    """Each content, or a later one, is known by the end of the window; one that stayed is known itself."""
    exact, run = play_steps(steps, 0), play_steps(steps, window_us)
    written = [(x["offset_after"], x["occurred_at_us"]) for x in _written(exact)]
    seen = [(x["offset_after"], x["observed_at_us"]) for x in _written(run)]
    for (offset, at_us), (_, next_us) in pairwise((*written, (0, written[-1][1] + 10 * window_us))):
        by_us = next(seen_us for known, seen_us in seen if known >= offset)
        assert by_us - at_us <= window_us + TOGETHER_US
        if next_us - at_us >= UNCHANGED_US:
            assert offset in [known for known, _ in seen]


def _written(run: Run) -> list[dict[str, Any]]:
    return [
        {**x.body, "observed_at_us": x.observed_at_us}
        for x in run.records
        if x.kind is Kind.TRANSITION and x.body["change"] == "checkpoint-written"
    ]
