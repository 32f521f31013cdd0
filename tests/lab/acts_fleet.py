"""What changes who runs, and what runs: pods, releases, the topology."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.lab.action import ADDS, UNSEEN, Action, drawn, pod_of
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


def scale_out(ground: Ground, other: str) -> None:
    """A pod joins, if it is not there."""
    if other not in ground.pods:
        ground.join(other)


def change_release(ground: Ground, to: str) -> None:
    """All close in order; the other release starts on their directories, its agents configured for it."""
    _all_closed(ground)
    ground.release = to
    _all_again(ground)


def alter(ground: Ground, store: str) -> None:
    """All close in order; the next start has a store more, or less."""
    ground.settle_down()
    _all_closed(ground)
    ground.alter(store)
    _all_again(ground)


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


def _later(run: Run) -> tuple[str, ...]:
    """Give the releases that an upgrade can go to; only from those that need no two steps."""
    old = numbers(run.release)
    return tuple(release for release in CHAIN if numbers(release) > old) if old >= (2, 5) else ()


def _older(run: Run) -> str | None:
    """Give the release before, if that can open the stores."""
    return None if "group.protocol" in run.settings else downgrade_of(run.release)


def _renamed(run: Run) -> tuple[str, ...]:
    return tuple(name for name in RENAMED if name in run.stores) if _may_change(run) else ()


ACTIONS = {
    "scale-in": Action(drawn(pod=pod_of), scale_in, tells=UNSEEN, weight=3),
    "scale-out": Action(drawn(other=PODS), scale_out, weight=4),
    "upgrade": Action(
        drawn(_later, to=lambda dice, run: dice.choice(_later(run))), change_release, tells=UNSEEN, weight=2
    ),
    "downgrade": Action(drawn(_older, to=lambda _dice, run: _older(run)), change_release, tells=UNSEEN),
    # `front` gives every sub-topology another number
    "alter": Action(drawn(_may_change, store=ALTERABLE), alter, ADDS, UNSEEN, weight=2),
    "rename": Action(
        drawn(_renamed, store=lambda dice, run: dice.choice(_renamed(run))), rename, ADDS, UNSEEN, weight=2
    ),
}
