"""What changes who runs, and what runs: pods, releases, the topology."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.hunt.action import ADDS, UNSEEN, Action, Dice, Drawn, draw_pod
from tests.hunt.design import PODS, Run
from tests.live.plan import numbers

if TYPE_CHECKING:
    from tests.hunt.ground import Ground

UPGRADES = ("2.8.2", "3.6.2", "3.9.2", "4.2.1", "4.3.1")
DOWNGRADES = {"4.2.1": "4.0.0", "3.9.2": "3.7.2"}
"""Pairs whose stores the older one can open; 4.2 fails on stores of 4.3: it does not know their offsets' family."""
ALTERABLE = ("plain", "memory", "window", "session", "front")


def scale_in(ground: Ground, pod: str) -> None:
    """A pod closes and stays away, if another one is there."""
    if len(ground.pods) > 1:
        ground.stop(pod)
        ground.leave(pod)


def draw_any_pod(dice: Dice, _run: Run) -> Drawn:
    """One that may be there or not."""
    return {"other": dice.choice(PODS)}


def scale_out(ground: Ground, other: str) -> None:
    """A pod joins, if it is not there."""
    if other not in ground.pods:
        ground.join(other)


def draw_upgrade(dice: Dice, run: Run) -> Drawn:
    """To a later release; only from those that need no two steps."""
    later = [release for release in UPGRADES if numbers(release) > numbers(run.release)]
    return {"to": dice.choice(later)} if later and numbers(run.release) >= (2, 5) else None


def draw_downgrade(_dice: Dice, run: Run) -> Drawn:
    """To an earlier one, and later back."""
    return {"to": DOWNGRADES[run.release]} if run.release in DOWNGRADES else None


def change_release(ground: Ground, to: str) -> None:
    """All close in order; the other release starts on their directories, its agents configured for it."""
    _all_closed(ground)
    ground.release = to
    _all_again(ground)


def draw_alteration(dice: Dice, run: Run) -> Drawn:
    """A store that comes or goes; `front` gives every sub-topology another number."""
    if set(run.stores) & {"join", "inner", "foreign", "suppress", "unlogged"}:
        return None  # their topics are named by numbers that change: a topology that must be reset
    return {"store": dice.choice(ALTERABLE)}


def alter(ground: Ground, store: str) -> None:
    """All close in order; the next start has a store more, or less."""
    ground.settle_down()
    _all_closed(ground)
    ground.alter(store)
    _all_again(ground)


def _all_closed(ground: Ground) -> None:
    for pod in list(ground.pods):
        ground.stop(pod)


def _all_again(ground: Ground) -> None:
    for pod in list(ground.pods):
        ground.unwatch(pod)
        ground.join(pod)


ACTIONS = {
    "scale-in": Action(draw_pod, scale_in, tells=UNSEEN, weight=3),
    "scale-out": Action(draw_any_pod, scale_out, weight=4),
    "upgrade": Action(draw_upgrade, change_release, tells=UNSEEN, weight=2),
    "downgrade": Action(draw_downgrade, change_release, tells=UNSEEN),
    "alter": Action(draw_alteration, alter, ADDS, UNSEEN, weight=2),
}
