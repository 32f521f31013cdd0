"""Many tasks: cost of the start, of doing nothing, and of a mixed load; every final state must be known."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.bench.bench_watch import TRACE, WITH_SPOOL, Start, starts
from tests.bench.measure import cpu_seconds, memory, run_module, spread, wait_until_idle, watches
from tests.bench.report import Measured, Options, Section
from tests.bench.tree_maker import APPLICATION, make_tree, recorded_store
from tests.bench.watchers import Agent, BareWatch, FsWatch, InotifyWait, Watcher

FULL, SMALL = 10_000, 1_000
RATE = 1_000
WATCHES_PER_TASK = 3
QUIET_S = 40.0
"""After a start: by then nothing waits to be judged again."""
SETTLE_S = 5.0
SCRAPES = 5
HEARD_S = 2.0
"""A starved process looks idle: only when its mailbox was empty for so long it is asked what it knows."""
_LIMIT = Path("/proc/sys/fs/inotify/max_user_watches")
_NOT_HERE = f"{BareWatch.name}, before"
"""Nothing is promised of it here, and every watcher needs 30,000 of the user's watches."""


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
        remade: Tasks that were deleted and recreated.
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
    """Start all watchers on 10,000 tasks each (small: 1,000), leave them alone, then work on them; in every round."""
    tasks = FULL if options.full else SMALL
    idle_s = 30.0 if options.full else 20.0
    found, notes = starts(options.versions)
    found = {name: start for name, start in found.items() if WITH_SPOOL not in name and name != _NOT_HERE}
    for name in (FsWatch.name, BareWatch.name):
        if len(found) * WATCHES_PER_TASK * (tasks + 1) > int(_LIMIT.read_text("ascii")):
            found.pop(name, None)
            notes.append(f"SKIPPED: {name}; {_LIMIT} does not allow so many watches at the same time.")
    roots = {name: options.memory / str(number) for number, name in enumerate(found)}
    for root in roots.values():
        make_tree(root, tasks, recorded_store(TRACE))
    costs: dict[str, list[Costs]] = {name: [] for name in found}
    for number in range(options.rounds):
        order = options.turns(list(found), number)
        for name, one in _round(found, roots, order, options, idle_s).items():
            costs[name].append(one)
    return Section(
        "Many tasks",
        f"{tasks:,} tasks in memory for each watcher, {options.rounds} rounds, the order rotated."
        f" Idle: {idle_s:.0f} s, all at the same time, from {QUIET_S:.0f} s after the last start on,"
        f" nobody scrapes. Then, one after another, the mixed load for {options.load_s:g} s, at most {RATE:,}"
        " operations a second on tasks chosen by chance: checkpoint replacements, every 8th an SST file that comes (and"
        " later goes), every 250th a task deleted with all its files and recreated. `not known`: tasks whose last"
        " checkpoint, or whose number of lives, the agent does not tell afterwards.",
        (
            "watcher",
            "CPU s to start",
            "idle CPU",
            "CPU s per scrape",
            "CPU ms per 1,000 operations",
            "operations/s",
            "tasks recreated",
            "not known",
            "resident MiB idle",
            "resident MiB after",
            "proportional MiB",
            "watches",
        ),
        [_row(name, rounds, options.load_s) for name, rounds in costs.items()],
        notes,
        _measured(costs, tasks),
    )


def _measured(costs: dict[str, list[Costs]], tasks: int) -> list[Measured]:
    after, before, peer = (
        costs[Agent.name],
        costs.get(f"{Agent.name}, before", []),
        costs.get(InotifyWait.name),
    )

    def told(
        what: str,
        value: Callable[[Costs], float],
        goal: str | None = None,
        digits: int = 2,
        *,
        alone: bool = False,
    ) -> Measured:
        beside = f"inotifywait {spread([value(x) for x in peer], digits)}" if peer and not alone else "-"
        judged = goal if tasks == FULL else None
        return Measured(what, [value(x) for x in after], [value(x) for x in before], beside, judged, digits)

    return [
        told(f"idle at {tasks:,} tasks, % of a core", lambda x: x.idle * 100, "idle"),
        told("start, CPU s", lambda x: x.start_s, digits=1),
        told("scrape, CPU ms", lambda x: (x.scrape_s or 0.0) * 1e3, digits=0, alone=True),
        told("mixed load, CPU ms per 1,000 operations", lambda x: x.load_s / x.operations * 1e6, digits=0),
        told("resident MiB, idle", lambda x: x.idle_mib, digits=0),
        told("resident MiB, after the load", lambda x: x.rss_mib, digits=0),
        told("not known afterwards, tasks", lambda x: float(x.wrong or 0), "known", 0, alone=True),
    ]


def _round(
    found: dict[str, Start], roots: dict[str, Path], order: Sequence[str], options: Options, idle_s: float
) -> dict[str, Costs]:
    """Idle together, as nobody is in another's way; work one after another."""
    costs = {name: Costs() for name in order}
    watchers: dict[str, Watcher] = {}
    try:
        for number, name in enumerate(order):
            work = options.work / str(number)
            work.mkdir(exist_ok=True)
            watchers[name] = found[name](roots[name], work)
            watchers[name].wait_ready()
            costs[name].start_s = cpu_seconds(watchers[name].pid)
        time.sleep(QUIET_S)
        lives = {name: _lives(watcher) for name, watcher in watchers.items()}
        time.sleep(SETTLE_S)
        before_s = {name: cpu_seconds(watcher.pid) for name, watcher in watchers.items()}
        time.sleep(idle_s)
        for name, watcher in watchers.items():
            costs[name].idle = (cpu_seconds(watcher.pid) - before_s[name]) / idle_s
            costs[name].idle_mib = memory(watcher.pid).rss_kib / 1024
        for name in order:
            _work(watchers[name], roots[name], lives[name], costs[name], options.load_s)
    finally:
        for watcher in watchers.values():
            watcher.stop()
    return costs


def _work(watcher: Watcher, root: Path, lives: dict[int, int], costs: Costs, load_s: float) -> None:
    """Measure one watcher under the mixed load; the others have nothing to do."""
    tasks = sum(1 for _ in (root / APPLICATION).glob("0_*"))
    if isinstance(watcher, Agent):
        costs.scrape_s = _scrape_cost(watcher)
    before_s = cpu_seconds(watcher.pid)
    first = time.monotonic_ns() // 1_000_000
    told = json.loads(
        run_module("tests.bench.mixed_load", str(root), str(tasks), str(RATE), str(load_s), str(first)).output
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
        watcher.wait_until_heard(HEARD_S)
        costs.wrong = _count_wrong(watcher, touched, lives)


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
