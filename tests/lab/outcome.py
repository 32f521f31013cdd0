"""What came of all runs: a summary, and the exit code."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tests.lab.design import Run
from tests.lab.judge import verdict
from tests.lab.play import Result

RIGHT, WRONG, TOO_FEW = 0, 1, 3
"""Exit codes; 2 is for arguments that make no sense and tools that are not there."""


def play_all(
    runs: Sequence[Run], more: int, play_one: Callable[[Run], Result], is_over: Callable[[], bool]
) -> None:
    """Play runs until the time is over; none is broken off for that.

    Those that broke off are played up to `more` times again, after all others.
    """
    for _ in range(more + 1):
        broken = []
        for run in runs:
            if is_over():
                return
            if play_one(run).problem:
                broken.append(run)
        runs = broken


def summary(results: Sequence[Result]) -> str:
    """Say what came of all runs in a few lines."""
    counted = [result for result in results if not result.problem]
    totals = verdict(one for result in counted for one in result.judgements)
    peak = max((health.peak_mib for result in counted for health in result.healths), default=0.0)
    return (
        f"{len(counted)} runs counted, {len(results) - len(counted)} broke off; "
        f"{sum(result.is_judged for result in counted)} judged: "
        f"{', '.join(f'{kind} {count}' for kind, count in sorted(totals.items())) or 'nothing'}"
        f"{f'; agents at most {peak:.0f} MiB' if peak else ''}\n"
    )


def conclusion(results: Sequence[Result], asked: Sequence[Run], enough: int) -> tuple[int, str]:
    """Decide how the hunt ends: exit code, and the lines that say why.

    Runs without a verdict are named even where they may be. Fewer different runs than `enough` prove too little.
    """
    wrong = dict.fromkeys(result.run.name for result in results if result.is_judged)
    counted = {result.run.name for result in results if not result.problem}
    tried = {result.run.name for result in results}
    lines = [f"wrong word: {name}\n" for name in wrong]
    for run in asked:
        if run.name not in counted:
            reason = "broke off" if run.name in tried else "not played, the time was over"
            lines.append(f"no verdict: {run.name}: {reason}\n")
    if wrong:
        return WRONG, "".join(lines)
    if len(counted) < enough:
        lines.append(f"too few: {len(counted)} runs counted, {enough} must\n")
        return TOO_FEW, "".join(lines)
    return RIGHT, "".join(lines)
