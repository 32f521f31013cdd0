"""Many tasks: cost of the start, of doing nothing, and of a mixed load; every final state must be known."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.bench.bench_watch import TRACE, Start, starts
from tests.bench.measure import cpu_seconds, memory, run_module, spread, wait_until_idle, watches
from tests.bench.report import Options, Section, judged
from tests.bench.tree_maker import make_tree, recorded_store
from tests.bench.watchers import Agent, Watcher

FULL, SMALL = 10_000, 1_000
RATE = 1_000
QUIET_S = 40.0
"""After a start: by then nothing waits to be judged again."""
SETTLE_S = 5.0
SCRAPES = 5


@dataclass(slots=True)
class Costs:
    """What one watcher cost in one round.

    Args of the dataclass:
        start_s: CPU seconds until it was ready.
        idle: CPU seconds per idle second.
        scrape_s: CPU seconds per scrape; None = it is not scraped.
        load_s: CPU seconds during the mixed load and until the watcher has nothing to do after it.
        operations: Operations in it.
        idle_mib: Resident before it.
        rss_mib: Resident after it.
        pss_mib: The same, shared pages by share.
        watches: Watches after it.
        wrong: Tasks whose last checkpoint or number of lives is not known; None = it does not tell.
        remade: Tasks that were deleted and made anew.
    """

    start_s: float = 0.0
    idle: float = 0.0
    scrape_s: float | None = None
    load_s: float = 0.0
    operations: int = 0
    idle_mib: float = 0.0
    rss_mib: float = 0.0
    pss_mib: float = 0.0
    watches: int = 0
    wrong: int | None = None
    remade: int = 0


def run(options: Options) -> Section:
    """Start each watcher on 10,000 tasks (small: 1,000), leave it alone, then work on them; in every round."""
    tasks = FULL if options.full else SMALL
    idle_s = 40.0 if options.full else 20.0
    root = options.memory / "many"
    make_tree(root, tasks, recorded_store(TRACE))
    found, notes = starts()
    found.pop("agent with spool")
    costs: dict[str, list[Costs]] = {name: [] for name in found}
    names = list(found)
    for turn in range(options.rounds):
        for number in range(len(names)):
            name = names[(turn + number) % len(names)]
            costs[name].append(_measure(found[name], root, options.work, tasks, idle_s, options.load_s))
    return Section(
        "Many tasks",
        f"{tasks:,} tasks in memory, every watcher in turn, {options.rounds} rounds, the order rotated."
        f" Idle: {idle_s:.0f} s, from {QUIET_S:.0f} s after its start on,"
        f" nobody scrapes. Then the mixed load for {options.load_s:.0f} s, at most {RATE:,} operations a second on"
        " tasks chosen by chance: checkpoint replacements, every 8th an SST file that comes (and later goes), every"
        " 250th a task deleted with all its files and made anew. `not known`: tasks whose last checkpoint, or whose"
        " number of lives, the agent does not tell afterwards.",
        (
            "watcher",
            "CPU s to start",
            "idle CPU",
            "CPU s per scrape",
            "CPU ms per 1,000 operations",
            "operations/s",
            "tasks made anew",
            "not known",
            "resident MiB idle",
            "resident MiB after",
            "proportional MiB",
            "watches",
        ),
        [_row(name, rounds, options.load_s) for name, rounds in costs.items()],
        [*notes, *_goals(costs["agent"])],
    )


def _goals(agent: Sequence[Costs]) -> list[str]:
    return [
        judged(
            "resident at most 80 MiB at 10,000 tasks", all(max(x.idle_mib, x.rss_mib) <= 80 for x in agent)
        ),
        judged("idle below 0.5 % of a core at 10,000 tasks", all(x.idle < 0.005 for x in agent)),
        judged("every last checkpoint, deletion and re-creation known", not any(x.wrong for x in agent)),
    ]


def _measure(start: Start, root: Path, work: Path, tasks: int, idle_s: float, load_s: float) -> Costs:
    costs = Costs()
    watcher = start(root, work)
    try:
        watcher.wait_ready()
        costs.start_s = cpu_seconds(watcher.pid)
        time.sleep(QUIET_S if isinstance(watcher, Agent) else SETTLE_S)
        lives = _lives(watcher)
        before_s, began_s = cpu_seconds(watcher.pid), time.monotonic()
        time.sleep(idle_s)
        costs.idle = (cpu_seconds(watcher.pid) - before_s) / (time.monotonic() - began_s)
        costs.idle_mib = memory(watcher.pid).rss_kib / 1024
        if isinstance(watcher, Agent):
            costs.scrape_s = _scrape_cost(watcher)
        before_s = cpu_seconds(watcher.pid)
        first = time.monotonic_ns() // 1_000_000
        told = json.loads(
            run_module(
                "tests.bench.mixed_load", str(root), str(tasks), str(RATE), str(load_s), str(first)
            ).output
        )
        time.sleep(SETTLE_S)
        wait_until_idle(watcher.pid)
        costs.load_s = cpu_seconds(watcher.pid) - before_s
        costs.operations = told["operations"]
        touched = {int(task): (offset, remade) for task, (offset, remade) in told["touched"].items()}
        costs.remade = sum(remade for _, remade in touched.values())
        used = memory(watcher.pid)
        costs.rss_mib, costs.pss_mib = used.rss_kib / 1024, used.pss_kib / 1024
        costs.watches = watches(watcher.pid)
        if isinstance(watcher, Agent):
            costs.wrong = _count_wrong(watcher, touched, lives)
    finally:
        watcher.stop()
    return costs


def _scrape_cost(agent: Agent) -> float:
    before_s = cpu_seconds(agent.pid)
    for _ in range(SCRAPES):
        agent.metrics()
    return (cpu_seconds(agent.pid) - before_s) / SCRAPES


def _lives(watcher: Watcher) -> dict[int, int]:
    return watcher.by_task("statewarden_task_incarnation") if isinstance(watcher, Agent) else {}


def _count_wrong(agent: Agent, touched: dict[int, tuple[int, int]], before: dict[int, int]) -> int:
    offsets, lives = agent.offsets(), _lives(agent)
    return sum(
        offsets.get(task) != offset or lives.get(task) != before.get(task, 0) + remade
        for task, (offset, remade) in touched.items()
    )


def _row(name: str, rounds: Sequence[Costs], load_s: float) -> tuple[str, ...]:
    def told(value: Callable[[Costs], float], digits: int) -> str:
        return spread([value(one) for one in rounds], digits)

    is_agent = rounds[0].wrong is not None
    return (
        name,
        told(lambda x: x.start_s, 1),
        f"{told(lambda x: x.idle * 100, 2)} %",
        told(lambda x: x.scrape_s or 0.0, 2) if is_agent else "-",
        told(lambda x: x.load_s / x.operations * 1e6, 0),
        told(lambda x: x.operations / load_s, 0),
        f"{sum(x.remade for x in rounds):,}",
        f"{sum(x.wrong or 0 for x in rounds):,}" if is_agent else "-",
        told(lambda x: x.idle_mib, 0),
        told(lambda x: x.rss_mib, 0),
        told(lambda x: x.pss_mib, 0),
        f"{rounds[-1].watches:,}",
    )
