"""What happens to volumes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.lab.action import ADDS, MS, UNSEEN, Action, Dice, Drawn, drawn, pod_of
from tests.lab.design import Run

if TYPE_CHECKING:
    from tests.lab.ground import Ground

CLONED = UNSEEN | {"cloned-volume", "cloned-process", "setup", "task-churn"}
"""Two processes with one id fence each other without end."""


def is_logged(run: Run) -> bool:
    """Tell whether every store can be restored."""
    return "unlogged" not in run.stores


def disk_full(ground: Ground, pod: str, for_ms: int) -> None:
    """Nothing can be written to the volume for a while, and records come."""
    with ground.volumes.filled(pod):
        ground.feed(2000, 1, 0)
        ground.idle(for_ms / MS, "the volume is full")


def snapshot(ground: Ground, pod: str, of: str, ends: str) -> None:
    """A snapshot of the volume is taken and put back after more records: the pod comes back with older state."""
    if of == "closed":
        ground.stop(pod)
        saved = ground.volumes.save(pod)
        ground.back(pod)
    else:
        ground.freeze(pod)
        saved = ground.volumes.save(pod)
        ground.thaw(pod)
    ground.feed(400, 1, 0)
    ground.catch_up()
    (ground.stop if ends == "close" else ground.kill)(pod)
    ground.unwatch(pod)
    ground.volumes.put_back(saved, pod)
    ground.join(pod)


def draw_pair(dice: Dice, run: Run) -> Drawn:
    """Two pods."""
    if len(run.pods) < 2 or not is_logged(run):
        return None
    one, other = dice.sample(run.pods, 2)
    return {"pod": one, "other": other}


def swap(ground: Ground, pod: str, other: str) -> None:
    """Two pods come back with each other's volumes."""
    if other not in ground.pods:
        return
    for name in (pod, other):
        ground.stop(name)
        ground.unwatch(name)
    mine, theirs = ground.volumes.save(pod), ground.volumes.save(other)
    ground.volumes.put_back(mine, other)
    ground.volumes.put_back(theirs, pod)
    for name in (pod, other):
        ground.join(name)


def clone(ground: Ground, pod: str, other: str) -> None:
    """A pod gets a copy of another one's volume; both run, until the copy's process id is deleted."""
    if other not in ground.pods:
        return
    for name in (pod, other):
        ground.stop(name)
    ground.unwatch(other)
    ground.volumes.put_back(ground.volumes.save(pod), other)
    ground.back(pod)
    ground.join(other)
    ground.idle(20, "two pods have one process id")
    ground.kill(other)
    (ground.state_dir(other) / ground.id / "kafka-streams-process-metadata").unlink(missing_ok=True)
    ground.back(other)


ACTIONS = {
    "disk-full": Action(
        drawn(lambda run: "hunt.volume.mib" in run.settings, pod=pod_of, for_ms=(2 * MS, 6 * MS)),
        disk_full, ADDS, weight=6,
    ),
    "snapshot": Action(
        drawn(is_logged, pod=pod_of, of=("closed", "running"), ends=("close", "kill")),
        snapshot, ADDS, UNSEEN, weight=2,
    ),
    "swap": Action(draw_pair, swap, tells=UNSEEN, weight=2),
    "clone": Action(draw_pair, clone, ADDS, CLONED, weight=1, since="3.0.0"),
}  # fmt: skip
