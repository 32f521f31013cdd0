"""What ends, stops or disturbs a process."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.lab.action import (
    ADDS,
    MS,
    Action,
    Dice,
    Drawn,
    draw_delayed_end,
    draw_end,
    pod_of,
)
from tests.lab.design import Run
from tests.lab.plan import numbers

if TYPE_CHECKING:
    from tests.lab.ground import Ground


def kill(ground: Ground, pod: str, away_ms: int) -> None:
    """SIGKILL, and start again."""
    ground.kill(pod)
    ground.back(pod, away_ms)


def close(ground: Ground, pod: str, away_ms: int) -> None:
    """Close in order, and start again."""
    ground.stop(pod)
    ground.back(pod, away_ms)


def close_killed(ground: Ground, pod: str, away_ms: int, delay_ms: int) -> None:
    """The time to close runs out: SIGTERM, SIGKILL."""
    ground.close_for(pod, "close", delay_ms)
    ground.back(pod, away_ms)


def close_at_once(ground: Ground, pod: str, away_ms: int, delay_ms: int) -> None:
    """`close(0)`, and the process ends a moment later."""
    ground.close_for(pod, "close 0", delay_ms)
    ground.back(pod, away_ms)


def kill_all(ground: Ground, away_ms: int) -> None:
    """Every pod at once, as with a node."""
    pods = list(ground.pods)
    for pod in pods:
        ground.kill(pod)
    for pod in pods:
        ground.back(pod, away_ms)


def draw_away(dice: Dice, _run: Run) -> Drawn:
    """How long they are away."""
    return {"away_ms": dice.choice((0, 300, 5000))}


def draw_freeze(dice: Dice, run: Run) -> Drawn:
    """Sessions end after 6 s, transactions after 10 s."""
    return {"pod": pod_of(dice, run), "for_ms": dice.choice((2 * MS, 9 * MS, 16 * MS))}


def freeze(ground: Ground, pod: str, for_ms: int) -> None:
    """SIGSTOP and SIGCONT."""
    ground.freeze(pod)
    ground.idle(for_ms / MS, f"{pod} stands still")
    ground.thaw(pod)


def draw_threads(dice: Dice, run: Run) -> Drawn:
    """One is added before one is removed: an instance without a thread does nothing."""
    return {"pod": pod_of(dice, run), "between_ms": dice.choice((0, 2 * MS)), "remove": dice.random() < 0.7}


def threads(ground: Ground, pod: str, between_ms: int, remove: bool) -> None:
    """Add a stream thread, and perhaps remove one."""
    ground.order(pod, "thread add")
    if remove:
        ground.idle(between_ms / MS, "a thread more")
        ground.order(pod, "thread remove")


def draw_failure(dice: Dice, run: Run) -> Drawn:
    """How many records fail."""
    return {"pod": pod_of(dice, run), "times": dice.choice((1, 1, 3))}


def failure(ground: Ground, pod: str, times: int) -> None:
    """Records fail their thread, which is replaced, or ends the instance, which is started again."""
    ground.order(pod, f"poison {times}")
    ground.feed(50, 1, 0)
    ground.wait("some")


def draw_pause(dice: Dice, run: Run) -> Drawn:
    """For how long."""
    return {
        "pod": pod_of(dice, run),
        "for_ms": dice.choice((500, 4 * MS)),
        "then": dice.choice(("go", "kill")),
    }


def pause(ground: Ground, pod: str, for_ms: int, then: str) -> None:
    """`pause()`, records in between, `resume()`; or killed as it is."""
    ground.order(pod, "pause")
    ground.feed(200, 1, 0)
    ground.idle(for_ms / MS, f"{pod} is paused")
    if then == "kill":
        ground.kill(pod)
        ground.back(pod)
    else:
        ground.order(pod, "resume")


def draw_cleanup(dice: Dice, run: Run) -> Drawn:
    """After a close or a kill; sometimes killed in the middle of its deletions, too."""
    if "unlogged" in run.stores:
        return None
    return {
        "pod": pod_of(dice, run),
        "after": dice.choice(("close", "kill")),
        "killed_after_ms": dice.choice((0, 0, 0, 5, 30)),
    }


def cleanup(ground: Ground, pod: str, after: str, killed_after_ms: int) -> None:
    """`cleanUp()` before a start."""
    (ground.stop if after == "close" else ground.kill)(pod)
    java = ground.prepare(pod)
    if killed_after_ms:
        java.tell("cleanup")
        ground.idle(killed_after_ms / MS, "it cleans up")
        ground.kill(pod)
        java = ground.prepare(pod)
    else:
        ground.order(pod, "cleanup")
    java.ask("start")


def draw_commit(dice: Dice, run: Run) -> Drawn:
    """Needs transactions."""
    exactly = run.guarantee != "at_least_once" and numbers(run.release) >= (2, 6)
    return {**draw_end(dice, run), "kill": dice.random() < 0.4} if exactly else None


def commit_fails(ground: Ground, pod: str, away_ms: int, kill: bool) -> None:
    """The next commit of a transaction times out; perhaps killed a moment later."""
    ground.order(pod, "fail-commit")
    ground.feed(300, 1, 0)
    ground.mark("a commit has timed out")
    if kill:
        ground.idle(away_ms / MS, "it goes on")
        ground.kill(pod)
        ground.back(pod)


ACTIONS = {
    "kill": Action(draw_end, kill, ADDS, weight=5),
    "close": Action(draw_end, close, weight=3),
    "close-killed": Action(draw_delayed_end, close_killed, ADDS, weight=6),
    "close-at-once": Action(draw_delayed_end, close_at_once, ADDS, weight=2),
    "kill-all": Action(draw_away, kill_all, ADDS, weight=2),
    "freeze": Action(draw_freeze, freeze, ADDS, weight=3),
    "threads": Action(draw_threads, threads, weight=2, since="2.8.0"),
    "failure": Action(draw_failure, failure, ADDS, weight=2),
    "pause": Action(draw_pause, pause, ADDS, weight=2, since="3.3.0"),
    "cleanup": Action(draw_cleanup, cleanup, ADDS, weight=2),
    "commit-fails": Action(draw_commit, commit_fails, ADDS, weight=3),
}
