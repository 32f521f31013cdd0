"""Records, and looks at the truth."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.lab.action import MS, Action, Dice, drawn
from tests.lab.design import Run

if TYPE_CHECKING:
    from tests.lab.ground import Ground


def draw_records(dice: Dice, run: Run) -> dict[str, Any]:
    """New keys; stream time often crosses into another segment while data of the last one is not flushed."""
    retention_ms = int(run.settings["retention.ms"])
    step_ms = dice.choice((0, 1, 3, 30))
    count = dice.choice((20, 200, 800, 2500))
    return {
        "count": count,
        "step_ms": min(step_ms, retention_ms // 4 // count),
        "jump_ms": dice.choice(
            (0, 0, 0, retention_ms // 4, retention_ms // 2, retention_ms // 2, retention_ms)
        ),
        "until": dice.choice(UNTIL),
    }


def records(ground: Ground, count: int, step_ms: int, jump_ms: int, until: str) -> None:
    """Send them, and wait for nothing, for the first of them, or for all to be committed."""
    ground.feed(count, step_ms, jump_ms)
    ground.wait(until)


def again(ground: Ground, share: int, back_ms: int, delete: bool, until: str) -> None:
    """Send the newest `share` percent of the keys again, later or late; as deletions they go to the tables."""
    ground.feed_again(share, back_ms, delete)
    ground.wait(until)


def check(ground: Ground) -> None:
    """Wait until everything is committed, and compare every store with what was sent."""
    ground.check()


UNTIL = ("sent", "some", "committed")
AGAIN = drawn(share=(10, 50, 100), back_ms=(0, 0, 5 * MS, 15 * MS), delete=0.3, until=UNTIL)

ACTIONS = {
    "records": Action(draw_records, records, weight=0),
    "again": Action(AGAIN, again, weight=0),
    "check": Action(drawn(), check, weight=0),
}
