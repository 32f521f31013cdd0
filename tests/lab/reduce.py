"""Leave out steps of a run until what it was judged for needs all that are left. The runner is handed in."""

from __future__ import annotations

from collections.abc import Callable

from tests.lab.design import Run


def reduce_run(run: Run, still_fails: Callable[[Run], bool]) -> Run:
    """Give the run with as few steps as still fail: halves first, then smaller pieces, then one by one.

    Args:
        run: One that fails.
        still_fails: Plays a run and tells whether it is judged for the same.
    """
    size = max(1, len(run.steps) // 2)
    while True:
        shorter = _without_a_piece(run, size, still_fails)
        if shorter is not None:
            run = shorter
            size = min(size, max(1, len(run.steps) // 2))
        elif size == 1:
            return run
        else:
            size = size // 2


def _without_a_piece(run: Run, size: int, still_fails: Callable[[Run], bool]) -> Run | None:
    """Leave out the first piece that is not needed, from the end on: what comes last is needed least."""
    for begin in range(max(0, len(run.steps) - size), -1, -size):
        candidate = run.with_steps(run.steps[:begin] + run.steps[begin + size :])
        if candidate.steps and still_fails(candidate):
            return candidate
    return None
