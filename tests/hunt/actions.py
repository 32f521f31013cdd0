"""What is done to an application: one entry per action. Adding one is adding an entry here."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tests.hunt.design import Run

if TYPE_CHECKING:
    from tests.hunt.ground import Ground

Dice = random.Random
MS = 1000


@dataclass(frozen=True, slots=True)
class Action:
    """One entry of the registry.

    Args of the dataclass:
        draw: Draws what is done, from the dice and the run so far; None: cannot be done to this run.
        play: Does it.
        may: What it may do to the truth: nothing, `adds` (at-least-once repeats work) or `loses`.
        weight: How often it is drawn beside the others.
        since: Oldest release that can do it.
        is_unclean: After it a process was ended, or stopped for longer than its membership lasts.
    """

    draw: Callable[[Dice, Run], dict[str, Any] | None]
    play: Callable[..., None]
    may: frozenset[str] = frozenset()
    weight: int = 1
    since: str = "2.0.0"
    is_unclean: bool = False


ADDS = frozenset({"adds"})


def pod_of(dice: Dice, run: Run) -> str:
    """Draw one of the pods."""
    return dice.choice(run.pods)


# ------------------------------------------------------------------------------------ records


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
        "until": dice.choice(("sent", "some", "committed")),
    }


def records(ground: Ground, count: int, step_ms: int, jump_ms: int, until: str) -> None:
    """Send them, and wait for nothing, for the first of them, or for all to be committed."""
    ground.feed(count, step_ms, jump_ms)
    ground.wait(until)


def draw_again(dice: Dice, _run: Run) -> dict[str, Any]:
    """Keys that were sent before, later or late but within the grace."""
    return {
        "share": dice.choice((10, 50, 100)),
        "back_ms": dice.choice((0, 0, 5 * MS, 15 * MS)),
        "delete": dice.random() < 0.3,
        "until": dice.choice(("sent", "some", "committed")),
    }


def again(ground: Ground, share: int, back_ms: int, delete: bool, until: str) -> None:
    """Send the newest `share` percent of the keys again; as deletions they go to the tables."""
    ground.feed_again(share, back_ms, delete)
    ground.wait(until)


# ------------------------------------------------------------------------------------ ends


def draw_end(dice: Dice, run: Run) -> dict[str, Any]:
    """Which pod, and how long it is away."""
    return {"pod": pod_of(dice, run), "away_ms": dice.choice((0, 0, 300, 5000))}


def kill(ground: Ground, pod: str, away_ms: int) -> None:
    """SIGKILL, and start again."""
    ground.kill(pod)
    ground.back(pod, away_ms)


def close(ground: Ground, pod: str, away_ms: int) -> None:
    """Close in order, and start again."""
    ground.stop(pod)
    ground.back(pod, away_ms)


def draw_delayed(dice: Dice, run: Run) -> dict[str, Any]:
    """The same with a time to close, from 5 ms to 2 s."""
    return {**draw_end(dice, run), "delay_ms": round(5 * 400 ** dice.random())}


def close_killed(ground: Ground, pod: str, away_ms: int, delay_ms: int) -> None:
    """The time to close runs out: SIGTERM, SIGKILL."""
    ground.close_for(pod, "close", delay_ms)
    ground.back(pod, away_ms)


def close_at_once(ground: Ground, pod: str, away_ms: int, delay_ms: int) -> None:
    """`close(0)`, and the process ends a moment later."""
    ground.close_for(pod, "close 0", delay_ms)
    ground.back(pod, away_ms)


def draw_freeze(dice: Dice, run: Run) -> dict[str, Any]:
    """Sessions end after 3 s, transactions after 10 s."""
    return {"pod": pod_of(dice, run), "for_ms": dice.choice((2 * MS, 6 * MS, 14 * MS))}


def freeze(ground: Ground, pod: str, for_ms: int) -> None:
    """SIGSTOP and SIGCONT."""
    ground.freeze(pod)
    ground.idle(for_ms / MS, f"{pod} stands still")
    ground.thaw(pod)


# ------------------------------------------------------------------------------------ truth


def draw_nothing(_dice: Dice, _run: Run) -> dict[str, Any]:
    """Nothing to draw."""
    return {}


def check(ground: Ground) -> None:
    """Wait until everything is committed, and compare every store with what was sent."""
    ground.check()


ACTIONS: dict[str, Action] = {
    "records": Action(draw_records, records, weight=0),
    "again": Action(draw_again, again, weight=0),
    "check": Action(draw_nothing, check, weight=0),
    "kill": Action(draw_end, kill, ADDS, weight=4, is_unclean=True),
    "close": Action(draw_end, close, weight=2),
    "close-killed": Action(draw_delayed, close_killed, ADDS, weight=4, is_unclean=True),
    "close-at-once": Action(draw_delayed, close_at_once, ADDS, weight=2, is_unclean=True),
    "freeze": Action(draw_freeze, freeze, ADDS, weight=2, is_unclean=True),
}
"""Weight 0: placed by `draw.py` by its own rule."""
