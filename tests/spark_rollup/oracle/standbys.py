"""The two rules about second copies in plain Python."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tests.spark_rollup.oracle.facts import HEARD_AGAIN_S, S, World
from tests.spark_rollup.oracle.verdicts import Said, said

LAST_8187 = (2, 2, 1)


@dataclass(frozen=True)
class Shortage:
    """A time in which a task had fewer holders than promised."""

    task: str
    start: int
    end: int
    most: int


def shortages(world: World) -> list[Shortage]:
    """Count holders at every moment at which anything changes."""
    standbys = world.number("num_standby_replicas") or 0
    pods = len({life[0] for life in world.lives})
    promised, found = 1 + min(standbys, pods - 1), []
    for task in sorted({hold.task for hold in world.owners}):
        holds = [hold for hold in world.owners if hold.task == task]
        times = sorted({h.start for h in holds} | {h.end for h in holds if not h.lasting})
        low: list[tuple[int, int, int]] = []
        for at, until in zip(times, [*times[1:], world.as_of], strict=True):
            count = sum(h.start <= at and (h.lasting or h.end > at) for h in holds)
            if count >= promised:
                continue
            if low and low[-1][1] == at:
                low[-1] = (low[-1][0], until, max(low[-1][2], count))
            else:
                low.append((at, until, count))
        found += [Shortage(task, *row) for row in low]
    return found


def missing(world: World) -> Iterator[Said]:
    """Judge shortages that outlast a rebalance, refute suspicions, ask for the standby count."""
    standbys, pods = world.number("num_standby_replicas"), {life[0] for life in world.lives}
    yield from _refuted(world)
    if standbys is None:
        if len(pods) > 1:
            yield said("missing-standby", None, None, "info", "unknown")
        return
    if standbys < 1:
        return
    affected = "possibly" if world.release is None else "yes" if world.release <= LAST_8187 else "no"
    short = shortages(world)
    for one in short:
        lives = [life for life in world.lives if life[1] < one.end]
        since = max(one.start, *(life[1] for life in lives))
        settled = since + world.patience
        alive = len({pod for pod, _, end in lives if end >= settled})
        expected = 1 + min(standbys, alive - 1)
        if settled >= one.end or one.most >= expected or expected < 2:
            continue
        unowned = _unowned(world, one, since, settled)
        siblings = {hold.task for hold in world.owners if hold.task[0] == one.task[0]}
        incomplete = {
            x.task for x in short if x.start <= settled and x.end >= since and x.task[0] == one.task[0]
        }
        if not (len(siblings) - len(incomplete) > 0 or (affected != "no" and unowned)):
            continue
        loud = unowned is not None and affected != "no"
        doubtful = bool(world.unwatched_members(since, settled))
        brief = one.end - settled <= 10 * S
        certain = loud and affected == "yes" and not doubtful and not brief
        unsure = brief or (loud and not certain)
        confidence = "unknown" if doubtful else "suspected" if unsure else "confirmed"
        confirms = sorted(
            f["finding_id"] for f in world.local
            if f["detector"] == "unowned-task" and (f["task_id"], f["pod"]) == (one.task, unowned)
        )  # fmt: skip
        yield said(
            "missing-standby", one.task, unowned if loud else None,
            "critical" if certain else "warning" if loud else "info", confidence,
            "resolved" if one.end < world.as_of else "open", confirms,
        )  # fmt: skip


def _unowned(world: World, one: Shortage, since: int, settled: int) -> str | None:
    found: list[tuple[int, str]] = []
    for hold in world.owners:
        if hold.task != one.task or hold.lasting:
            continue
        gone = min(
            (
                (e["observed_at_us"], e.get("shape") or "") for e in world.marks
                if e["change"] == "task-deleted" and (e["task_id"], e["pod"]) == (hold.task, hold.pod)
                and e["observed_at_us"] >= hold.end
            ),
            default=None,
        )  # fmt: skip
        released = since - world.patience <= hold.end <= since + S
        stayed = gone is None or gone[0] >= settled
        cleaned = gone is not None and gone[1] == "cleaner-walk" and gone[0] <= one.end + 5 * S
        working = any(h.pod == hold.pod and h.start <= since and h.end >= settled for h in world.owners)
        if released and stayed and (working or cleaned):
            found.append((hold.end, hold.pod))
    return max(found)[1] if found else None


def _refuted(world: World) -> Iterator[Said]:
    for finding in world.local:
        if finding["detector"] != "unowned-task":
            continue
        opened = finding["opened_at_us"]
        takers = [
            h for h in world.owners
            if h.task == finding["task_id"] and h.pod != finding["pod"]
            and opened - world.patience <= h.start <= opened + world.patience
        ]  # fmt: skip
        if takers:
            yield said(
                "missing-standby", finding["task_id"], finding["pod"], "info", "confirmed", "resolved",
                refutes=[finding["finding_id"]],
            )  # fmt: skip


def unprotected(world: World) -> Iterator[Said]:
    """Count healthy copies at the last sign of life."""
    standbys = world.number("num_standby_replicas")
    if standbys is None or not world.lives:
        return
    horizon = max(end for _, _, end in world.lives)
    settled = horizon - world.patience - 10 * S
    unsteady = any(abs(end - settled) <= 10 * S for _, _, end in world.lives)
    alive = {pod for pod, _, end in world.lives if end >= settled}
    if standbys == 0 or len(alive) == 1:
        yield said("unprotected-task", None, None, "info", "confirmed")
        return
    if any(start > settled for _, start, _ in world.lives):
        return
    spoken = [
        last["observed_at_us"] for last in world.last_words()
        if last.get("phase") != "stopping" and world.as_of - last["observed_at_us"] <= HEARD_AGAIN_S * S
    ]  # fmt: skip
    settled = min(horizon, *spoken) - world.patience - 10 * S if spoken else settled
    silent = {gap.pod for gap in world.gaps if gap.cause == "silent-agent" and gap.end == world.as_of}
    doubtful = bool(world.unwatched_members(settled, horizon))
    for task in sorted({hold.task for hold in world.owners}):
        holds = [hold for hold in world.owners if hold.task == task]
        pods = {h.pod for h in holds if h.lasting or h.end >= settled}
        healthy = [pod for pod in pods if pod not in silent and not _ill(world, task, pod)]
        if pods and len(healthy) < 2 and min(h.start for h in holds) < settled:
            unsure = doubtful or bool(pods & silent)
            yield said(
                "unprotected-task", task, None, "info" if unsure or unsteady else "warning",
                "unknown" if unsure else "suspected" if unsteady else "confirmed",
            )  # fmt: skip


def _ill(world: World, task: str, pod: str) -> bool:
    damaged = any(
        (f.get("task_id"), f["pod"], f["level"], f["status"], f["severity"])
        == (task, pod, "damage", "open", "critical")
        for f in world.local
    )
    known = [x for x in world.looks if x.task == task and x.offset is not None]
    last = {p: max((x.at, x.offset) for x in known if x.pod == p)[1] for p in {x.pod for x in known}}
    lags = (
        pod in last and max(max(0, value or 0) for value in last.values()) - max(0, last[pod] or 0) > 20_000
    )
    return damaged or lags


ORACLES = {"missing-standby": missing, "unprotected-task": unprotected}
