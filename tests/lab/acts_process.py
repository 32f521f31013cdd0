"""What ends, stops or disturbs a process."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.lab.action import ADDS, AWAY_MS, MS, Action, delay_ms, drawn, pod_of
from tests.lab.acts_disk import is_logged
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


def freeze(ground: Ground, pod: str, for_ms: int) -> None:
    """SIGSTOP and SIGCONT."""
    ground.freeze(pod)
    ground.idle(for_ms / MS, f"{pod} stands still")
    ground.thaw(pod)


def threads(ground: Ground, pod: str, between_ms: int, remove: bool) -> None:
    """Add a stream thread, and perhaps remove one: an instance without a thread does nothing."""
    ground.order(pod, "thread add")
    if remove:
        ground.idle(between_ms / MS, "a thread more")
        ground.order(pod, "thread remove")


def failure(ground: Ground, pod: str, times: int) -> None:
    """Records fail their thread, which is replaced, or ends the instance, which is started again."""
    ground.order(pod, f"poison {times}")
    ground.feed(50, 1, 0)
    ground.wait("some")


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


def cleanup(ground: Ground, pod: str, after: str, killed_after_ms: int) -> None:
    """`cleanUp()` before a start; perhaps killed in the middle of its deletions, too."""
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


def commit_fails(ground: Ground, pod: str, away_ms: int, kill: bool) -> None:
    """The next commit of a transaction times out; perhaps killed a moment later."""
    ground.order(pod, "fail-commit")
    ground.feed(300, 1, 0)
    ground.mark("a commit has timed out")
    if kill:
        ground.idle(away_ms / MS, "it goes on")
        ground.kill(pod)
        ground.back(pod)


def _commits(run: Run) -> bool:
    """Tell whether it has transactions whose commit can be made to fail."""
    return run.guarantee != "at_least_once" and numbers(run.release) >= (2, 6)


END = drawn(pod=pod_of, away_ms=AWAY_MS)
DELAYED_END = drawn(pod=pod_of, away_ms=AWAY_MS, delay_ms=delay_ms)

ACTIONS = {
    "kill": Action(END, kill, ADDS, weight=5),
    "close": Action(END, close, weight=3),
    "close-killed": Action(DELAYED_END, close_killed, ADDS, weight=6),
    "close-at-once": Action(DELAYED_END, close_at_once, ADDS, weight=2),
    "kill-all": Action(drawn(away_ms=(0, 300, 5000)), kill_all, ADDS, weight=2),
    # sessions end after 6 s, transactions after 10 s
    "freeze": Action(drawn(pod=pod_of, for_ms=(2 * MS, 9 * MS, 16 * MS)), freeze, ADDS, weight=3),
    "threads": Action(
        drawn(pod=pod_of, between_ms=(0, 2 * MS), remove=0.7), threads, weight=2, since="2.8.0"
    ),
    "failure": Action(drawn(pod=pod_of, times=(1, 1, 3)), failure, ADDS, weight=2),
    "pause": Action(
        drawn(pod=pod_of, for_ms=(500, 4 * MS), then=("go", "kill")), pause, ADDS, weight=2, since="3.3.0"
    ),
    "cleanup": Action(
        drawn(is_logged, pod=pod_of, after=("close", "kill"), killed_after_ms=(0, 0, 0, 5, 30)),
        cleanup, ADDS, weight=2,
    ),
    "commit-fails": Action(
        drawn(_commits, pod=pod_of, away_ms=AWAY_MS, kill=0.4), commit_fails, ADDS, weight=3
    ),
}  # fmt: skip
