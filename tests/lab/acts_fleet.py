"""What changes who runs, and what runs: pods, releases, the topology."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.lab.action import ADDS, UNSEEN, Action, Dice, Drawn, draw_pod
from tests.lab.design import PODS, Run
from tests.lab.plan import CHAIN, downgrade_of, numbers

if TYPE_CHECKING:
    from tests.lab.ground import Ground

RENAMED = ("kv", "window")
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
    later = [release for release in CHAIN if numbers(release) > numbers(run.release)]
    return {"to": dice.choice(later)} if later and numbers(run.release) >= (2, 5) else None


def draw_downgrade(_dice: Dice, run: Run) -> Drawn:
    """To the one before, if that can open the stores."""
    older = downgrade_of(run.release)
    return {"to": older} if older and "group.protocol" not in run.settings else None


def change_release(ground: Ground, to: str) -> None:
    """All close in order; the other release starts on their directories, its agents configured for it."""
    _all_closed(ground)
    ground.release = to
    _all_again(ground)


def draw_alteration(dice: Dice, run: Run) -> Drawn:
    """A store that comes or goes; `front` gives every sub-topology another number."""
    return {"store": dice.choice(ALTERABLE)} if _may_change(run) else None


def alter(ground: Ground, store: str) -> None:
    """All close in order; the next start has a store more, or less."""
    ground.settle_down()
    _all_closed(ground)
    ground.alter(store)
    _all_again(ground)


def draw_rename(dice: Dice, run: Run) -> Drawn:
    """A store that gets another name, or its old one back."""
    known = [name for name in RENAMED if name in run.stores]
    return {"store": dice.choice(known)} if known and _may_change(run) else None


def rename(ground: Ground, store: str) -> None:
    """All close in order; the next start knows the store by another name: a new one, and the old one stays on disk."""
    ground.settle_down()
    _all_closed(ground)
    for name in (store, f"{store}-b"):
        ground.alter(name)
    _all_again(ground)


def _may_change(run: Run) -> bool:
    """Tell whether a run's topology may change without a reset.

    Some topics are named by numbers that change with it, and a group of the streams protocol refuses another topology.
    """
    numbered = {"join", "inner", "foreign", "suppress", "unlogged"}
    return "group.protocol" not in run.settings and not numbered & set(run.stores)


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
    "rename": Action(draw_rename, rename, ADDS, UNSEEN, weight=2),
}
