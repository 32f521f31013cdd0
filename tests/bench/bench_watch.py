"""Cost of watching, side by side with C inotifywait; events lost; delay from a rename to the metric."""

from __future__ import annotations

import bisect
import json
import sys
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from tests.bench.measure import cpu_seconds, memory, quantile, run_module, spread, wait_until_idle
from tests.bench.report import Measured, Options
from tests.bench.tree_maker import make_tree, recorded_store
from tests.bench.versions import AFTER, ROOT, Version
from tests.bench.watchers import Agent, BareWatch, InotifyWait, Watcher

WITH_SPOOL = "agent with spool"
TASKS = 1_000
RATE = 3_000
EVENTS_PER_REPLACEMENT = 4  # create, close, moved from, moved to
SETTLE_S = 2.0
SCRAPE_EVERY_S = 0.25
SHOWN_WITHIN_S = 30.0
TRACE = ROOT / "tests" / "data" / "traces" / "benign-move-3.9.2" / "trace-pod-a.jsonl.gz"

Start = Callable[[Path, Path], Watcher]


@dataclass(slots=True)
class Costs:
    """What one watcher cost, one value per round."""

    cpu: list[float] = field(default_factory=list)  # CPU seconds per million events under load
    rss: list[float] = field(default_factory=list)  # resident MiB at the end
    lost: int = 0  # notifications, or tasks whose last checkpoint is not known


def run(options: Options) -> list[Measured]:
    """Replace checkpoints of 1,000 tasks, 3,000 a second for a minute (small: 10 s), in memory.

    Every watcher in turn, with the same kinds of events. `lost` is notifications not read; for the agent also tasks
    whose last checkpoint is not in its metrics.
    """
    busy = options.memory / "busy"
    make_tree(busy, TASKS, recorded_store(TRACE))
    found = starts(options.versions)
    costs = {name: Costs() for name in found}
    for number in range(options.rounds):
        for name in options.turns(list(found), number):
            _load(found[name], busy, options.work, options.load_s, costs[name])
    delays = options.each(partial(_delays, busy, options.work, options.load_s))
    return _measured(costs, delays)


def _measured(costs: dict[str, Costs], delays: dict[str, list[float]]) -> list[Measured]:
    """Name what has a goal; the older commit's rows carry its name."""
    peer = costs.get(InotifyWait.name)
    told: list[Measured] = []
    for name, goal in ((BareWatch.name, "watching"), (Agent.name, "semantics"), (WITH_SPOOL, "spool")):
        after, before = costs[name], costs.get(f"{name}, before", Costs())
        told.append(Measured(f"{name}, CPU s per million events", after.cpu, before.cpu))
        if peer:
            ratios, ratios_before = (
                [x / y for x, y in zip(one.cpu, peer.cpu, strict=False)] for one in (after, before)
            )
            peer_cpu = f"inotifywait {spread(peer.cpu)} s"
            told.append(Measured(f"{name}, CPU, times inotifywait's", ratios, ratios_before, peer_cpu, goal))
    after, before = costs[Agent.name], costs.get(f"{Agent.name}, before", Costs())
    lost = [float(costs[Agent.name].lost + costs[WITH_SPOOL].lost)]
    return [
        *told,
        Measured("lost, notifications and last checkpoints", lost, goal="lost", digits=0),
        Measured("delay, p99, s", delays["after"], delays.get("before", ()), goal="delay"),
        Measured(f"agent, resident MiB at {TASKS:,} tasks", after.rss, before.rss, digits=0),
    ]


def starts(versions: Sequence[Version] = (AFTER,)) -> dict[str, Start]:
    """Give the watchers to compare by name."""
    found: dict[str, Start] = {}
    if InotifyWait.is_there():
        found[InotifyWait.name] = InotifyWait
    else:
        sys.stderr.write("SKIPPED: inotifywait is not installed (Debian: inotify-tools): no ratios.\n")
    for version in versions:
        found[version.label(BareWatch.name)] = partial(BareWatch, version=version)
        found[version.label(Agent.name)] = partial(Agent, version=version)
        found[version.label(WITH_SPOOL)] = partial(Agent, version=version, with_spool=True)
    return found


def _load(start: Start, root: Path, work: Path, seconds: float, costs: Costs) -> None:
    watcher = start(root, work)
    told = 0
    try:
        watcher.wait_ready()
        time.sleep(SETTLE_S)
        before_s = cpu_seconds(watcher.pid)
        first = time.monotonic_ns() // 1_000_000
        count = len(_run_load(root, seconds, first))
        time.sleep(SETTLE_S)
        wait_until_idle(watcher.pid)
        told = count * EVENTS_PER_REPLACEMENT
        costs.cpu.append((cpu_seconds(watcher.pid) - before_s) / told * 1e6)
        costs.rss.append(memory(watcher.pid).rss_kib / 1024)
        if isinstance(watcher, Agent):
            watcher.wait_until_heard(SETTLE_S / 2)
            costs.lost += _unknown(watcher.offsets(), first, count)
    finally:
        read = watcher.stop()
    costs.lost += max(0, told - read)


def _run_load(root: Path, seconds: float, first: int) -> list[float]:
    words = (str(root), str(TASKS), str(RATE), str(seconds), str(first))
    times: list[float] = json.loads(run_module("tests.bench.watch_load", *words).output)
    return times


def _unknown(offsets: dict[int, int], first: int, count: int) -> int:
    """Count the tasks whose last checkpoint the agent does not know."""
    last = {number % TASKS: first + number for number in range(max(0, count - TASKS), count)}
    return sum(offsets.get(task) != offset for task, offset in last.items())


def _delays(root: Path, work: Path, seconds: float, version: Version) -> float:
    """Scrape an agent under load: p99 of how long it took until a scrape showed a replacement or a later one."""
    agent = Agent(root, work, version=version)
    try:
        agent.wait_ready()
        first = time.monotonic_ns() // 1_000_000
        scrapes: list[tuple[float, dict[int, int]]] = []
        done = threading.Event()
        prober = threading.Thread(target=_scrape, args=(agent, scrapes, done))
        prober.start()
        times = _run_load(root, seconds, first)
        deadline_s = time.monotonic() + SHOWN_WITHIN_S
        while time.monotonic() < deadline_s and (not scrapes or _unknown(scrapes[-1][1], first, len(times))):
            time.sleep(SCRAPE_EVERY_S)
        done.set()
        prober.join()
    finally:
        agent.stop()
    written = [(number % TASKS, first + number, at_s) for number, at_s in enumerate(times)]
    return quantile(_seen_after(written, scrapes), 0.99)


def _seen_after(
    written: Sequence[tuple[int, int, float]], scrapes: Sequence[tuple[float, dict[int, int]]]
) -> list[float]:
    """Tell for each checkpoint how long it took until a scrape showed it or a later one.

    `written`: task, offset and time of each; the offsets of a task grow. `scrapes`: time of each, and its offsets.
    """
    shown: dict[int, tuple[list[int], list[float]]] = {task: ([], []) for task, _, _ in written}
    for at_s, offsets in scrapes:
        for task in offsets.keys() & shown.keys():
            shown[task][0].append(offsets[task])
            shown[task][1].append(at_s)
    delays = []
    for task, offset, at_s in written:
        offsets_seen, seen_s = shown[task]
        place = bisect.bisect_left(offsets_seen, offset)
        delays.append(seen_s[place] - at_s if place < len(seen_s) else float("inf"))
    return delays


def _scrape(agent: Agent, scrapes: list[tuple[float, dict[int, int]]], done: threading.Event) -> None:
    while not done.wait(SCRAPE_EVERY_S):
        offsets = agent.offsets()
        scrapes.append((time.monotonic(), offsets))
