"""Many small random fleets: whatever is done to their events, the same must be said of them."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from random import Random

from agent.contract.events import Kind
from tests.spark_rollup.support.fleet import HORIZON_S, Fleet, Pod, at_us

FLEETS = int(os.environ.get("STATEWARDEN_DRAWN_FLEETS", "150"))

TASKS = ("0_0", "0_1")
IDENTITIES = ("one", "two", None)
OFFSETS = (0, 100, 1000, 15_000, 40_000)


@dataclass(frozen=True)
class Step:
    """Something that happens on a pod: drawn, and told by `ACTIONS`."""

    at: int
    pod: int
    task: str
    action: str
    identity: str | None
    offset: int
    puts: int
    low: int


def _measure(pod: Pod, step: Step) -> None:
    process = {"process_id": f"process-{step.puts % 3}"} if step.low % 2 else {}
    pod.measures(
        step.task, step.at, step.low % 7 != 0, identity=step.identity, offset=step.offset, puts=step.puts,
        bytes=step.puts, entries_low=step.low, entries_high=step.low + step.puts // 2,
        store="t" if step.low == 901 else "s", unsaved_puts={500: 20_000, 7: None}.get(step.low, 10_000), **process,
    )  # fmt: skip


def _stand(pod: Pod, step: Step) -> None:
    """Write a checkpoint and be looked at right after."""
    pod.writes_checkpoint(
        step.task, step.at, offset=step.offset, puts=step.puts, comparable=step.low % 2 == 0 or None
    )
    pod.measures(
        step.task, step.at + 0.5, True, identity=step.identity, offset=step.offset, puts=step.puts,
        entries_low=step.low, entries_high=step.low + 10,
    )  # fmt: skip


def _close(pod: Pod, step: Step) -> None:
    """Close the store in order; now and then a reading follows while it lies there."""
    content: dict[str, object] = {
        "identity": step.identity or "one", "puts": step.puts, "entries_low": step.low, "entries_high": step.low + 10
    }  # fmt: skip
    pod.changes(
        "store-closed", step.task, step.at, store="s", offset_after=step.offset, held=False, bytes=step.puts,
        comparable=step.low % 2 == 0 or None, **content,
    )  # fmt: skip
    if step.puts % 2:
        pod.measures(step.task, step.at + 2.5, False, offset=step.offset, status="closed", **content)


def _finds(detector: str, **body: object) -> Callable[[Pod, Step], object]:
    def tell(pod: Pod, step: Step) -> object:
        sure = "confirmed" if step.puts % 2 else "suspected"
        loud = "critical" if sure == "confirmed" else "warning"
        given: dict[str, object] = {
            "store": "s",
            "identity": step.identity,
            "confidence": sure,
            "severity": loud,
        }
        said = {name: value for name, value in (given | body).items() if value is not None}
        return pod.finds(detector, step.task, step.at, **said)

    return tell


def _repeat(pod: Pod, step: Step) -> None:
    """Say again what was found last."""
    found = [x for x in pod.records if x.kind is Kind.FINDING and x.observed_at_us < at_us(step.at)]
    last = max(found, key=lambda x: x.observed_at_us, default=None)
    if last is not None:
        pod.tells(Kind.FINDING, step.at, **{"said_us": last.observed_at_us, **last.body})


ACTIONS: Mapping[str, Callable[[Pod, Step], object]] = {
    "hold": lambda pod, step: pod.holds(step.task, step.at),
    "hold again": lambda pod, step: pod.holds(step.task, step.at),
    "release": lambda pod, step: pod.releases(step.task, step.at),
    "clean": lambda pod, step: pod.deletes_task(step.task, step.at, "cleaner-walk", offset_before=0),
    "wipe": lambda pod, step: pod.changes(
        "store-deleted", step.task, step.at, shape="owner-walk", store="s", identity=step.identity
    ),
    "create": lambda pod, step: pod.changes(
        "store-created", step.task, step.at, store="s", identity=step.identity
    ),
    "flush": lambda pod, step: pod.changes("store-flushed", step.task, step.at, store="s", puts=step.puts),
    "checkpoint": lambda pod, step: pod.writes_checkpoint(
        step.task, step.at, offset=step.offset, puts=step.puts
    ),
    "measure": _measure,
    "stand": _stand,
    "close": _close,
    "show": lambda pod, step: pod.measures(step.task, step.at, None, process_id="process-0"),
    "blind": lambda pod, step: pod.is_blind(step.at, step.at + 1 + step.puts % 20),
    "resurrected": _finds("resurrected-checkpoint"),
    "unrestored": _finds("unrestored-store"),
    "skipped": _finds("skipped-eos-wipe"),
    "unowned": _finds("unowned-task", store=None, identity=None, level="exposure", severity="warning"),
    "repeat": _repeat,
    "shared": _finds("shared-state-dir", level="exposure", severity="warning"),
}

KINDS = (*sorted(ACTIONS), "hold", "release", "flush", "measure", "stand", "close", "close", "show", "show")


def _step(dice: Random, at: int) -> Step:
    return Step(
        at=at,
        pod=dice.randint(0, 2),
        task=dice.choice(TASKS),
        action=dice.choice(KINDS),
        identity=dice.choice(IDENTITIES),
        offset=dice.choice(OFFSETS),
        puts=dice.choice((1, 30, 101, 1000, 20_000, 45_000)),
        low=dice.choice((0, 7, 20, 500, 901)),
    )


def fleet_of(name: str) -> Fleet:
    """Draw the life of two or three pods with one application; its name is the seed."""
    dice = Random(name)
    fleet = Fleet(name)
    # pods stop one after the other: two events at one time would have no order
    pods = [
        fleet.pod(f"pod-{letter}", ends_s=HORIZON_S - index / 8, announces_end=dice.random() < 0.5)
        for index, letter in enumerate("abc"[: dice.randint(2, 3)])
    ]
    chosen: dict[str, object] = {"session_timeout_ms": 10_000, "probing_rebalance_interval_ms": 5_000}
    if (standbys := dice.choice((None, 0, 1, 1))) is not None:
        chosen["num_standby_replicas"] = standbys
    if guarantee := dice.choice((None, "at_least_once", "exactly_once_v2")):
        chosen["processing_guarantee"] = guarantee
    pods[0].configures(1, dice.choice((None, "2.0.1", "3.9.2")), **chosen)
    for at in dice.sample(range(5, HORIZON_S - 4), dice.randint(12, 40)):
        step = _step(dice, at)
        ACTIONS[step.action](pods[step.pod % len(pods)], step)
    for index, pod in enumerate(pods):
        pod.uid = f"{name}-{pod.name}"  # event ids are made of it
        if index and dice.randint(0, 3) == 0:  # the first pod's second record is the configuration
            pod.loses(*(dice.randint(2, 40) for _ in range(dice.randint(0, 2))))
    return fleet


@cache
def drawn() -> list[Fleet]:
    """Draw many fleets, the same in every run; they are judged together, in one audit."""
    return [fleet_of(f"fleet-{number}") for number in range(FLEETS)]
