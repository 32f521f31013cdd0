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
    """One entry of a registry."""

    draw: Callable[[Dice, Run], Drawn]  # draws what is done, from the dice and the run so far
    # Does it, on a `Ground`, with what was drawn as keywords. One that names a `pod` is left out where that pod
    # does not run.
    play: Callable[..., None]
    # What it may do to the truth: nothing, `adds` (at-least-once repeats work), `loses`, or `doubles`: what is
    # there twice from then on is not the guarantee's doing, and must be told
    may: frozenset[str] = frozenset()
    # Detectors and rules whose warnings state what it does, to the pods and the store that it names
    tells: frozenset[str] = frozenset()
    blinds: str = "agent-away"  # the cause that agents give for their blindness, if they are blinded
    weight: int = 1  # how often it is drawn beside the others; 0: `draw.py` has a rule of its own for it
    since: str = "2.0.0"  # oldest release that can do it


Choice = tuple[Any, ...] | float | Callable[[Dice, Run], Any]


def pod_of(dice: Dice, run: Run) -> str:
    """Draw one of the pods of the beginning."""
    return dice.choice(run.pods)


AWAY_MS = (0, 0, 300, 5000)


def delay_ms(dice: Dice, _run: Run) -> int:
    """Draw a time to close, from 5 ms to 2 s."""
    return round(5 * 400 ** dice.random())


def drawn(
    fits: Callable[[Run], object] = lambda _run: True, **choices: Choice
) -> Callable[[Dice, Run], Drawn]:
    """Draw arguments, in order, where it `fits` a run.

    `choices` of each argument: one of these, yes with this share, or what a function draws.
    """

    def draw(dice: Dice, run: Run) -> Drawn:
        return {name: _chosen(dice, run, x) for name, x in choices.items()} if fits(run) else None

    return draw


def _chosen(dice: Dice, run: Run, choice: Choice) -> Any:
    if isinstance(choice, tuple):
        return dice.choice(choice)
    return dice.random() < choice if isinstance(choice, float) else choice(dice, run)
