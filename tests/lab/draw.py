"""Draw a run from a seed: the same seed, release and guarantee always give the same run."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from tests.lab.actions import ACTIONS
from tests.lab.design import PODS, Run, Step
from tests.lab.plan import ALOS, EOS, TRANSACTIONAL, TRANSACTIONAL_SINCE, numbers
from tests.lab.scenarios import BROKER_ASSIGNS

CHECK = Step("check")
RECORDS = ("records", "again")
MOST_ACTIONS = 6
RETENTION_MS = 120_000
"""A segment is half of it, and never less than a minute."""
GRACE_MS = 20_000
WINDOW_MS = 10_000
ODD: tuple[dict[str, Any], ...] = (
    {"hunt.volume.mib": 256},
    {"hunt.volume.mib": 256},
    {"hunt.slow_sync_us": 60_000},
    {"hunt.slow_unlink_us": 60_000},
    {"live.universal": 1},
    {"live.rolling.log": 1},
    {"live.small.manifest": 1},
)
"""Volumes and options of RocksDB that are not the usual ones."""
STORES: tuple[tuple[str, str, int], ...] = (
    ("plain", "2.0.0", 3),
    ("window", "2.0.0", 7),
    ("session", "2.0.0", 3),
    ("versioned", "3.5.0", 3),
    ("memory", "2.0.0", 2),
    ("table", "2.0.0", 3),
    ("global", "2.0.0", 1),
    ("repartition", "2.0.0", 1),
    ("unlogged", "2.0.0", 1),
    ("join", "2.0.0", 1),
    ("inner", "2.0.0", 2),
    ("foreign", "2.5.0", 1),
    ("suppress", "2.1.0", 1),
    ("empty", "2.0.0", 1),
    ("third", "2.0.0", 1),
)
"""Store beside `kv`, oldest release, in how many of ten runs it is there."""


def draw(seed: int, release: str, guarantee: str) -> Run:
    dice = random.Random(f"{seed} {release} {guarantee}")
    stores = ("kv", *(name for name, since, tenths in STORES if _has(dice, tenths, since, release)))
    pods = PODS[: dice.choices((1, 2, 3), (5, 4, 1))[0]]
    settings = _settings(dice, guarantee, len(pods))
    if numbers(release) >= (4, 2) and dice.random() < 0.25:
        settings |= BROKER_ASSIGNS
    if dice.random() < 0.5:
        settings["hunt.output"] = 1
    run = Run(seed, release, guarantee, stores, dice.choice((1, 1, 2, 3)), pods, settings)
    run = replace(run, steps=tuple(_steps(dice, run)))
    # last, so that runs of other releases are drawn as ever
    newest = max((run.release, *(x.args["to"] for x in run.steps if x.action == "upgrade")), key=numbers)
    if numbers(newest) >= numbers(TRANSACTIONAL_SINCE) and dice.random() < 0.5:
        settings[TRANSACTIONAL] = "true"
    return run


def draw_many(seed: int, count: int, releases: Sequence[str]) -> list[Run]:
    """Draw runs that go through releases and guarantees in turn."""
    both = [(release, guarantee) for release in releases for guarantee in (ALOS, EOS)]
    return [draw(seed * 10_000 + number, *both[number % len(both)]) for number in range(count)]


def _has(dice: random.Random, tenths: int, since: str, release: str) -> bool:
    wanted = dice.random() < tenths / 10
    return wanted and numbers(release) >= numbers(since)


def _settings(dice: random.Random, guarantee: str, pods: int) -> dict[str, Any]:
    settings: dict[str, Any] = {
        "commit.interval.ms": dice.choice((100, 100, 1000, 1000, 5000)),
        "state.cleanup.delay.ms": dice.choice((600_000, 600_000, 5000)),
        "num.standby.replicas": dice.choice((0, 1)) if pods > 1 else 0,
        "num.stream.threads": dice.choice((1, 1, 2)),
        "topology.optimization": dice.choice(("all", "none")),
        "session.timeout.ms": 6000,
        "live.poison": 1,
        "live.write.buffer": dice.choice((65_536, 65_536, 65_536, 262_144, 16_777_216)),
        "retention.ms": RETENTION_MS,
        "grace.ms": GRACE_MS,
        "window.ms": WINDOW_MS,
    }
    if guarantee == EOS:
        settings["producer.transaction.timeout.ms"] = 10_000
    if dice.random() < 0.5:
        settings["live.replace.threads"] = 1
    settings |= dice.choices([{}, *ODD], [12, *(1 for _ in ODD)])[0]
    return settings


def _steps(dice: random.Random, run: Run) -> list[Step]:
    """Records, an action, often a look at the truth; and so on."""
    steps: list[Step | None] = []
    possible = [name for name, action in ACTIONS.items() if numbers(run.release) >= numbers(action.since)]
    weights = [ACTIONS[name].weight for name in possible]
    for _ in range(dice.randint(2, MOST_ACTIONS)):
        steps += [_step(dice, run, "records") for _ in range(dice.choice((1, 1, 2)))]
        if dice.random() < 0.3:
            steps.append(_step(dice, run, "again"))
        steps.append(_step(dice, run, dice.choices(possible, weights)[0]))
        if dice.random() < 0.4:
            steps.append(CHECK)
    return with_checks([step for step in steps if step is not None])


def with_checks(steps: Sequence[Step]) -> list[Step]:
    """Look at the truth before stream time jumps on: what expires then, nobody can look at afterwards."""
    looked: list[Step] = []
    is_due = False
    for step in steps:
        if is_due and step.args.get("jump_ms"):
            looked.append(CHECK)
        looked.append(step)
        is_due = step != CHECK and (is_due or step.action not in RECORDS)
    return looked


def _step(dice: random.Random, run: Run, name: str) -> Step | None:
    args = ACTIONS[name].draw(dice, run)
    return None if args is None else Step(name, args)
