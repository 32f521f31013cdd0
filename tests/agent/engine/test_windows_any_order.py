"""Windows in any order of events: what is merged, and what is never lost, beside an agent that reads all at once."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from agent.contract.events import Kind
from agent.engine.windows import TOGETHER_US
from agent.inventory.hints import Hint, HintKind
from agent.judging.restoration_end import UNCHANGED_US
from agent.replay.trace import Operation
from tests.agent.engine.playing import Run, checkpoint, kill, release, second
from tests.agent.engine.steady_runs import CHECKPOINT, LOCKS, REST_US, offsets, steady_session

WINDOWS_US = (250_000, 1_000_000, 5_000_000)

_EVENTS = ("checkpoint",) * 12 + ("back", "leap", "flush", "release", "open", "kill", "rescan", "lock")
_MOVES = {"checkpoint": 1, "back": -200, "leap": 10_500}
_GAPS_S = st.sampled_from((0.001, 0.05, 0.2, 0.3, 0.45, 1.5))
_steps = st.tuples(st.sampled_from(_EVENTS), _GAPS_S)
_steps_and_removals = st.tuples(st.sampled_from((*_EVENTS, *("remove",) * 4)), _GAPS_S)


def play_steps(steps: Sequence[tuple[str, float]], window_us: int) -> Run:
    """Play a steady run, then drawn events."""
    run, at_s = steady_session(merge_window_us=window_us)
    lock, offset, flushed = LOCKS[0], 1_000, 10
    for event, gap_s in steps:
        at_s += gap_s
        at_us = second(at_s)
        if event in _MOVES:
            offset += _MOVES[event]
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
        elif event == "remove":
            run.play(Operation(at_us, "unlink", CHECKPOINT))
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


@settings(max_examples=20)
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


@settings(max_examples=20)
@given(st.lists(_steps_and_removals, max_size=24), st.sampled_from(WINDOWS_US))
def test_in_any_order_no_last_content_is_lost_to_a_removal(
    steps: Sequence[tuple[str, float]], window_us: int
) -> None:
    """What a checkpoint said when it went is known, and reported with its deletion."""
    exact, run = play_steps(steps, 0), play_steps(steps, window_us)
    assert merged(run) == merged(exact)
    gone = [[x for x in y.of(Kind.TRANSITION) if x["change"] == "checkpoint-deleted"] for y in (exact, run)]
    assert gone[0] == gone[1]


@settings(max_examples=20)
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
