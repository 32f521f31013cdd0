"""What happens around the application: to the broker, to its topics, to the agents."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.lab.action import ADDS, DOUBLES, LOSES, MS, UNSEEN, Action, Dice, Drawn, draw_nothing, pod_of
from tests.lab.design import Run

if TYPE_CHECKING:
    from tests.lab.ground import Ground

CUT = frozenset({"changelog-truncated"})
LOGGED = frozenset({"kv", "plain", "memory", "third", "window", "session"})
RESETTABLE = frozenset({"kv", "plain", "memory", "window", "session", "empty"})
"""Stores that are filled from the input alone, so that reading it again fills them again."""


def draw_stall(dice: Dice, _run: Run) -> Drawn:
    """Shorter and longer than sessions and transactions."""
    return {"for_ms": dice.choice((2 * MS, 7 * MS, 15 * MS))}


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


def draw_reset(dice: Dice, run: Run) -> Drawn:
    """With or without `cleanUp()` of the pods."""
    return {"cleanup": dice.random() < 0.5} if set(run.stores) <= RESETTABLE else None


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


def draw_cut(dice: Dice, run: Run) -> Drawn:
    """Which of the changelogs that are not compacted only: of these, no records can be deleted."""
    windowed = [name for name in run.stores if name in ("window", "session")]
    return {"store": dice.choice(windowed)} if windowed else None


def delete_records(ground: Ground, store: str) -> None:
    """The first half of a changelog is deleted."""
    ground.catch_up()
    ground.broker.do(f"cut {ground.id}-{store}-changelog")
    ground.mark(f"half of the changelog of {store} is deleted")


def draw_recreated(dice: Dice, run: Run) -> Drawn:
    """One whose store has a changelog of its own."""
    return {"store": dice.choice([name for name in run.stores if name in LOGGED])}


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


def draw_agent(dice: Dice, run: Run) -> Drawn:
    """Killed or stopped, and for how long it is away."""
    return {
        "pod": pod_of(dice, run),
        "how": dice.choice(("kill", "stop")),
        "away_ms": dice.choice((0, 5 * MS)),
    }


def restart_agents(ground: Ground, pod: str, how: str, away_ms: int) -> None:
    """Both agents of a pod end and come back with their spool, records come meanwhile."""
    ground.end_agents(pod, how)
    ground.feed(100, 1, 0)
    ground.idle(away_ms / MS, "nobody watches")
    ground.watch(pod)


def draw_step(dice: Dice, run: Run) -> Drawn:
    """By how much the agents' clock is set, and for how long."""
    return {
        "pod": pod_of(dice, run),
        "by_s": dice.choice((-3600, -30, 5, 30, 3600)),
        "for_ms": dice.choice((3 * MS, 10 * MS)),
        "and_back": dice.random() < 0.7,
    }


def step_clock(ground: Ground, pod: str, by_s: int, for_ms: int, and_back: bool) -> None:
    """The clock of a pod's agents is set, and perhaps set right again."""
    ground.set_clock(pod, by_s)
    ground.idle(for_ms / MS, "their clock is wrong")
    if and_back:
        ground.set_clock(pod, 0)


ACTIONS = {
    "stall": Action(draw_stall, stall, ADDS, weight=3),
    "restart-broker": Action(draw_nothing, restart_broker, ADDS),
    "reset": Action(draw_reset, reset, DOUBLES, CUT, weight=2),
    "delete-records": Action(draw_cut, delete_records, LOSES, CUT),
    "recreate-changelog": Action(draw_recreated, recreate_changelog, LOSES, CUT, weight=2),
    "restart-agents": Action(draw_agent, restart_agents, tells=UNSEEN, weight=3),
    "step-clock": Action(draw_step, step_clock, tells=UNSEEN, blinds="clock-step", weight=2),
}
