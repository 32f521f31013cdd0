"""Many tasks: cost of the start, of doing nothing, and of a mixed load; every final state must be known."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from tests.bench.bench_watch import TRACE
from tests.bench.measure import cpu_seconds, memory, run_module, spread, wait_until_idle
from tests.bench.report import Measured, Options, compared
from tests.bench.tree_maker import make_tree, recorded_store
from tests.bench.watchers import Agent, InotifyWait, Watcher

FULL, SMALL = 10_000, 1_000
RATE = 1_000
QUIET_S = 40.0
"""After a start: by then nothing waits to be judged again."""
IDLE_S = 30.0
SETTLE_S = 5.0
SCRAPES = 5
LIVES = "statewarden_task_incarnation"
HEARD_S = 2.0
"""A starved process looks idle: only when its mailbox was empty for so long it is asked what it knows."""


@dataclass(slots=True)
class Costs:
    """What one watcher cost in one round; CPU in seconds."""

    start_s: float = 0.0  # until it was ready
    idle: float = 0.0  # per idle second
    scrape_s: float = 0.0  # per scrape
    load_s: float = 0.0  # during the mixed load and until it has nothing to do after it
    operations: int = 0  # in that load
    idle_mib: float = 0.0  # resident before it
    rss_mib: float = 0.0  # resident after it
    wrong: int = 0  # tasks whose last checkpoint or number of lives the agent does not tell afterwards


def run(options: Options) -> list[Measured]:
    """Start on 10,000 tasks in memory (small: 1,000), leave alone, then work on them: the agent, then inotifywait."""
    tasks = FULL if options.full else SMALL
    root = options.memory / "state"
    make_tree(root, tasks, recorded_store(TRACE))
    costs = options.each(lambda version: _measure(partial(Agent, version=version), root, options, tasks))
    peer: list[Costs] = []
    if InotifyWait.is_there():
        peer = [_measure(InotifyWait, root, options, tasks) for _ in range(options.rounds)]

    def told(
        what: str, value: Callable[[Costs], float], goal: str | None = None, digits: int = 2
    ) -> Measured:
        beside = f"inotifywait {spread([value(x) for x in peer], digits)}" if peer else "-"
        return compared(what, costs, value, goal if options.full else None, digits, beside)

    return [
        told(f"idle at {tasks:,} tasks, % of a core", lambda x: x.idle * 100, "idle"),
        told("start, CPU s", lambda x: x.start_s, digits=1),
        compared("scrape, CPU ms", costs, lambda x: x.scrape_s * 1e3, digits=0),
        told("mixed load, CPU ms per 1,000 operations", lambda x: x.load_s / x.operations * 1e6, digits=0),
        told("resident MiB, idle", lambda x: x.idle_mib, digits=0),
        told("resident MiB, after the load", lambda x: x.rss_mib, digits=0),
        compared(
            "not known afterwards, tasks", costs, lambda x: x.wrong, "known" if options.full else None, 0
        ),
    ]


def _measure(start: Callable[[Path, Path], Watcher], root: Path, options: Options, tasks: int) -> Costs:
    """Measure one watcher: nobody scrapes while it is idle."""
    costs, watcher = Costs(), start(root, options.work)
    try:
        watcher.wait_ready()
        costs.start_s = cpu_seconds(watcher.pid)
        time.sleep(QUIET_S)
        lives = watcher.by_task(LIVES) if isinstance(watcher, Agent) else {}
        time.sleep(SETTLE_S)
        before_s = cpu_seconds(watcher.pid)
        time.sleep(IDLE_S)
        costs.idle = (cpu_seconds(watcher.pid) - before_s) / IDLE_S
        costs.idle_mib = memory(watcher.pid).rss_kib / 1024
        if isinstance(watcher, Agent):
            before_s = cpu_seconds(watcher.pid)
            for _ in range(SCRAPES):
                watcher.metrics()
            costs.scrape_s = (cpu_seconds(watcher.pid) - before_s) / SCRAPES
        before_s, first = cpu_seconds(watcher.pid), time.monotonic_ns() // 1_000_000
        words = (str(root), str(tasks), str(RATE), str(options.load_s), str(first))
        told = json.loads(run_module("tests.bench.mixed_load", *words).output)
        time.sleep(SETTLE_S)
        wait_until_idle(watcher.pid)
        costs.load_s = cpu_seconds(watcher.pid) - before_s
        costs.operations = told["operations"]
        costs.rss_mib = memory(watcher.pid).rss_kib / 1024
        if isinstance(watcher, Agent):
            watcher.wait_until_heard(HEARD_S)
            costs.wrong = sum(unknown(watcher, told["touched"], lives))
    finally:
        watcher.stop()
    return costs


def unknown(agent: Agent, touched: dict[str, tuple[int, int]], lives: dict[int, int]) -> tuple[int, int]:
    """Count the tasks whose last checkpoint is not told after a mixed load, and those whose number of lives is not.

    `touched`: task -> last offset, times recreated, as the load told. `lives`: what the agent told before it.
    """
    offsets, lives_now = agent.offsets(), agent.by_task(LIVES)
    facts = [(int(task), *fact) for task, fact in touched.items()]
    return (
        sum(offsets.get(task) != offset for task, offset, _ in facts),
        sum(lives_now.get(task) != lives.get(task, 0) + remade for task, _, remade in facts),
    )
