"""What an action is, and the dice that all of them throw."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tests.lab.design import Run

Dice = random.Random
Drawn = dict[str, Any] | None
"""What is done, in numbers and words; None: cannot be done to this run."""
MS = 1000
ADDS = frozenset({"adds"})
LOSES = frozenset({"loses"})
UNSEEN = frozenset({"auditor-blind", "unaudited"})
"""What is said where agents end, or where their clock is set."""
DOUBLES = frozenset({"doubles"})


@dataclass(frozen=True, slots=True)
class Action:
    """One entry of a registry.

    Args of the dataclass:
        draw: Draws what is done, from the dice and the run so far.
        play: Does it, on a `Ground`, with what was drawn as keywords. One that names a `pod` is left out where that
            pod does not run.
        may: What it may do to the truth: nothing, `adds` (at-least-once repeats work), `loses`, or `doubles`: what is
            there twice from then on is not the guarantee's doing, and must be told.
        tells: Detectors and rules whose warnings state what it does, to the pods and the store that it names.
        blinds: The cause that agents give for their blindness, if they are blinded.
        weight: How often it is drawn beside the others; 0: `draw.py` has a rule of its own for it.
        since: Oldest release that can do it.
    """

    draw: Callable[[Dice, Run], Drawn]
    play: Callable[..., None]
    may: frozenset[str] = frozenset()
    tells: frozenset[str] = frozenset()
    blinds: str = "agent-away"
    weight: int = 1
    since: str = "2.0.0"


def draw_nothing(_dice: Dice, _run: Run) -> Drawn:
    """Nothing to draw."""
    return {}


def pod_of(dice: Dice, run: Run) -> str:
    """Draw one of the pods of the beginning."""
    return dice.choice(run.pods)


def draw_pod(dice: Dice, run: Run) -> Drawn:
    """Which pod."""
    return {"pod": pod_of(dice, run)}


def draw_end(dice: Dice, run: Run) -> dict[str, Any]:
    """Which pod ends, and how long it is away."""
    return {"pod": pod_of(dice, run), "away_ms": dice.choice((0, 0, 300, 5000))}


def draw_delayed_end(dice: Dice, run: Run) -> Drawn:
    """The same with a time to close, from 5 ms to 2 s."""
    return {**draw_end(dice, run), "delay_ms": round(5 * 400 ** dice.random())}
