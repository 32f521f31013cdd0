"""What happens around the application: to the broker, to its topics, to the agents."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import TYPE_CHECKING

from tests.lab.action import ADDS, DOUBLES, LOSES, MS, UNSEEN, Action, Dice, drawn, pod_of
from tests.lab.design import Run

if TYPE_CHECKING:
    from tests.lab.ground import Ground

CUT = frozenset({"changelog-truncated"})
DELETED = frozenset({"window", "session"})
LOGGED = frozenset({"kv", "plain", "memory", "third", "window", "session"})
RESETTABLE = frozenset({"kv", "plain", "memory", "window", "session", "empty"})
"""Stores that are filled from the input alone, so that reading it again fills them again."""


def stall(ground: Ground, for_ms: int) -> None:
    """The broker answers nobody for a while."""
    ground.feed(200, 1, 0)
    ground.broker.stall(for_ms / MS)
    ground.mark("the broker goes on")


def restart_broker(ground: Ground) -> None:
    """The broker is killed and started again."""
    ground.feed(200, 1, 0)
    ground.broker.restart()
    ground.mark("the broker goes on")


def reset(ground: Ground, cleanup: bool) -> None:
    """The application is reset: changelogs and offsets are deleted, the input is read again from its beginning."""
    ground.catch_up()
    pods = list(ground.pods)
    for pod in pods:
        ground.stop(pod)
    ground.forget()
    for pod in pods:
        java = ground.prepare(pod)
        if cleanup:
            ground.order(pod, "cleanup")
        java.ask("start")


def delete_records(ground: Ground, store: str) -> None:
    """The first half of a changelog is deleted."""
    ground.catch_up()
    ground.broker.do(f"cut {ground.id}-{store}-changelog")
    ground.mark(f"half of the changelog of {store} is deleted")


def recreate_changelog(ground: Ground, store: str) -> None:
    """A changelog is deleted and made again, empty, while nothing runs; the volumes stay as they are."""
    if store not in ground.stores.split(","):
        return
    ground.catch_up()
    pods = list(ground.pods)
    for pod in pods:
        ground.stop(pod)
    ground.broker.do(f"recreate {ground.id}-{store}-changelog")
    ground.mark(f"the changelog of {store} is recreated")
    for pod in pods:
        ground.back(pod)


def restart_agents(ground: Ground, pod: str, how: str, away_ms: int) -> None:
    """Both agents of a pod end and come back with their spool, records come meanwhile."""
    ground.end_agents(pod, how)
    ground.feed(100, 1, 0)
    ground.idle(away_ms / MS, "nobody watches")
    ground.watch(pod)


def step_clock(ground: Ground, pod: str, by_s: int, for_ms: int, and_back: bool) -> None:
    """The clock of a pod's agents is set, and perhaps set right again."""
    ground.set_clock(pod, by_s)
    ground.idle(for_ms / MS, "their clock is wrong")
    if and_back:
        ground.set_clock(pod, 0)


def one_of(names: Collection[str]) -> Callable[[Dice, Run], str]:
    """Draw one of the run's stores that has such a name."""
    return lambda dice, run: dice.choice([name for name in run.stores if name in names])


ACTIONS = {
    # shorter and longer than sessions and transactions
    "stall": Action(drawn(for_ms=(2 * MS, 7 * MS, 15 * MS)), stall, ADDS, weight=3),
    "restart-broker": Action(drawn(), restart_broker, ADDS),
    "reset": Action(
        drawn(lambda run: set(run.stores) <= RESETTABLE, cleanup=0.5), reset, DOUBLES, CUT, weight=2
    ),
    # of compacted changelogs no records can be deleted
    "delete-records": Action(
        drawn(lambda run: DELETED & set(run.stores), store=one_of(DELETED)), delete_records, LOSES, CUT
    ),
    "recreate-changelog": Action(drawn(store=one_of(LOGGED)), recreate_changelog, LOSES, CUT, weight=2),
    "restart-agents": Action(
        drawn(pod=pod_of, how=("kill", "stop"), away_ms=(0, 5 * MS)), restart_agents, tells=UNSEEN, weight=3
    ),
    "step-clock": Action(
        drawn(pod=pod_of, by_s=(-3600, -30, 5, 30, 3600), for_ms=(3 * MS, 10 * MS), and_back=0.7),
        step_clock, tells=UNSEEN, blinds="clock-step", weight=2,
    ),
}  # fmt: skip
