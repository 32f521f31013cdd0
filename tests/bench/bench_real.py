"""The realistic load: 100 tasks that do what tasks of a real application did; CPU share, memory and delay."""

from __future__ import annotations

import json
import shutil
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.bench.bench_watch import WITH_SPOOL, Start, is_agents, scrape, seen_after, starts
from tests.bench.measure import cpu_seconds, memory, quantile, spread
from tests.bench.report import Measured, Options, Section
from tests.bench.versions import AFTER, ROOT
from tests.bench.watchers import Agent, BareWatch, FsWatch, InotifyWait, Watcher

TASKS = 100
SECONDS = 45.0
SETTLE_S = 5.0
HEARD_S = 1.0
RECORDING = ROOT / "tests" / "bench" / "data" / "real-4.2.2.jsonl.gz"


@dataclass(slots=True)
class Costs:
    """What one watcher cost, one value per round.

    Args of the dataclass:
        share: CPU seconds per second of load.
        rss: Resident MiB at the end.
        pss: The same, shared pages by share.
        lost: Notifications; for the agent also tasks whose last checkpoint is not known.
        findings: Open findings at the end.
    """

    share: list[float] = field(default_factory=list)
    rss: list[float] = field(default_factory=list)
    pss: list[float] = field(default_factory=list)
    lost: int = 0
    findings: float = 0.0


def run(options: Options) -> Section:
    """Play 45 s of the recording (small: as long as any load)."""
    seconds = SECONDS if options.full else options.load_s
    found, notes = starts(options.versions)
    found = {name: start for name, start in found.items() if not name.startswith(BareWatch.name)}
    costs = {name: Costs() for name in found}
    late: dict[str, list[list[float]]] = {version.name: [] for version in options.versions}
    told = [_round(found, number, options, seconds, costs, late) for number in range(options.rounds)]
    checkpoints = sum(len(one["checkpoints"]) for one in told)
    rates = [one["notifications"] / one["took_s"] for one in told]
    everything = [delay for one in late[AFTER.name] for delay in one]
    if not everything:
        everything = [0.0]
    return Section(
        "A realistic load",
        f"{TASKS} tasks in memory do what the tasks of a real application (Kafka Streams 4.2.2, 2,000 records a second"
        f" and task, a commit every 30 s, memtables of 1 MiB) did on its disk, at the same pace, from different moments"
        f" on, for {seconds:g} s. All watchers at the same time on the same directories, as there is room for all of"
        f" them; the order of their starts rotates. The delay is measured on agents of their own,"
        " scraped every 0.25 s.",
        ("watcher", "CPU, % of a core", "resident MiB", "proportional MiB", "lost", "open findings"),
        [
            (
                name,
                spread([100 * x for x in one.share]),
                spread(one.rss, 0),
                spread(one.pss, 0),
                f"{one.lost:,}",
                f"{one.findings:g}" if "agent" in name else "-",
            )
            for name, one in costs.items()
        ],
        [
            *notes,
            f"{statistics.median(rates):,.0f} notifications a second, {checkpoints:,} checkpoints in all.",
            f"Delay from the rename to a scrape that shows it, up to 0.25 s of scraping included:"
            f" p50 {quantile(everything, 0.5):.2f} s, p99 {quantile(everything, 0.99):.2f} s,"
            f" longest {max(everything):.2f} s. The load lagged behind the recording by"
            f" {max(x['late_s'] for x in told):.2f} s at most.",
        ],
        _measured(costs, late),
    )


def _measured(costs: dict[str, Costs], late: dict[str, list[list[float]]]) -> list[Measured]:
    told, peer = [], costs.get(InotifyWait.name)
    for name in (Agent.name, WITH_SPOOL):
        after, before = costs[name], costs.get(f"{name}, before", Costs())
        share = f"inotifywait {spread([100 * x for x in peer.share])}" if peer else "-"
        shares, shares_before = ([100 * x for x in one.share] for one in (after, before))
        told += [
            Measured(f"realistic load, {name}, % of a core", shares, shares_before, share),
            Measured(f"realistic load, {name}, resident MiB", after.rss, before.rss, digits=0),
        ]
    lost, lost_before = (
        [float(sum(one.lost for name, one in costs.items() if is_agents(name, version)))]
        for version in ("after", "before")
    )
    p99, p99_before = (
        [quantile(one, 0.99) for one in late.get(name, ()) if one] for name in ("after", "before")
    )
    told.append(Measured("realistic load, lost", lost, lost_before, goal="real-lost", digits=0))
    if p99:
        told.append(Measured("realistic load, delay, p99, s", p99, p99_before, goal="real-delay"))
    return told


def _round(
    found: dict[str, Start],
    number: int,
    options: Options,
    seconds: float,
    costs: dict[str, Costs],
    late: dict[str, list[list[float]]],
) -> dict[str, Any]:
    root = options.memory / "real"
    shutil.rmtree(root, ignore_errors=True)
    watchers: dict[str, Watcher] = {}
    scraped: dict[str, Agent] = {}
    with _load(root, seconds) as load:
        try:
            for name in options.turns(list(found), number):
                watchers[name] = found[name](root, _folder(options.work, name))
            for version in options.versions:
                folder = _folder(options.work, f"scraped-{version.name}")
                scraped[version.name] = Agent(root, folder, version=version)
            for watcher in (*watchers.values(), *scraped.values()):
                watcher.wait_ready()
            time.sleep(SETTLE_S)
            before_s = {name: cpu_seconds(watcher.pid) for name, watcher in watchers.items()}
            scrapes, told = _play(load, scraped)
            for name, watcher in watchers.items():
                one = costs[name]
                one.share.append((cpu_seconds(watcher.pid) - before_s[name]) / told["took_s"])
                used = memory(watcher.pid)
                one.rss.append(used.rss_kib / 1024)
                one.pss.append(used.pss_kib / 1024)
                if isinstance(watcher, Agent):
                    watcher.wait_until_heard(HEARD_S)
                    one.lost += _unknown(watcher, told["checkpoints"])
                    metrics = watcher.metrics()
                    one.findings = sum(
                        value
                        for series, value in metrics.items()
                        if series.startswith("statewarden_findings_open{")
                    )
        finally:
            for watcher in scraped.values():
                watcher.stop()
            read = {name: watcher.stop() for name, watcher in watchers.items()}
    for name, count in read.items():
        if name != FsWatch.name:
            costs[name].lost += max(0, told["notifications"] - count)
    for name, seen in scrapes.items():
        late[name].append(seen_after([tuple(x) for x in told["checkpoints"]], seen))
    return told


def _play(
    load: subprocess.Popen[str], scraped: dict[str, Agent]
) -> tuple[dict[str, list[tuple[float, dict[int, int]]]], dict[str, Any]]:
    """Let the load play, scrape meanwhile, and wait until the last change is out."""
    assert load.stdin is not None
    assert load.stdout is not None
    scrapes: dict[str, list[tuple[float, dict[int, int]]]] = {name: [] for name in scraped}
    done = threading.Event()
    probers = [threading.Thread(target=scrape, args=(scraped[name], scrapes[name], done)) for name in scraped]
    for prober in probers:
        prober.start()
    load.stdin.write("go\n")
    load.stdin.flush()
    told: dict[str, Any] = json.loads(load.stdout.readline())
    time.sleep(SETTLE_S)
    done.set()
    for prober in probers:
        prober.join()
    return scrapes, told


def _unknown(agent: Agent, checkpoints: Sequence[Sequence[float]]) -> int:
    """Count the tasks whose last checkpoint the agent does not know."""
    last = {int(task): int(offset) for task, offset, _ in checkpoints}
    offsets = agent.offsets()
    return sum(offsets.get(task) != offset for task, offset in last.items())


def _folder(work: Path, name: str) -> Path:
    folder = work / name.replace(" ", "-").replace(",", "")
    folder.mkdir(exist_ok=True)
    return folder


@contextmanager
def _load(root: Path, seconds: float) -> Iterator[subprocess.Popen[str]]:
    """Make the tree and hold its locks, until all is measured."""
    command = (
        sys.executable,
        "-m",
        "tests.bench.real_load",
        str(root),
        str(RECORDING),
        str(TASKS),
        str(seconds),
    )
    with subprocess.Popen(
        command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as load:
        assert load.stdin is not None
        assert load.stdout is not None
        if load.stdout.readline().strip() != "ready":
            raise RuntimeError("the realistic load could not be prepared")
        yield load
        load.stdin.close()
