"""Resident memory before and after every history of every task is full."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

from tests.bench import memory_at_full
from tests.bench.report import Measured, Options, Section
from tests.bench.versions import Version

FULL, SMALL = (1_000, 10_000), (200,)
CHUNK = 1_000
"""Tasks that the owner works on at a time."""


def run(options: Options) -> Section:
    """Fill the histories of 1,000 and of 10,000 tasks (small: 200) once: memory does not depend on what else runs."""
    sizes = FULL if options.full else SMALL
    told: dict[int, dict[str, dict[str, Any]]] = {}
    for tasks in sizes:

        def measure(version: Version, tasks: int = tasks) -> tuple[str, dict[str, Any]]:
            return version.name, memory_at_full.main(tasks, min(tasks, CHUNK), version)

        with ThreadPoolExecutor(len(options.versions)) as pool:
            told[tasks] = dict(pool.map(measure, options.versions))
    measured = []
    for tasks, found in told.items():
        for what, key, goal in (
            ("nothing has happened yet", "empty_mib", None),
            ("all histories full", "full_mib", f"memory-{tasks}" if options.full else None),
        ):
            before = [found["before"][key]] if "before" in found else []
            measured.append(
                Measured(
                    f"resident MiB at {tasks:,} tasks, {what}",
                    [found["after"][key]],
                    before,
                    goal=goal,
                    digits=0,
                )
            )
    return Section(
        "Memory with full histories",
        "`statewarden run` on a tree in memory, both versions at the same time on trees of their own. Every task is"
        f" deleted and made again {memory_at_full.LIVES} times; then its store is opened and closed"
        f" {memory_at_full.SESSIONS} times, with flushes and checkpoints. `longest`: entries of the longest histories"
        " that the agent keeps afterwards.",
        (
            "agent",
            "resident MiB at first",
            "resident MiB, full",
            "KiB more per task",
            "open findings",
            "CPU s",
            "longest",
        ),
        [
            (
                f"{tasks:,} tasks, {name}",
                f"{one['empty_mib']:.0f}",
                f"{one['full_mib']:.0f}",
                f"{one['kib_per_task']:.1f}",
                f"{one['open_findings']:,.0f}",
                f"{one['cpu_s']:.0f}",
                ", ".join(f"{history} {length}" for history, length in sorted(one["kept"].items())),
            )
            for tasks, found in told.items()
            for name, one in found.items()
        ],
        measured=measured,
    )
