"""Cost of watching, side by side with C inotifywait and fswatch; events lost; delay from a rename to the metric."""

from __future__ import annotations

import bisect
import json
import statistics
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from tests.bench.measure import (
    ROOT,
    cpu_seconds,
    memory,
    quantile,
    run_module,
    spread,
    wait_until_idle,
    watches,
)
from tests.bench.report import Options, Section, judged
from tests.bench.tree_maker import make_tree, recorded_store
from tests.bench.watchers import Agent, BareWatch, FsWatch, InotifyWait, Watcher

TASKS = 1_000
RATE = 3_000
EVENTS_PER_REPLACEMENT = 4  # create, close, moved from, moved to
SETTLE_S = 2.0
SCRAPE_EVERY_S = 0.25
TRACE = ROOT / "tests" / "data" / "traces" / "benign-move-3.9.2" / "trace-pod-a.jsonl.gz"

Start = Callable[[Path, Path], Watcher]


@dataclass(slots=True)
class Costs:
    """What one watcher cost, one value per round.

    Args of the dataclass:
        cpu: CPU seconds per million events under load.
        rss: Resident MiB at the end.
        pss: The same, shared pages by share.
        watches: Watches at the end.
        lost: Notifications, or tasks whose last checkpoint is not known.
    """

    cpu: list[float] = field(default_factory=list)
    rss: list[float] = field(default_factory=list)
    pss: list[float] = field(default_factory=list)
    watches: int = 0
    lost: int = 0


def run(options: Options) -> Section:
    """Replace checkpoints of 1,000 tasks, 3,000 a second for a minute (small: 10 s)."""
    store = recorded_store(TRACE)
    busy = options.memory / "busy"
    make_tree(busy, TASKS, store)
    found, notes = starts()
    load_s = options.load_s
    took_s: list[float] = []
    loaded = _rounds(
        found, options.rounds, lambda start, costs: _load(start, busy, options.work, load_s, costs, took_s)
    )
    delays = [x for _ in range(options.rounds) for x in _delays(busy, options.work, load_s)]
    rate = RATE * load_s / statistics.median(took_s)
    notes += [
        f"Delay from the rename to a scrape that shows it, scraped every {SCRAPE_EVERY_S} s, which counts as delay:"
        f" p50 {quantile(delays, 0.5):.2f} s, p99 {quantile(delays, 0.99):.2f} s, longest {max(delays):.2f} s"
        f" ({len(delays):,} replacements).",
        *_goals(loaded, quantile(delays, 0.99)),
    ]
    return Section(
        "Watching",
        f"{TASKS:,} tasks, {RATE:,} checkpoint replacements a second for {load_s:.0f} s"
        f" ({EVENTS_PER_REPLACEMENT} notifications each), every watcher in turn, the order rotated from round to"
        f" round, same event kinds for all. `lost` is notifications not read; for the agent also tasks whose last"
        f" checkpoint is not in its metrics. The tree lies in memory where the machine has such a file system: a slow"
        f" disk would slow the load. Rate reached: {rate:,.0f} replacements a second.",
        (
            "watcher",
            "CPU s per million events",
            "ratio",
            "lost",
            "resident MiB",
            "proportional MiB",
            "watches",
        ),
        _rows(loaded),
        notes,
    )


def _goals(loaded: dict[str, Costs], p99_s: float) -> list[str]:
    agent, peer = loaded["agent"], loaded.get(InotifyWait.name)
    base = statistics.median(peer.cpu) if peer else None
    ratios = (
        [
            judged(
                "watching alone at most 1.5 x inotifywait",
                statistics.median(loaded[BareWatch.name].cpu) <= 1.5 * base,
            ),
            judged("with all semantic work at most 3 x", statistics.median(agent.cpu) <= 3 * base),
        ]
        if base
        else []
    )
    return [
        *ratios,
        judged("no event lost", not any(loaded[name].lost for name in loaded.keys() - {FsWatch.name})),
        judged("p99 of the delay below 1 s", p99_s < 1),
        judged("resident at most 48 MiB at 1,000 tasks", max(agent.rss) <= 48),
    ]


def starts() -> tuple[dict[str, Start], list[str]]:
    """Give the watchers to compare by name, and a note if one is not there."""
    found: dict[str, Start] = {
        BareWatch.name: BareWatch,
        "agent": Agent,
        "agent with spool": lambda root, work: Agent(root, work, with_spool=True),
    }
    notes = []
    if FsWatch.is_there():
        found = {FsWatch.name: FsWatch, **found}
    else:
        notes.append("SKIPPED: fswatch is not installed (Debian: fswatch).")
    if InotifyWait.is_there():
        return {InotifyWait.name: InotifyWait, **found}, notes
    notes.append("SKIPPED: inotifywait is not installed (Debian: inotify-tools), so there are no ratios.")
    return found, notes


def _rounds(
    starts: dict[str, Start], rounds: int, measure: Callable[[Start, Costs], None]
) -> dict[str, Costs]:
    costs = {name: Costs() for name in starts}
    names = list(starts)
    for number in range(rounds):
        turn = number % len(names)
        for name in names[turn:] + names[:turn]:
            measure(starts[name], costs[name])
    return costs


def _load(start: Start, root: Path, work: Path, seconds: float, costs: Costs, took_s: list[float]) -> None:
    watcher = start(root, work)
    events = told = 0
    try:
        watcher.wait_ready()
        time.sleep(SETTLE_S)
        before_s = cpu_seconds(watcher.pid)
        first = time.monotonic_ns() // 1_000_000
        times = json.loads(_run_load(root, seconds, first))
        took_s.append(times[-1] - times[0])
        time.sleep(SETTLE_S)
        wait_until_idle(watcher.pid)
        events, told = len(times) * EVENTS_PER_REPLACEMENT, len(times) * watcher.tells
        costs.cpu.append((cpu_seconds(watcher.pid) - before_s) / events * 1e6)
        _note_memory(watcher, costs)
        if isinstance(watcher, Agent):
            costs.lost += _unknown(watcher.offsets(), first, len(times))
    finally:
        read = watcher.stop()
    costs.lost += max(0, told - read)


def _run_load(root: Path, seconds: float, first: int) -> str:
    return run_module(
        "tests.bench.watch_load", str(root), str(TASKS), str(RATE), str(seconds), str(first)
    ).output


def _unknown(offsets: dict[int, int], first: int, count: int) -> int:
    """Count the tasks whose last checkpoint the agent does not know."""
    last = {number % TASKS: first + number for number in range(max(0, count - TASKS), count)}
    return sum(offsets.get(task) != offset for task, offset in last.items())


def _delays(root: Path, work: Path, seconds: float) -> list[float]:
    """Scrape an agent under load: for every replacement, how long until a scrape showed it or a later one."""
    agent = Agent(root, work)
    try:
        agent.wait_ready()
        first = time.monotonic_ns() // 1_000_000
        scrapes: list[tuple[float, dict[int, int]]] = []
        done = threading.Event()
        prober = threading.Thread(target=_scrape, args=(agent, scrapes, done))
        prober.start()
        times = json.loads(_run_load(root, seconds, first))
        time.sleep(SETTLE_S)
        done.set()
        prober.join()
    finally:
        agent.stop()
    shown: dict[int, tuple[list[int], list[float]]] = {task: ([], []) for task in range(TASKS)}
    for at_s, offsets in scrapes:
        for task, offset in offsets.items():
            shown[task][0].append(offset)
            shown[task][1].append(at_s)
    delays = []
    for number, at_s in enumerate(times):
        offsets_seen, seen_s = shown[number % TASKS]
        place = bisect.bisect_left(offsets_seen, first + number)
        delays.append(seen_s[place] - at_s if place < len(seen_s) else float("inf"))
    return delays


def _scrape(agent: Agent, scrapes: list[tuple[float, dict[int, int]]], done: threading.Event) -> None:
    while not done.wait(SCRAPE_EVERY_S):
        offsets = agent.offsets()
        scrapes.append((time.monotonic(), offsets))


def _note_memory(watcher: Watcher, costs: Costs) -> None:
    used = memory(watcher.pid)
    costs.rss.append(used.rss_kib / 1024)
    costs.pss.append(used.pss_kib / 1024)
    costs.watches = watches(watcher.pid)


def _rows(loaded: dict[str, Costs]) -> list[tuple[str, ...]]:
    peer = loaded.get(InotifyWait.name)
    base = statistics.median(peer.cpu) if peer else None
    return [
        (
            name,
            spread(costs.cpu),
            f"{statistics.median(costs.cpu) / base:.1f} x" if base else "-",
            f"{costs.lost:,}",
            spread(costs.rss, 0),
            spread(costs.pss, 0),
            f"{costs.watches:,}",
        )
        for name, costs in loaded.items()
    ]
