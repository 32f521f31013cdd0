"""What users pay: 100 tasks that do what tasks of a real application did; beside it the stress. In virtual time."""

from __future__ import annotations

import json
import os
from typing import Any

from tests.bench.measure import run_child, spread
from tests.bench.report import Measured, Options, Section
from tests.bench.versions import AFTER, ROOT, Version

TASKS, SECONDS, STRESS_TASKS, STRESS_SECONDS = 100, 60, 1_000, 10
LOADS = {
    "realistic load": ("real", str(TASKS), str(SECONDS)),
    "stress": ("stress", str(STRESS_TASKS), str(STRESS_SECONDS)),
    "stress with spool": ("stress", str(STRESS_TASKS), str(STRESS_SECONDS), "spool"),
}


def run(options: Options) -> Section:
    """Play each load to each version in turn."""
    told: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for number in range(options.rounds):
        for load, arguments in LOADS.items():
            for version in options.versions[:: -1 if number % 2 else 1]:
                told.setdefault((load, version.name), []).append(drive(version, *arguments))
    sampled = {
        version.name: drive(version, *LOADS["realistic load"], "sample") for version in options.versions
    }
    rows = [
        (
            load if name == AFTER.name else f"{load}, {name}",
            spread([x["share_percent"] for x in rounds]),
            spread([x["us_per_notification"] for x in rounds], 1),
            f"{sum(map(_lost, rounds)):g}",
        )
        for (load, name), rounds in told.items()
    ]
    return Section(
        "What the agent's own parts cost",
        f"The agent's supervisor, inotify and files, a clock of ours; the CPU of the agent's thread while it runs, so"
        f" that another load on the machine moves it little. {TASKS} tasks do what the tasks of a real application"
        " (Kafka Streams 4.2.2, 2,000 records a second and task, a commit every 30 s, memtables of 1 MiB) did on its"
        f" disk, from different moments on, for {SECONDS} s; the stress is {STRESS_TASKS:,} tasks with 3,000 checkpoint"
        f" replacements a second for {STRESS_SECONDS} s. Both after 10 s that do not count.",
        ("load", "CPU, % of a core", "us per notification", "lost"),
        rows,
        [f"Steps of the realistic load, % of the CPU, {name}: {_steps(one)}." for name, one in sampled.items()],
        [
            *(_measured(told, load) for load in LOADS),
            Measured("lost in virtual time", [_lost_by(told)], goal="real-lost", digits=0),
        ],
    )  # fmt: skip


def _measured(told: dict[tuple[str, str], list[dict[str, Any]]], load: str) -> Measured:
    what, goal = ("us_per_notification", None) if load != "realistic load" else ("share_percent", "real")
    unit = "% of a core" if goal else "us per notification"
    after, before = ([x[what] for x in told.get((load, name), ())] for name in ("after", "before"))
    return Measured(f"{load}, {unit}", after, before, goal=goal)


def _steps(one: dict[str, Any]) -> str:
    return ", ".join(f"{step} {share:g}" for step, share in one["steps_percent"].items())


def _lost(one: dict[str, Any]) -> bool:
    return bool(one["last_offsets"] != one["written_offsets"])


def _lost_by(told: dict[tuple[str, str], list[dict[str, Any]]]) -> int:
    return sum(_lost(one) for (_, name), rounds in told.items() if name == AFTER.name for one in rounds)


def drive(version: Version, *arguments: str) -> dict[str, Any]:
    """Run this checkout's harness on a version of the agent."""
    before, os.environ["PYTHONPATH"] = os.environ.get("PYTHONPATH", ""), str(version.root)
    try:
        done = run_child(version.python, str(ROOT / "tests" / "bench" / "virtual.py"), *arguments)
    finally:
        os.environ["PYTHONPATH"] = before
    told: dict[str, Any] = json.loads(done.output)
    return told
