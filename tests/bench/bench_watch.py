"""Cost of watching, side by side with C inotifywait and fswatch; events lost; delay from a rename to the metric."""

from __future__ import annotations

import bisect
import json
import statistics
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from tests.bench.measure import (
    cpu_seconds,
    memory,
    quantile,
    run_module,
    spread,
    wait_until_idle,
    watches,
)
from tests.bench.report import Measured, Options, Section
from tests.bench.tree_maker import make_tree, recorded_store
from tests.bench.versions import AFTER, ROOT, Version
from tests.bench.watchers import Agent, BareWatch, FsWatch, InotifyWait, Watcher

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
    found, notes = starts(options.versions)
    costs = {name: Costs() for name in found}
    delays: dict[str, list[list[float]]] = {version.name: [] for version in options.versions}
    took_s: list[float] = []
    for number in range(options.rounds):
        for name in options.turns(list(found), number):
            _load(found[name], busy, options.work, options.load_s, costs[name], took_s)
        for version in options.versions[:: -1 if number % 2 else 1]:
            delays[version.name].append(_delays(busy, options.work, options.load_s, version))
    rate = RATE * options.load_s / statistics.median(took_s)
    after = [delay for one in delays[AFTER.name] for delay in one]
    notes.append(
        f"Delay from the rename to a scrape that shows it, scraped every {SCRAPE_EVERY_S} s, which counts as delay:"
        f" p50 {quantile(after, 0.5):.2f} s, p99 {quantile(after, 0.99):.2f} s,"
        f" longest {max(after):.2f} s ({len(after):,} replacements)."
    )
    return Section(
        "Watching",
        f"{TASKS:,} tasks, {RATE:,} checkpoint replacements a second for {options.load_s:g} s"
        f" ({EVENTS_PER_REPLACEMENT} notifications each), every watcher in turn, the order rotated from round to"
        f" round, same event kinds for all. `ratio` is the median of the rounds' own ratios. `lost` is notifications"
        f" not read; for the agent also tasks whose last checkpoint is not in its metrics. The tree lies in memory"
        f" where the machine has such a file system: a slow disk would slow the load. Rate reached: {rate:,.0f}"
        " replacements a second.",
        (
            "watcher",
            "CPU s per million events",
            "ratio",
            "lost",
            "resident MiB",
            "proportional MiB",
            "watches",
        ),
        _rows(costs),
        notes,
        _measured(costs, delays),
    )


def _measured(costs: dict[str, Costs], delays: dict[str, list[list[float]]]) -> list[Measured]:
    """Name what has a goal; the older commit's rows carry its name."""
    peer = costs.get(InotifyWait.name)
    told: list[Measured] = []
    for name, goal in ((BareWatch.name, "watching"), (Agent.name, "semantics"), (WITH_SPOOL, "spool")):
        after, before = costs[name], costs.get(f"{name}, before", Costs())
        peer_cpu = f"inotifywait {spread(peer.cpu)}" if peer else "-"
        told.append(Measured(f"{name}, CPU s per million events", after.cpu, before.cpu, peer_cpu))
        if peer:
            ratios, ratios_before = (ratios_to(one.cpu, peer.cpu) for one in (after, before))
            told.append(
                Measured(f"{name}, CPU, times inotifywait's", ratios, ratios_before, f"{peer_cpu} s", goal)
            )
    after, before = costs[Agent.name], costs.get(f"{Agent.name}, before", Costs())
    lost = [float(sum(one.lost for name, one in costs.items() if is_agents(name, "after")))]
    lost_before = [float(sum(one.lost for name, one in costs.items() if is_agents(name, "before")))]
    late, late_before = (
        [quantile(one, 0.99) for one in delays.get(name, ())] for name in ("after", "before")
    )
    return [
        *told,
        Measured("lost, notifications and last checkpoints", lost, lost_before, goal="lost", digits=0),
        Measured("delay, p99, s", late, late_before, goal="delay"),
        Measured(f"agent, resident MiB at {TASKS:,} tasks", after.rss, before.rss, digits=0),
    ]


def is_agents(name: str, version: str) -> bool:
    """Tell whether a row is of the agent in that version."""
    return name.startswith("agent") and name.endswith(", before") == (version == "before")


def ratios_to(values: Sequence[float], peers: Sequence[float]) -> list[float]:
    """Give each round's ratio."""
    return [value / peer for value, peer in zip(values, peers, strict=False)]


def starts(versions: Sequence[Version] = (AFTER,)) -> tuple[dict[str, Start], list[str]]:
    """Give the watchers to compare by name, and a note if one is not there."""
    found: dict[str, Start] = {}
    for version in versions:
        found[version.label(BareWatch.name)] = partial(BareWatch, version=version)
        found[version.label(Agent.name)] = partial(Agent, version=version)
        found[version.label(WITH_SPOOL)] = partial(Agent, version=version, with_spool=True)
    notes = []
    if FsWatch.is_there():
        found = {FsWatch.name: FsWatch, **found}
    else:
        notes.append("SKIPPED: fswatch is not installed (Debian: fswatch).")
    if InotifyWait.is_there():
        return {InotifyWait.name: InotifyWait, **found}, notes
    notes.append("SKIPPED: inotifywait is not installed (Debian: inotify-tools), so there are no ratios.")
    return found, notes


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
            watcher.wait_until_heard(SETTLE_S / 2)
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


def _delays(root: Path, work: Path, seconds: float, version: Version) -> list[float]:
    """Scrape an agent under load: for every replacement, how long until a scrape showed it or a later one."""
    agent = Agent(root, work, version=version)
    try:
        agent.wait_ready()
        first = time.monotonic_ns() // 1_000_000
        scrapes: list[tuple[float, dict[int, int]]] = []
        done = threading.Event()
        prober = threading.Thread(target=scrape, args=(agent, scrapes, done))
        prober.start()
        times = json.loads(_run_load(root, seconds, first))
        _wait_until_shown(scrapes, first, len(times))
        done.set()
        prober.join()
    finally:
        agent.stop()
    written = [(number % TASKS, first + number, at_s) for number, at_s in enumerate(times)]
    return seen_after(written, scrapes)


def _wait_until_shown(scrapes: list[tuple[float, dict[int, int]]], first: int, count: int) -> None:
    """Wait until a scrape shows every task's last checkpoint: a busy machine may take longer than any goal."""
    deadline_s = time.monotonic() + SHOWN_WITHIN_S
    while time.monotonic() < deadline_s and (not scrapes or _unknown(scrapes[-1][1], first, count)):
        time.sleep(SCRAPE_EVERY_S)


def seen_after(
    written: Sequence[tuple[int, int, float]], scrapes: Sequence[tuple[float, dict[int, int]]]
) -> list[float]:
    """Tell for each checkpoint how long it took until a scrape showed it or a later one.

    Args:
        written: Task, offset and time of each; the offsets of a task grow.
        scrapes: Time of each, and the offsets that it showed.
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


def scrape(agent: Agent, scrapes: list[tuple[float, dict[int, int]]], done: threading.Event) -> None:
    """Scrape again and again until `done`."""
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
    return [
        (
            name,
            spread(costs.cpu),
            f"{statistics.median(ratios_to(costs.cpu, peer.cpu)):.1f} x" if peer else "-",
            f"{costs.lost:,}",
            spread(costs.rss, 0),
            spread(costs.pss, 0),
            f"{costs.watches:,}",
        )
        for name, costs in loaded.items()
    ]
