"""Checkpoints that move so steadily that the next change waits."""

from __future__ import annotations

from agent.contract.events import Kind
from agent.inventory.model import CHECKPOINTS_KEPT
from tests.agent.engine.playing import Run, application, checkpoint, opening, second

GAP_S = 0.3
CHECKPOINT = "app/0_0/.checkpoint"
LOCKS = ("app/0_0/rocksdb/s/LOCK", "app/.lock")
REST_US = 15_000_000


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
