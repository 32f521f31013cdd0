"""A soak: the agent on 10,000 tasks under the mixed load for an hour. Memory and descriptors must not grow.

What fills up and then stays full is filled first, or an hour would only show the filling: former lives and wipes
of each task (at the load's own pace that takes a day), the table of watches (Python remakes it once per 57,000
new watches, and the allocator needs four remakes until it has the holes that the next one fits in), and the walk's
memory of its visits (one round takes about half an hour under load, and is sampled as warm-up).

Fails if anything was lost, if the walk never came round, or if memory or descriptors grew by more than is allowed
(from the median of the second quarter of the time to that of the last). All but losses is judged from
`JUDGED_MINUTES` on: a short run shows that this works, not that nothing leaks.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path

import psutil

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from agent.inventory.model import PAST_KEPT  # noqa: E402 - path first
from tests.bench.bench_many import LIVES  # noqa: E402 - path first
from tests.bench.bench_many import unknown as count_unknown  # noqa: E402
from tests.bench.bench_watch import TRACE  # noqa: E402
from tests.bench.measure import cpu_seconds, memory, watches  # noqa: E402
from tests.bench.mixed_load import MixedLoad  # noqa: E402
from tests.bench.report import machine_note  # noqa: E402
from tests.bench.tree_maker import make_tree, recorded_store  # noqa: E402
from tests.bench.watchers import Agent  # noqa: E402

MEMORY = Path("/dev/shm")
TASKS, RATE = 10_000, 500
JUDGED_MINUTES = 20.0
FILL_ROUNDS = PAST_KEPT
"""How often every task is recreated first."""
WARM_UP_SHARE = 0.75
"""Of the judged minutes: 45 for an hour."""
SETTLE_S = 10.0
FOLLOWED_EVERY = 200
ALLOWED = {"resident_mib": 1.0, "proportional_mib": 1.0, "descriptors": 1.0, "threads": 1.0}
"""Growth per hour that is still flat."""

_LOSSES = (
    "statewarden_agent_queue_overflows_total",
    "statewarden_agent_mailbox_dropped_total",
    "statewarden_agent_missed_changes_total",
    "statewarden_agent_canaries_missed_total",
    "statewarden_agent_spool_drops_total",
    "statewarden_agent_spool_write_failures_total",
)


@dataclass(frozen=True, slots=True)
class Sample:
    """What the agent was like at one moment."""

    at_s: float  # seconds since the load began
    resident_mib: float
    proportional_mib: float  # the same, shared pages by share
    descriptors: int
    threads: int
    watches: int
    waiting: float  # notifications in the mailbox
    blind_s: float  # so far, all causes
    lost: float  # what any counter of a loss says
    findings: float  # open ones
    cpu_s: float  # since its start
    round_s: float  # what the walk's last whole round took; 0 = there was none yet


@dataclass(frozen=True, slots=True)
class Outcome:
    samples: list[Sample]
    operations: int
    touched: int  # tasks that they were done on
    remade: int  # tasks deleted and recreated
    unknown: int  # tasks whose last checkpoint is not told at the end
    lives: int  # tasks whose number of lives is not told: a life that was over before anybody came to look
    late_s: float  # how long after the load the mailbox was empty


def main(arguments: Sequence[str] | None = None) -> int:
    """Run it; 1 if something was lost or grew for certain."""
    parser = argparse.ArgumentParser(prog="soak", description=__doc__.partition("\n")[0] if __doc__ else "")
    parser.add_argument(
        "minutes", nargs="?", type=float, default=60.0, help="how long it is judged (default: 60)"
    )
    chosen = parser.parse_args(arguments)
    judged = chosen.minutes >= JUDGED_MINUTES
    rounds, warm_up = FILL_ROUNDS * judged, WARM_UP_SHARE * chosen.minutes
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("soak: told to stop"))  # nothing may stay behind
    in_memory = MEMORY if os.access(MEMORY, os.W_OK) else None
    with (
        tempfile.TemporaryDirectory(prefix="statewarden-soak-") as work,
        tempfile.TemporaryDirectory(prefix="statewarden-soak-", dir=in_memory) as memory_root,
    ):
        seconds = (warm_up + chosen.minutes) * 60
        outcome = soak(Path(memory_root) / "state", Path(work), seconds, rounds)
    lines, failures = judge(outcome, warm_up, chosen.minutes)
    sys.stdout.write("\n".join([*lines, *failures]) + "\n")
    return int(bool(failures))


def soak(root: Path, work: Path, seconds: float, rounds: int) -> Outcome:
    """Start an agent with spool and sink, work on its tasks, sample it; clear away what it ships, as a reader would."""
    make_tree(root, TASKS, recorded_store(TRACE))
    shipped = work / "shipped"
    shipped.mkdir()
    agent = Agent(root, work, with_spool=True, more=("--ship-to", str(shipped)))
    try:
        agent.wait_ready()
        _fill(agent, root, rounds)
        time.sleep(SETTLE_S)
        lives = agent.by_task(LIVES)
        first = time.monotonic_ns() // 1_000_000
        command = ("tests.bench.mixed_load", str(root), str(TASKS), str(RATE), str(seconds), str(first))
        with (work / "load.json").open("wb") as told:
            load = subprocess.Popen([sys.executable, "-m", *command], cwd=ROOT, stdout=told)
        samples = _sample_while(load, agent, shipped, seconds)
        late_s = agent.wait_until_heard(SETTLE_S)
        answer = json.loads((work / "load.json").read_bytes())
        unknown, wrong = count_unknown(agent, answer["touched"], lives)
    finally:
        agent.stop()
    remade = sum(remade for _, remade in answer["touched"].values())
    return Outcome(samples, answer["operations"], len(answer["touched"]), remade, unknown, wrong, late_s)


def _fill(agent: Agent, root: Path, rounds: int) -> None:
    """Recreate every task, no faster than the agent follows: a life must be seen to be remembered."""
    load = MixedLoad(root, TASKS, first=0)
    for number in (*range(TASKS),) * rounds:
        load.recreate(number)
        if number % FOLLOWED_EVERY == 0:
            agent.wait_until_heard(0.5)


def _sample_while(load: subprocess.Popen[bytes], agent: Agent, shipped: Path, seconds: float) -> list[Sample]:
    every_s = min(10.0, seconds / 30)
    began_s = next_s = time.monotonic()
    samples: list[Sample] = []
    try:
        while load.poll() is None:
            samples.append(_sample(agent, began_s))
            for pod in shipped.iterdir():
                shutil.rmtree(pod, ignore_errors=True)
            next_s = max(next_s + every_s, time.monotonic())
            time.sleep(max(0.0, next_s - time.monotonic()))
    finally:
        if load.poll() is None:
            load.kill()
        load.wait()
    return samples


def _sample(agent: Agent, began_s: float) -> Sample:
    pid = agent.pid
    at_s, used, told = time.monotonic() - began_s, memory(pid), agent.metrics()

    def total(family: str) -> float:
        return sum(value for series, value in told.items() if series.partition("{")[0] == family)

    return Sample(
        at_s=round(at_s, 3),
        resident_mib=used.rss_kib / 1024,
        proportional_mib=used.pss_kib / 1024,
        descriptors=psutil.Process(pid).num_fds(),
        threads=psutil.Process(pid).num_threads(),
        watches=watches(pid),
        waiting=total("statewarden_agent_mailbox_waiting"),
        blind_s=total("statewarden_agent_blind_seconds_total"),
        lost=sum(total(family) for family in _LOSSES),
        findings=total("statewarden_findings_open"),
        cpu_s=cpu_seconds(pid),
        round_s=total("statewarden_agent_reconcile_round_seconds"),
    )


def judge(outcome: Outcome, warm_up: float, minutes: float) -> tuple[list[str], list[str]]:
    """Sum a soak up: lines to show, and what makes it fail. Losses count from the start, growth after the warm-up."""
    started, last = outcome.samples[0], outcome.samples[-1]
    samples = [x for x in outcome.samples if x.at_s >= warm_up * 60] or [last]
    first = samples[0]
    span_s = max(last.at_s - first.at_s, 1e-9)
    lines = [
        machine_note(),
        f"{minutes:g} minutes after {warm_up:g} of warm-up, {outcome.operations:,} operations"
        f" ({outcome.operations / ((warm_up + minutes) * 60):,.0f}/s) on"
        f" {outcome.touched:,} tasks, {outcome.remade:,} recreated, {len(samples)} samples,"
        f" {(last.cpu_s - first.cpu_s) / span_s:.1%} of a core",
        "| number | first | a quarter in | last | lowest | highest | growth per hour |",
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    failures = []
    for field in fields(Sample)[1:]:
        values = [float(getattr(x, field.name)) for x in samples]
        grown = growth(values, span_s / 3600)
        lines.append(_row(field.name, values, grown))
        allowed = ALLOWED.get(field.name)
        if allowed is not None and grown > allowed and minutes >= JUDGED_MINUTES:
            failures.append(f"FAILED: {field.name} grows by {grown:.2f} an hour")
    lines.append(
        f"tasks whose last checkpoint is not known: {outcome.unknown}; whose number of lives is not: {outcome.lives};"
        f" the last notification was followed {outcome.late_s:.0f} s after the load"
    )
    if minutes >= JUDGED_MINUTES and not last.round_s:
        failures.append("FAILED: not one round of the walk has ended")
    if outcome.unknown or outcome.lives or last.lost > started.lost:
        lost = f"lost {last.lost - started.lost:g}, not known {outcome.unknown} and {outcome.lives}"
        failures.append(f"FAILED: {lost}")
    return lines, failures


def growth(values: Sequence[float], hours: float) -> float:
    """Tell how fast something grows, per hour: from the median of the second quarter of samples to that of the last."""
    quarter = len(values) // 4
    if not quarter:
        return 0.0
    second, last = values[quarter : 2 * quarter], values[-quarter:]
    return (statistics.median(last) - statistics.median(second)) / (hours / 2)


def _row(name: str, values: list[float], grown: float) -> str:
    quarter = values[len(values) // 4]
    numbers = (values[0], quarter, values[-1], min(values), max(values))
    return f"| {name} | {' | '.join(f'{x:,.1f}' for x in numbers)} | {grown:+,.2f} |"


if __name__ == "__main__":
    sys.exit(main())
